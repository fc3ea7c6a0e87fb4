"""Choice of a Service's cluster IPs: which of its families need one, and which address is free.

Free means free as far as this server knows; an address is the Service's once its IPAddress is created.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import InternalError
from ostinato.api.text.go_format import quote
from ostinato.api.validation.addresses import Address, parse_ip
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services.addresses import named_addresses, own_ranges, ranges
from ostinato.server.resources.core.services.families import VERSIONS, refuse
from ostinato.server.resources.core.services.shape import is_headless
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.resources.core.services.addresses import Network
    from ostinato.server.store.index import Index
    from ostinato.world import Rng

_LEAST_STATIC, _MOST_STATIC = 16, 256  # bounds of the static part of a range, which is used last
_CLUSTER_IPS: Final = Path("spec", "clusterIPs")


class AddressChoice:
    """The addresses for one Service with defaulted families."""

    def __init__(self, service: Json, old: Json | None, index: Index, rng: Rng) -> None:
        self._spec: Json = service["spec"]
        self._name: str = service["metadata"].get("name", "")
        self._index = index
        self._rng = rng
        self._requested = list(self._spec.get("clusterIPs", ()))
        self.taken: set[str] = set()  # addresses that turned out to be taken
        self.positions: list[int] = self._positions(None if old is None else old["spec"])

    def _positions(self, old: Json | None) -> list[int]:
        """The indexes of `spec.ipFamilies` that need an address."""
        spec = self._spec
        if spec["type"] == "ExternalName" or is_headless(spec):
            return []
        families = spec["ipFamilies"]
        if old is None or old["type"] == "ExternalName":
            return list(range(len(families)))
        return [1] if len(families) == 2 and len(old.get("ipFamilies", ())) == 1 else []

    def choose(self, position: int) -> str:
        """Choose the address at a position and set it in the spec. Invalid if the Service requests another."""
        version = VERSIONS[self._spec["ipFamilies"][position]]
        requested = self._requested_at(position)
        if requested:
            address = parse_ip(requested)
            if address is not None and (why := self._error(address)):
                raise self._refusal(f"failed to allocate IP {requested}: {why}")
            chosen = requested if address is None else str(address)
        else:
            requested = chosen = self._any(version)
        addresses = self._spec.setdefault("clusterIPs", [])
        addresses += [""] * (position + 1 - len(addresses))
        addresses[position] = requested
        self._spec["clusterIP"] = addresses[0]
        return chosen

    def require_name(self, address: str, position: int) -> None:
        """Raise Invalid if the Service has no name: the IPAddress of its address refers to it."""
        if self._name:
            return
        given = f" {address}" if self._requested_at(position) else ""
        why = f"IPAddress.networking.k8s.io {quote(address)} is invalid: spec.parentRef.name: Required value"
        raise self._refusal(f"failed to allocate IP{given}: {why}")

    def _requested_at(self, position: int) -> str:
        return self._requested[position] if position < len(self._requested) else ""

    def _refusal(self, detail: str) -> Exception:
        given = [self._requested_at(i) for i in range(max(len(self._requested), *self.positions, 1))]
        return refuse(self._name, FieldError.invalid(_CLUSTER_IPS, given, detail))

    def _error(self, address: Address) -> str:
        """Why an address cannot be allocated, "" if it can."""
        if not any(_is_in(address, network) for network in ranges(self._index, _version(address))):
            return "the provided network does not match the current range"
        return "provided IP is already allocated" if str(address) in self._taken_addresses() else ""

    def _taken_addresses(self) -> set[str]:
        return named_addresses(self._index) | self.taken

    def _any(self, version: int) -> str:
        taken = (parse_ip(str(text)) for text in self._taken_addresses())
        numbers = {address.number for address in taken if address is not None and _version(address) == version}
        for network in ranges(self._index, version):
            size = network.num_addresses
            static = min(max(size // _LEAST_STATIC, _LEAST_STATIC), _MOST_STATIC) if size > _LEAST_STATIC else 0
            first, count = _usable(network)
            number = random_free(self._rng, first, count, static, numbers)
            if number is not None:
                return str(network[number - int(network.network_address)])
        raise InternalError.of(f"failed to allocate a serviceIP for Service {quote(self._name)}: range is full")


class DryAddressChoice(AddressChoice):
    """The choice of a dry run: placeholders."""

    def _error(self, address: Address) -> str:
        network = next(each for each in own_ranges(self._index) if each.version == _version(address))
        if _is_in(address, network):
            return ""
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"

    def _any(self, version: int) -> str:
        return str(next(each for each in own_ranges(self._index) if each.version == version).network_address)


def random_free(rng: Rng, first: int, count: int, static: int, taken: set[int]) -> int | None:
    """A random free value of `count` ones, from the dynamic part if possible. `static`: size of the part before it."""
    for start, size in ((first + static, count - static), (first, min(static, count))):
        if size <= 0:
            continue
        begin = rng.randrange(size)
        for i in range(min(size, len(taken) + 1)):
            number = start + (begin + i) % size
            if number not in taken:
                return number
    return None


def _usable(network: Network) -> tuple[int, int]:
    """The first number that a range can allocate, and how many: all but its first and, of IPv4, its last address."""
    kept = 2 if network.version == 4 else 1
    return int(network.network_address) + 1, network.num_addresses - kept


def _is_in(address: Address, network: Network) -> bool:
    first, count = _usable(network)
    return _version(address) == network.version and first <= int(ip_address(str(address))) < first + count


def _version(address: Address) -> int:
    return 4 if address.bits == 32 or address.mapped else 6
