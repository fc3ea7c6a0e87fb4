"""Allocation of cluster IPs and node ports.

An address is allocated by creating its IPAddress, a port by setting its bit in the RangeAllocation: both are
compare-and-swap writes before the Service is stored, so that several servers on one store never allocate a value twice.
What a write that failed has allocated is released. After a crash, or if the outcome of the write is unknown, it is
released by the periodic repair. A dry run allocates nothing and returns placeholder values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import APIError, InternalError, Unknown
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services.address_choice import AddressChoice, DryAddressChoice, random_free
from ostinato.server.resources.core.services.addresses import (
    addresses_of,
    claim_address,
    own_ranges,
    release_addresses,
)
from ostinato.server.resources.core.services.families import default_families, refuse
from ostinato.server.resources.core.services.ports import PORTS, NodePorts, taken_ports
from ostinato.server.resources.core.services.shape import needs_health_check_port, node_ports, port_numbers
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.store.index import Index
    from ostinato.world import Rng, World

_STATIC_PORTS: Final = 86
_SPEC: Final = Path("spec")


class Allocator:
    """The allocator of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng.fork("services")
        self._ports = NodePorts()

    async def allocate(self, service: Json, old: Json | None, index: Index, *, dry: bool) -> Allocated | None:
        """Allocate what a Service needs and lacks; Invalid if it requests a value that is not available."""
        configured = [f"IPv{each.version}" for each in own_ranges(index)]
        before = None if old is None else old["spec"]
        default_families(service["spec"], before, service["metadata"].get("name", ""), configured)
        addresses = (DryAddressChoice if dry else AddressChoice)(service, old, index, self._rng)
        ports = (_DryRun if dry else _PortChoice)(service, old, self._rng)
        allocated = Allocated(index, self._ports, service, old)
        try:
            for position in addresses.positions:
                await self._allocate_address(addresses, position, allocated, index, dry=dry)
            await self._allocate_ports(ports, allocated, index, dry=dry)
        except APIError:
            await allocated.abandon()
            raise
        return None if dry else allocated

    async def _allocate_address(
        self, choice: AddressChoice, position: int, allocated: Allocated, index: Index, *, dry: bool
    ) -> None:
        while True:
            address = choice.choose(position)
            if dry:
                return
            choice.require_name(address, position)
            if await claim_address(index, self._world, address, allocated.service["metadata"]):
                allocated.addresses.append(address)
                return
            choice.taken.add(address)  # by another server, a moment ago

    async def _allocate_ports(self, choice: _PortChoice, allocated: Allocated, index: Index, *, dry: bool) -> None:
        if not choice.wants_ports():
            return
        if dry:
            choice.node_ports(taken_ports(index))
            return

        def change(taken: set[int]) -> set[int]:
            allocated.ports = choice.node_ports(taken)
            return taken | allocated.ports

        await self._ports.change(index, change)

    async def release(self, service: Json, index: Index) -> None:
        """Release the values of a deleted Service."""
        await release_addresses(index, addresses_of(service), service["metadata"])
        await self._ports.release(index, node_ports(service["spec"]))


class Allocated:
    """The values that were allocated for one write of a Service. `commit` or `abandon` them."""

    def __init__(self, index: Index, ports: NodePorts, service: Json, old: Json | None) -> None:
        self._index = index
        self._node_ports = ports
        self.service = service
        self._old = old
        self.addresses: list[str] = []
        self.ports: set[int] = set()

    async def commit(self, new: Json) -> None:
        """Release the values that the Service had and, once stored, does not have any more."""
        if self._old is None:
            return
        had, have = self._old, new
        gone = set(addresses_of(had)) - set(addresses_of(have))
        await release_addresses(self._index, sorted(gone), had["metadata"])
        await self._release_ports({*node_ports(had["spec"]), *self.ports} - set(node_ports(have["spec"])))

    async def abandon(self) -> None:
        """Release what was allocated: the Service is not stored. Do not call this if the outcome is unknown."""
        await release_addresses(self._index, self.addresses, self.service["metadata"])
        await self._release_ports(self.ports)

    async def _release_ports(self, ports: Iterable[int]) -> None:
        await self._node_ports.release(self._index, ports)


class _PortChoice:
    """The node ports for one Service, chosen from those that are free as far as this server knows."""

    def __init__(self, service: Json, old: Json | None, rng: Rng) -> None:
        self._spec: Json = service["spec"]
        self._old: Json | None = None if old is None else old["spec"]
        self._name: str = service["metadata"].get("name", "")
        self._rng = rng
        self._requested_ports = [port.get("nodePort") for port in self._spec.get("ports", ())]
        self._requested_check = self._spec.get("healthCheckNodePort")
        self._taken_ports: set[int] = set()  # by others
        self._chosen_ports: set[int] = set()

    def wants_ports(self) -> bool:
        return self._spec["type"] in ("NodePort", "LoadBalancer")

    def node_ports(self, taken: set[int]) -> set[int]:
        """Choose the ports to allocate, given those that are taken. May be called again with others."""
        spec, old = self._spec, self._old
        self._taken_ports, self._chosen_ports = taken, set()
        for port, number in zip(spec.get("ports", ()), self._requested_ports, strict=True):
            _set(port, "nodePort", number)
        _set(spec, "healthCheckNodePort", self._requested_check)
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
                self._chosen_ports.add(number)
            else:
                spec["healthCheckNodePort"] = self._any_port("failed to allocate a HealthCheck NodePort 0")
        return self._chosen_ports

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

    def _port_error(self, number: int) -> str:
        if number not in PORTS:
            return f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[-1]}"
        return "provided port is already allocated" if self._is_taken(number) else ""

    def _is_taken(self, number: int) -> bool:
        return number in self._taken_ports or number in self._chosen_ports

    def _port(self, number: int, path: Path) -> None:
        why = self._port_error(number)
        if why:
            raise refuse(self._name, FieldError.invalid(path, number, why))
        self._chosen_ports.add(number)

    def _any_port(self, failure: str) -> int:
        number = random_free(self._rng, PORTS[0], len(PORTS), _STATIC_PORTS, self._taken_ports | self._chosen_ports)
        if number is None:
            raise InternalError.of(f"{failure}: range is full")
        self._chosen_ports.add(number)
        return number


class _DryRun(_PortChoice):
    """The choice of a dry run: placeholders."""

    def _port_error(self, number: int) -> str:
        return "provided port is already allocated" if self._is_taken(number) else ""

    def _any_port(self, failure: str) -> int:
        number = max(self._chosen_ports, default=PORTS[-1] + 1) + 1
        self._chosen_ports.add(number)
        return number


def _set(obj: Json, field: str, value: int | None) -> None:
    """Restore a field that the client may have omitted."""
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
