"""Resource requests of Pods and capacity of nodes, as integers.

CPU is in millicores, memory and storage in bytes, other resources in units. A Pod requests the larger of

- the sum of its containers and sidecars, and
- the largest init container, plus the sidecars started before it.

Pod-level requests override this per resource; the runtime overhead is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ostinato.api.quantity import Quantity, QuantityError
from ostinato.api.struct import BuiltinStruct

Amounts = dict[str, int]
RawAmounts = dict[str, str | int | float]

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

_PLAIN: Final = frozenset({CPU, MEMORY, STORAGE})
# Default requests for scoring, so that containers without requests are spread as well.
_AT_LEAST: Final[Amounts] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
_SCALAR_PREFIXES: Final = ("hugepages-", "attachable-volumes-")


class Requirements(BuiltinStruct):
    requests: RawAmounts = {}


class Container(BuiltinStruct):
    image: str = ""
    restart_policy: str = ""
    resources: Requirements | None = None
    ports: list[Port] | None = None


class Port(BuiltinStruct):
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class RequestsSpec(BuiltinStruct):
    """The fields of a Pod spec that determine its requests."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: RawAmounts = {}
    resources: Requirements | None = None


class Resources:
    """Amounts of all resources."""

    __slots__ = ("cpu", "memory", "scalars", "storage")

    def __init__(self, cpu: int = 0, memory: int = 0, storage: int = 0, scalars: Amounts | None = None) -> None:
        self.cpu = cpu
        self.memory = memory
        self.storage = storage
        self.scalars: Amounts = scalars or {}  # extended resources, hugepages, attachable volumes

    @classmethod
    def of(cls, amounts: Amounts) -> Resources:
        scalars = {name: amount for name, amount in amounts.items() if is_scalar(name)}
        return cls(amounts.get(CPU, 0), amounts.get(MEMORY, 0), amounts.get(STORAGE, 0), scalars)

    @property
    def key(self) -> tuple[object, ...]:
        """Hashable key of the amounts."""
        return self.cpu, self.memory, self.storage, tuple(sorted(self.scalars.items()))

    @property
    def is_nothing(self) -> bool:
        return not (self.cpu or self.memory or self.storage or self.scalars)

    def add(self, other: Resources, sign: int) -> None:
        self.cpu += sign * other.cpu
        self.memory += sign * other.memory
        self.storage += sign * other.storage
        for name, amount in other.scalars.items():
            self.scalars[name] = self.scalars.get(name, 0) + sign * amount

    def copy(self) -> Resources:
        return Resources(self.cpu, self.memory, self.storage, dict(self.scalars))


def is_scalar(name: str) -> bool:
    """Return whether the name is a scalar resource: neither CPU, memory nor ephemeral storage."""
    return name not in _PLAIN and ("/" in name or name.startswith(_SCALAR_PREFIXES))


def amounts_of(raw: Mapping[str, str | int | float] | None) -> Amounts:
    """Parse quantities; invalid ones count as 0, as the server rejects them."""
    found: Amounts = {}
    for name, value in (raw or {}).items():
        try:
            quantity = Quantity.from_json(value)
        except QuantityError:
            continue
        found[name] = quantity.milli_value() if name == CPU else quantity.value()
    return found


def requests_of(spec: RequestsSpec) -> Resources:
    """Return the effective requests of a Pod."""
    return Resources.of(_requests(spec, {}))


def nonzero_requests_of(spec: RequestsSpec) -> tuple[int, int]:
    """Return CPU and memory requests for scoring, with defaults for containers without requests."""
    amounts = _requests(spec, _AT_LEAST)
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


def _requests(spec: RequestsSpec, at_least: Amounts) -> Amounts:
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _of_container(container, at_least))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.init_containers:
        amounts = _of_container(container, at_least)
        if container.restart_policy == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise_to(most, amounts)
    _raise_to(total, most)
    if spec.resources is not None:
        for name, amount in amounts_of(spec.resources.requests).items():
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                total[name] = amount
    _add(total, amounts_of(spec.overhead))
    return total


def _of_container(container: Container, at_least: Amounts) -> Amounts:
    return {**at_least, **amounts_of(container.resources.requests if container.resources else None)}


def _add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if amount > total.get(name, 0):
            total[name] = amount
