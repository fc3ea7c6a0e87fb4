"""Allocation of cluster IPs and node ports.

An address is allocated by creating its IPAddress, a port by setting its bit in the RangeAllocation: both are
compare-and-swap writes before the Service is stored, so that several servers on one store never allocate a value twice.
What a write that failed has allocated is released. After a crash, or if the outcome of the write is unknown, it is
released by the periodic repair. A dry run allocates nothing and returns placeholder values.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import APIError, InternalError, Unknown
from ostinato.api.text.go_format import quote
from ostinato.api.validation.addresses import Address, parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services.addresses import (
    addresses_of,
    claim_address,
    named_addresses,
    own_range,
    ranges,
    release_addresses,
)
from ostinato.server.resources.core.services.families import default_families, refuse
from ostinato.server.resources.core.services.ports import PORTS, NodePorts, taken_ports
from ostinato.server.resources.core.services.shape import needs_health_check_port, node_ports, port_numbers
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.store.index import Index
    from ostinato.world import Rng, World

_LEAST_STATIC, _MOST_STATIC = 16, 256  # bounds of the static part of a range, which is used last
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
        choice = (_DryRun if dry else _Choice)(service, old, index, self._rng)
        default_families(service["spec"], None if old is None else old["spec"], service["metadata"].get("name", ""))
        allocated = Allocated(index, self._ports, service, old)
        try:
            while (address := choice.cluster_ip()) is not None and not dry:
                choice.require_name(address)
                if await claim_address(index, self._world, address, service["metadata"]):
                    allocated.addresses.append(address)
                    break
                choice.taken.add(address)  # by another server, a moment ago
            await self._allocate_ports(choice, allocated, index, dry=dry)
        except APIError:
            await allocated.abandon()
            raise
        return None if dry else allocated

    async def _allocate_ports(self, choice: _Choice, allocated: Allocated, index: Index, *, dry: bool) -> None:
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
        self._service = service
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
        await release_addresses(self._index, self.addresses, self._service["metadata"])
        await self._release_ports(self.ports)

    async def _release_ports(self, ports: Iterable[int]) -> None:
        await self._node_ports.release(self._index, ports)


class _Choice:
    """The values for one Service, chosen from those that are free as far as this server knows."""

    def __init__(self, service: Json, old: Json | None, index: Index, rng: Rng) -> None:
        self._spec: Json = service["spec"]
        self._old: Json | None = None if old is None else old["spec"]
        self._name: str = service["metadata"].get("name", "")
        self._index = index
        self._rng = rng
        self._requested = list(self._spec.get("clusterIPs", ()))
        self._requested_ports = [port.get("nodePort") for port in self._spec.get("ports", ())]
        self._requested_check = self._spec.get("healthCheckNodePort")
        self.taken: set[str] = set()  # addresses that turned out to be taken
        self._taken_ports: set[int] = set()  # by others
        self._chosen_ports: set[int] = set()

    def cluster_ip(self) -> str | None:
        """Choose the address, if one is to be allocated."""
        spec, old = self._spec, self._old
        if spec["type"] == "ExternalName" or spec.get("clusterIPs") == ["None"]:
            return None
        if old is not None and old["type"] != "ExternalName":
            return None  # it has an address, which is immutable
        requested = self._requested
        if requested:
            address = parse_ip(requested[0])
            why = "" if address is None else self._address_error(address)
            if why:
                detail = f"failed to allocate IP {requested[0]}: {why}"
                raise refuse(self._name, FieldError.invalid(_SPEC.child("clusterIPs"), requested, detail))
            chosen: str = requested[0]
        else:
            chosen = self._any_address()
        spec["clusterIP"], spec["clusterIPs"] = chosen, [chosen]
        return chosen

    def require_name(self, address: str) -> None:
        """Raise Invalid if the Service has no name: the IPAddress of its address refers to it."""
        if self._name:
            return
        given = f" {address}" if self._requested else ""
        why = f"IPAddress.networking.k8s.io {quote(address)} is invalid: spec.parentRef.name: Required value"
        detail = f"failed to allocate IP{given}: {why}"
        raise refuse("", FieldError.invalid(_SPEC.child("clusterIPs"), self._requested or [""], detail))

    def _taken_addresses(self) -> set[str]:
        return named_addresses(self._index) | self.taken

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
            number = self._random_free(range(base + 1, base + size - 1), static, numbers)
            if number is not None:
                return str(IPv4Address(number))
        raise InternalError.of(f"failed to allocate a serviceIP for Service {quote(self._name)}: range is full")

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
        number = self._random_free(PORTS, _STATIC_PORTS, self._taken_ports | self._chosen_ports)
        if number is None:
            raise InternalError.of(f"{failure}: range is full")
        self._chosen_ports.add(number)
        return number

    def _random_free(self, choices: range, static: int, taken: set[int]) -> int | None:
        """A random free value, from the dynamic part of the range if possible."""
        for part in (choices[static:], choices[:static]):
            start = self._rng.randrange(len(part)) if part else 0
            for i in range(len(part)):
                number = part[(start + i) % len(part)]
                if number not in taken:
                    return number
        return None


class _DryRun(_Choice):
    """The choice of a dry run: placeholders."""

    def _address_error(self, address: Address) -> str:
        network = own_range(self._index)
        if _is_in(address, network):
            return ""
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"

    def _any_address(self) -> str:
        return str(own_range(self._index).network_address)

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


def _is_in(address: Address, network: IPv4Network) -> bool:
    """Whether a range can allocate an address: all but its first and last."""
    first = int(network.network_address)
    return address.bits == 32 and first < address.number < first + network.num_addresses - 1
