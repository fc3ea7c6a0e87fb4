"""IP addresses and CIDRs, parsed as strictly as Go's netip: no zones, no IPv4-mapped IPv6."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from ostinato.api.text.go_format import quote
from ostinato.cel.libraries.address_errors import address_error
from ostinato.cel.values import CelError, Library, no_overload

_TWICE: Final = "network address parse error during conversion from string: " * 2
_Address = IPv4Address | IPv6Address


class Ip(Library):
    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: _Address) -> None:
        self.address = address

    def size(self) -> int:
        return self.address.max_prefixlen // 8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ip) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return _shown(self.address)


class Cidr(Library):
    __slots__ = ("address", "length")
    type_name = "net.CIDR"

    def __init__(self, address: _Address, length: int) -> None:
        self.address = address
        self.length = length

    def size(self) -> int:
        return -(-self.length // 8)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and (other.address, other.length) == (self.address, self.length)

    def __hash__(self) -> int:
        return hash((self.address, self.length))

    def __str__(self) -> str:
        return f"{_shown(self.address)}/{self.length}"

    def masked(self) -> Cidr:
        beyond = self.address.max_prefixlen - self.length
        return Cidr(type(self.address)(int(self.address) >> beyond << beyond), self.length)

    def contains(self, address: _Address) -> bool:
        if type(address) is not type(self.address):
            return False
        beyond = address.max_prefixlen - self.length
        return int(address) >> beyond == int(self.address) >> beyond

    def contains_network(self, other: Cidr) -> bool:
        return other.length >= self.length and self.contains(other.address)


def _shown(address: _Address) -> str:
    return str(address)


def _address(text: str) -> _Address:
    try:
        if "%" in text:
            IPv6Address(text)
        return IPv6Address(text) if ":" in text else IPv4Address(text)
    except ValueError:
        why = address_error(text)
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {why}") from None


def ip(text: str) -> Ip:
    address = _address(text)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise CelError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Ip(address)


def cidr(text: str) -> Cidr:
    written, slash, length = text.rpartition("/")
    why = f"{_TWICE}netip.ParsePrefix({quote(text)}): "
    if not slash:
        raise CelError(why + "no '/'")
    try:
        address = _address(written)
        if "%" in written:
            raise CelError(why + "IPv6 zones cannot be present in a prefix")
        well_formed = (
            length.isascii() and length.isdigit() and len(length) <= 3 and (length == "0" or not length.startswith("0"))
        )
        if not well_formed:
            raise CelError(f"{why}bad bits after slash: {quote(length)}")
        if int(length) > address.max_prefixlen:
            raise CelError(why + "prefix length out of range")
    except CelError as error:
        if str(error).startswith("IP Address"):
            raise CelError(f"{why}{address_error(written)}") from None
        raise
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, int(length))


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def function(text: str) -> bool:
        try:
            read(text)
        except CelError:
            return False
        return True

    return function


def _argument(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except CelError:
        raise no_overload() from None


def _is_link_local_multicast(address: _Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(address: _Address) -> bool:
    if int(address) == 0 or (address.max_prefixlen == 32 and int(address) == 0xFFFFFFFF):
        return False
    return not (address.is_loopback or address.is_multicast or address.is_link_local)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_ip": ip,
    "is_ip": _reads(ip),
    "ip_is_canonical": lambda text: str(ip(text)) == text,
    "ip_family": lambda value: 4 if value.address.max_prefixlen == 32 else 6,
    "ip_is_unspecified": lambda value: int(value.address) == 0,
    "ip_is_loopback": lambda value: value.address.is_loopback,
    "ip_is_link_local_multicast": lambda value: _is_link_local_multicast(value.address),
    "ip_is_link_local_unicast": lambda value: value.address.is_link_local,
    "ip_is_global_unicast": lambda value: _is_global_unicast(value.address),
    "ip_to_string": str,
    "string_to_cidr": cidr,
    "is_cidr": _reads(cidr),
    "cidr_ip": lambda value: Ip(value.address),
    "cidr_masked": lambda value: value.masked(),
    "cidr_prefix_length": lambda value: value.length,
    "cidr_contains_ip_ip": lambda value, other: value.contains(other.address),
    "cidr_contains_ip_string": lambda value, other: value.contains(_argument(ip, other).address),
    "cidr_contains_cidr": lambda value, other: value.contains_network(other),
    "cidr_contains_cidr_string": lambda value, other: value.contains_network(_argument(cidr, other)),
    "cidr_to_string": str,
}
