"""Allocation of cluster IPs and node ports.

Allocated values are read from the stored Services, including writes that are not durable yet, so there is no separate
state to repair. Values of writes in progress are reserved until the write ends. A dry run reserves nothing and returns
placeholder values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import InternalError, Invalid, Unknown
from ostinato.api.gvk import GroupKind
from ostinato.api.text.go_format import quote
from ostinato.api.validation.addresses import Address, parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services import validation as service_validation
from ostinato.server.resources.core.services.addresses import named_addresses, own_range, ranges
from ostinato.server.resources.core.services.shape import needs_health_check_port, port_numbers
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.store.index import Index
    from ostinato.world import Rng

NODE_PORTS: Final = "spec.nodePorts"  # in the fields of an entry; not selectable
PORTS: Final = range(30000, 32768)
_LEAST_STATIC, _MOST_STATIC = 16, 256  # bounds of the static part of a range, which is used last
_STATIC_PORTS: Final = 86
_KIND: Final = GroupKind("", "Service")
_SPEC: Final = Path("spec")


class Allocator:
    """The allocator of one server."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._held: Counter[str | int] = Counter()

    def allocate(self, service: Json, old: Json | None, index: Index, *, dry: bool) -> Callable[[], None]:
        """Allocate what a Service needs and lacks; Invalid if it requests a value that is not available.

        Returns a function that ends the reservation: call it when the Service is stored, or the write has failed.
        """
        spec, before = service["spec"], None if old is None else old["spec"]
        name = service["metadata"].get("name", "")
        taking = (_DryRun if dry else _Reservation)(self, name, index)
        try:
            taking.families(spec, before)
            taking.cluster_ip(spec, before)
            taking.node_ports(spec, before)
        except BaseException:
            taking.end()
            raise
        return taking.end

    def random_free(self, choices: range, static: int, taken: set[int]) -> int | None:
        """A random free value, from the dynamic part of the range if possible."""
        for part in (choices[static:], choices[:static]):
            start = self._rng.randrange(len(part)) if part else 0
            for i in range(len(part)):
                number = part[(start + i) % len(part)]
                if number not in taken:
                    return number
        return None

    def take(self, what: str | int) -> None:
        self._held[what] += 1

    def release(self, what: str | int) -> None:
        self._held[what] -= 1
        if not self._held[what]:
            del self._held[what]

    @property
    def held(self) -> set[str | int]:
        return set(self._held)


class _Reservation:
    """The allocation for one Service."""

    def __init__(self, allocation: Allocator, name: str, index: Index) -> None:
        self._allocation = allocation
        self._name = name
        self._index = index
        self.taken: list[str | int] = []

    def end(self) -> None:
        for what in self.taken:
            self._allocation.release(what)
        self.taken.clear()

    def _take(self, what: str | int) -> None:
        self._allocation.take(what)
        self.taken.append(what)

    def _stored(self, field: str) -> list[str]:
        collection = self._index.collections["services"]
        entries = [*collection.entries.values(), *collection.pending.values()]
        return [entry.fields[field] for entry in entries if entry is not None and entry.fields.get(field)]

    def _refuse(self, *errors: FieldError) -> Invalid:
        return Invalid.of(_KIND, self._name, errors)

    def families(self, spec: Json, old: Json | None) -> None:
        """Default the IP families: IPv4 only."""
        if spec["type"] == "ExternalName":
            return
        headless_without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
        if "ipFamilyPolicy" not in spec:
            before = (old or {}).get("ipFamilyPolicy")
            spec["ipFamilyPolicy"] = before or ("RequireDualStack" if headless_without_selector else "SingleStack")
        errors = service_validation.validate_cluster_ips(spec, old)
        if errors:
            raise self._refuse(*errors)
        errors = self._single_stack(spec, old)
        families: list[str] = spec.get("ipFamilies", [])
        for i, address in enumerate(spec.get("clusterIPs", ())):
            if address == "None":
                break
            family = family_of(address)
            if i >= len(families):
                if family == "IPv6":
                    path = _SPEC.child("clusterIPs").index(i)
                    errors.append(
                        FieldError.invalid(path, spec["clusterIPs"], "IPv6 is not configured on this cluster")
                    )
                else:
                    families = [*families, family]
        if errors:
            raise self._refuse(*errors)
        spec["ipFamilies"] = families or ["IPv4"]
        if headless_without_selector:
            if len(spec["ipFamilies"]) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
                spec["ipFamilies"] = [*spec["ipFamilies"], "IPv6" if spec["ipFamilies"] == ["IPv4"] else "IPv4"]
            return
        if spec["ipFamilyPolicy"] == "RequireDualStack":
            detail = "this cluster is not configured for dual-stack services"
            errors.append(FieldError.invalid(_SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"], detail))
        for i, family in enumerate(spec["ipFamilies"]):
            if family != "IPv4":
                path = _SPEC.child("ipFamilies").index(i)
                errors.append(FieldError.invalid(path, family, "not configured on this cluster"))
        if errors:
            raise self._refuse(*errors)

    def _single_stack(self, spec: Json, old: Json | None) -> list[FieldError]:
        errors = []
        path, policy = _SPEC.child("ipFamilyPolicy"), spec["ipFamilyPolicy"]
        if policy != "SingleStack":
            return []
        for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            values = spec.get(field, [])
            if old is not None and len(values) > 1 and values == old.get(field):
                spec[field] = values[:1]
            elif len(values) == 2:
                detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                errors.append(FieldError.invalid(path, policy, detail))
        return errors

    def cluster_ip(self, spec: Json, old: Json | None) -> None:
        if spec["type"] == "ExternalName" or spec.get("clusterIPs") == ["None"]:
            return
        if old is not None and old["type"] != "ExternalName":
            return  # it has an address, which is immutable
        requested = spec.get("clusterIPs", [])
        if requested:
            address = parse_ip(requested[0])
            why = "" if address is None else self._address_error(address)
            if why:
                detail = f"failed to allocate IP {requested[0]}: {why}"
                raise self._refuse(FieldError.invalid(_SPEC.child("clusterIPs"), requested, detail))
            chosen = requested[0]
        else:
            chosen = self._any_address()
        spec["clusterIP"], spec["clusterIPs"] = chosen, [chosen]
        self._take(chosen)

    def _taken_addresses(self) -> set[str | int]:
        return {*self._stored("spec.clusterIP"), *named_addresses(self._index), *self._allocation.held}

    def _address_error(self, address: Address) -> str:
        """Why an address cannot be allocated, "" if it can."""
        if not any(_is_in(address, network) for network in ranges(self._index)):
            return "the provided network does not match the current range"
        return "provided IP is already allocated" if str(address) in self._taken_addresses() else ""

    def _any_address(self) -> str:
        taken = (parse_ip(str(text)) for text in self._taken_addresses())
        numbers = {address.number for address in taken if address is not None}
        for network in ranges(self._index):
            base, size = int(network.network_address), network.num_addresses
            static = min(max(size // _LEAST_STATIC, _LEAST_STATIC), _MOST_STATIC) if size > _LEAST_STATIC else 0
            number = self._allocation.random_free(range(base + 1, base + size - 1), static, numbers)
            if number is not None:
                return str(IPv4Address(number))
        raise InternalError.of(f"failed to allocate a serviceIP for Service {quote(self._name)}: range is full")

    def node_ports(self, spec: Json, old: Json | None) -> None:
        if spec["type"] in ("NodePort", "LoadBalancer"):
            allocate = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
            ports = [
                (port, _SPEC.child("ports").index(i).child("nodePort"))
                for i, port in enumerate(spec.get("ports", ()))
                if port.get("nodePort") or allocate
            ]
            if old is None:
                self._first_ports(ports)
            else:
                self._changed_ports(ports, set(port_numbers(old)))
        if needs_health_check_port(spec) and not (old is not None and needs_health_check_port(old)):
            number = spec.get("healthCheckNodePort", 0)
            if number:
                why = self._port_error(number)
                if why:
                    raise InternalError.of(f"failed to allocate requested HealthCheck NodePort {number}: {why}")
                self._take(number)
            else:
                spec["healthCheckNodePort"] = self._any_port("failed to allocate a HealthCheck NodePort 0")

    def _first_ports(self, ports: list[tuple[Json, Path]]) -> None:
        """Allocate node ports of a new Service: ports with the same number share one, unless specified."""
        requested: dict[int, int] = {}
        for port, _ in ports:
            if port.get("nodePort"):
                requested.setdefault(port.get("port", 0), port["nodePort"])
        given: dict[int, int] = {}
        for port, path in ports:
            number, shared = port.get("port", 0), given.get(port.get("port", 0))
            if shared is None:
                if number in requested:
                    self._port(requested[number], path)
                given[number] = requested.get(number) or self._any_port("failed to allocate a nodePort")
                port["nodePort"] = given[number]
            elif not port.get("nodePort"):
                port["nodePort"] = shared
            elif port["nodePort"] != shared:
                self._port(port["nodePort"], path)

    def _changed_ports(self, ports: list[tuple[Json, Path]], mine: set[int]) -> None:
        seen: set[tuple[str, int]] = set()
        for port, path in ports:
            number = port.get("nodePort", 0)
            if not number:
                port["nodePort"] = number = self._any_port("failed to allocate a nodePort")
            elif number not in mine:
                self._port(number, path)
                mine.add(number)
            protocol = port.get("protocol", "")
            if (protocol, number) in seen:
                raise Unknown.of(f"duplicate nodePort: {{{protocol} {number}}}")
            seen.add((protocol, number))

    def _taken_ports(self) -> set[int]:
        stored = {int(number) for text in self._stored(NODE_PORTS) for number in text.split(",")}
        return stored | {what for what in self._allocation.held if isinstance(what, int)}

    def _port_error(self, number: int) -> str:
        if number not in PORTS:
            return f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[-1]}"
        return "provided port is already allocated" if number in self._taken_ports() else ""

    def _port(self, number: int, path: Path) -> None:
        why = self._port_error(number)
        if why:
            raise self._refuse(FieldError.invalid(path, number, why))
        self._take(number)

    def _any_port(self, failure: str) -> int:
        number = self._allocation.random_free(PORTS, _STATIC_PORTS, self._taken_ports())
        if number is None:
            raise InternalError.of(f"{failure}: range is full")
        self._take(number)
        return number


class _DryRun(_Reservation):
    """The allocation of a dry run: nothing is reserved or looked up."""

    def _take(self, what: str | int) -> None:
        self.taken.append(what)

    def end(self) -> None:
        self.taken.clear()

    def _address_error(self, address: Address) -> str:
        network = own_range(self._index)
        if _is_in(address, network):
            return ""
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"

    def _any_address(self) -> str:
        return str(own_range(self._index).network_address)

    def _port_error(self, number: int) -> str:
        taken = number in self.taken or number in self._taken_ports()
        return "provided port is already allocated" if taken else ""

    def _any_port(self, failure: str) -> int:
        number = max((port for port in self.taken if isinstance(port, int)), default=PORTS[-1] + 1) + 1
        self._take(number)
        return number


def family_of(address: str) -> str:
    parsed = parse_ip(address)
    return "IPv6" if parsed is not None and parsed.bits == 128 and not parsed.mapped else "IPv4"


def _is_in(address: Address, network: IPv4Network) -> bool:
    """Whether a range can allocate an address: all but its first and last."""
    first = int(network.network_address)
    return address.bits == 32 and first < address.number < first + network.num_addresses - 1
