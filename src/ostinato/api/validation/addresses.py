"""IP addresses and CIDRs: parsing and validation, with Kubernetes' messages.

Legacy fields accept leading zeros and IPv4-mapped IPv6, which exist in clusters (`parse_ip`, `parse_cidr`, and the
legacy rules with `strict=False`). New fields accept only the canonical form.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from ostinato.api.text.go_format import quote
from ostinato.api.text.short_cache import short_cache

_NOT_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NOT_INTERFACE = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"

_decimal = re.compile(r"0*([0-9]{1,3})").fullmatch
_hexadecimal = re.compile(r"0*([0-9a-fA-F]{1,4})").fullmatch
_MAPPED = 0xFFFF << 32  # IPv4-mapped IPv6: ::ffff:1.2.3.4


class Address(NamedTuple):
    """A parsed address."""

    number: int
    bits: int  # 32 or 128, by the notation
    padded: bool  # has leading zeros, which strict parsing rejects

    @property
    def mapped(self) -> bool:
        return self.bits == 128 and self.number >> 32 == _MAPPED >> 32

    def __str__(self) -> str:
        """The canonical form; IPv4-mapped IPv6 addresses are printed as IPv4."""
        if self.bits == 32 or self.mapped:
            return str(IPv4Address(self.number & 0xFFFF_FFFF))
        return str(IPv6Address(self.number))


class Network(NamedTuple):
    """A parsed CIDR: address and prefix length."""

    address: Address
    length: int
    padded: bool

    @property
    def base(self) -> Address:
        """The address with the host bits cleared."""
        beyond = self.address.bits - self.length
        return self.address._replace(number=self.address.number >> beyond << beyond)

    def strictly_contains(self, other: Network) -> bool:
        """Whether the other network is a proper subnet of this one."""
        if other.address.bits != self.address.bits or other.length <= self.length:
            return False
        beyond = self.address.bits - self.length
        return other.address.number >> beyond == self.address.number >> beyond

    def __str__(self) -> str:
        base = self.base
        return f"{base}/{self.length - 96 if base.mapped else self.length}"


@short_cache(1024)  # the Pods of a node have its address
def parse_ip(text: str) -> Address | None:
    """Parse an address in legacy notation; None if it is invalid."""
    dot, colon = text.find("."), text.find(":")
    if dot >= 0 and (colon < 0 or dot < colon):
        return _parse_ipv4(text)
    return _parse_ipv6(text) if colon >= 0 else None


def parse_cidr(text: str) -> Network | None:
    """Parse a CIDR in legacy notation; None if it is invalid."""
    written, slash, length = text.partition("/")
    address = _parse_ipv4(written) or _parse_ipv6(written)
    digits = _decimal(length)
    if address is None or not slash or digits is None or int(digits[1]) > address.bits:
        return None
    return Network(address, int(digits[1]), address.padded or str(int(digits[1])) != length)


def _parse_ipv4(text: str) -> Address | None:
    octets = text.split(".")
    if len(octets) != 4:
        return None
    number, padded = 0, False
    for octet in octets:
        digits = _decimal(octet)
        if digits is None or (value := int(digits[1])) > 255:
            return None
        padded = padded or str(value) != octet
        number = number << 8 | value
    return Address(number, 32, padded)


def _parse_ipv6(text: str) -> Address | None:
    head, ellipsis, tail = text.partition("::")
    if "::" in tail or tail.startswith(":"):
        return None
    first, last = _groups(head, end=not ellipsis), _groups(tail, end=True)
    if first is None or last is None:
        return None
    missing = 8 - len(first[0]) - len(last[0])
    if missing < 0 or (missing > 0) != bool(ellipsis):
        return None
    number = 0
    for group in (*first[0], *[0] * missing, *last[0]):
        number = number << 16 | group
    return Address(number, 128, first[1] or last[1])


def _groups(text: str, *, end: bool) -> tuple[list[int], bool] | None:
    """Return the groups of 16 bits, and whether any has leading zeros; the last two may be in IPv4 notation."""
    groups: list[int] = []
    padded = False
    if not text:
        return groups, padded
    parts = text.split(":", 9)
    for index, part in enumerate(parts):
        if digits := _hexadecimal(part):
            groups.append(int(digits[1], 16))
            padded = padded or len(part) > 4
        elif end and index == len(parts) - 1 and (embedded := _parse_ipv4(part)):
            groups += (embedded.number >> 16, embedded.number & 0xFFFF)
            padded = padded or embedded.padded
        else:
            return None
    return groups, padded


def is_ip(value: str) -> list[str]:
    """Validate an address in a new field: only the canonical form."""
    messages = is_legacy_ip(value)
    if not messages and value != (canonical := str(parse_ip(value))):
        messages.append(f"must be in canonical form ({quote(canonical)})")
    return messages


def is_legacy_ip(value: str, *, strict: bool = True) -> list[str]:
    """Validate an address in a legacy field; `strict` rejects leading zeros and IPv4-mapped IPv6."""
    address = parse_ip(value)
    if address is None:
        return [_NOT_IP]
    if strict and address.padded:
        return ["must not have leading 0s"]
    if strict and address.mapped:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def is_cidr(value: str) -> list[str]:
    """Validate a CIDR in a new field: only the canonical form."""
    messages = is_legacy_cidr(value)
    if not messages and value != (canonical := str(parse_cidr(value))):
        messages.append(f"must be in canonical form ({quote(canonical)})")
    return messages


def is_legacy_cidr(value: str, *, strict: bool = True) -> list[str]:
    """Validate a CIDR in a legacy field."""
    network = parse_cidr(value)
    if network is None:
        return [_NOT_CIDR]
    if not strict:
        return []
    if network.padded:
        return ["must not have leading 0s in IP or prefix length"]
    if network.address.mapped:
        return ["must not have an IPv4-mapped IPv6 address"]
    if network.base != network.address:
        return ["must not have bits set beyond the prefix length"]
    return []


def is_interface_address(value: str) -> list[str]:
    """Validate the address of an interface, with its prefix length: "192.168.1.5/24"."""
    network = parse_cidr(value)
    if network is None:
        return [_NOT_INTERFACE]
    length = network.length - 96 if network.address.mapped and network.length > 32 else network.length
    canonical = f"{network.address}/{length}"
    return [] if value == canonical else [f"must be in canonical form ({quote(canonical)})"]


def ip_warning(value: str) -> str | None:
    """Return the warning for an address in a legacy field that is not canonical, without the field path."""
    address = parse_ip(value)
    if address is None:
        return None
    canonical = str(address)
    if address.padded or address.mapped:
        return f"non-standard IP address {quote(value)} is invalid: use {quote(canonical)}"
    if address.bits == 128 and canonical != value:
        return f"IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(canonical)})"
    return None


def cidr_warnings(value: str) -> list[str]:
    """Return the warnings for a CIDR in a legacy field that is not canonical, without the field path."""
    network = parse_cidr(value)
    if network is None:
        return []
    address = network.address
    canonical = str(network)
    warnings = []
    if network.base.number != address.number:
        single = f"{address}/{address.bits}"
        warnings.append(
            f"CIDR value {quote(value)} is ambiguous in this context (should be {quote(canonical)} or {quote(single)}?)"
        )
    if network.padded or address.mapped:
        warnings.append(f"non-standard CIDR value {quote(value)} is invalid: use {quote(canonical)}")
    if not warnings and address.bits == 128 and canonical != value:
        warnings.append(f"IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(canonical)})")
    return warnings
