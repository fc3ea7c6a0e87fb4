"""Messages of nf_tables: tables, chains, sets, rules and their expressions, over netlink.

`commit` sends messages that take effect together or not at all. Expressions pass values through one register.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ostinato.plane.network.messages import (
    ACK,
    APPEND,
    CREATE,
    NETFILTER,
    REQUEST,
    Message,
    NetlinkSocket,
    attribute,
    attributes,
    nested,
    text,
)
from ostinato.plane.network.netlink import Address, Network

FAMILIES: Final = {4: 2, 6: 10}  # NFPROTO_IPV4, NFPROTO_IPV6, by IP version
PREROUTING, FORWARD, POSTROUTING = 0, 2, 4  # hooks
DROP, ACCEPT, JUMP, RETURN = 0, 1, -3, -5  # verdicts
EQUAL, NOT_EQUAL, AT_MOST, AT_LEAST = 0, 1, 3, 5
INPUT_NAME, OUTPUT_NAME, PROTOCOL = 6, 7, 16  # keys of `meta`
ESTABLISHED, RELATED = 2, 4  # states of a connection
SOURCE, DESTINATION = {4: 12, 6: 8}, {4: 16, 6: 24}  # offsets of addresses in the network header
_ADDRESS_BYTES: Final = {4: 4, 6: 16}
_ADDRESS_TYPES: Final = {4: 7, 6: 8}  # of nft's own, for those who list sets

_SUBSYSTEM: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES
_NEW_TABLE, _DELETE_TABLE, _NEW_CHAIN, _NEW_RULE, _NEW_SET, _NEW_ELEMENTS = (
    _SUBSYSTEM | each for each in (0, 2, 3, 6, 9, 12)
)
_GET_TABLE: Final = _SUBSYSTEM | 1
_USER_DATA: Final = 6  # attribute of a table
_BATCH_BEGIN, _BATCH_END = 16, 17
_REGISTER: Final = 1  # NFT_REG_1
_VERDICT: Final = 0  # NFT_REG_VERDICT
_VERDICT_DATA: Final = 0xFFFFFF00
_MAP: Final = 8  # flag of a set
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_CT_STATE: Final = 0
_SOURCE_NAT: Final = 0
_ELEMENTS: Final = 500  # in a message, whose attributes have 64 kB at most
_IFNAME_BYTES: Final = 16


def commit(messages: Sequence[Message]) -> None:
    """OSError if the kernel refuses one of them; nothing is changed then."""
    netfilter = NetlinkSocket(NETFILTER)
    try:
        batch = struct.pack(">BBH", 0, 0, 10)
        begin, end = (Message(kind, REQUEST, batch) for kind in (_BATCH_BEGIN, _BATCH_END))
        last = len(messages) - 1  # failures are reported in any case
        requests = [each._replace(flags=each.flags | (ACK if i == last else 0)) for i, each in enumerate(messages)]
        netfilter.batch(begin, requests, end)
    finally:
        netfilter.close()


def tables() -> list[Table]:
    """All tables of this namespace."""
    netfilter = NetlinkSocket(NETFILTER)
    found = []
    try:
        for version, family in FAMILIES.items():
            for body in netfilter.dump(_GET_TABLE, struct.pack(">BBH", family, 0, 0)):
                known = attributes(body[4:])
                found.append(Table(known[1].rstrip(b"\0").decode(), version, known.get(_USER_DATA, b"")))
    finally:
        netfilter.close()
    return found


class Table:
    """Messages about one table, of an IP version."""

    def __init__(self, name: str, version: int = 4, owner: bytes = b"") -> None:
        """`owner`: whose it is; kept with the table."""
        self.name = name
        self.owner = owner
        self.version = version
        self._header = struct.pack(">BBH", FAMILIES[version], 0, 0)
        self._sets = 0

    def replace(self) -> list[Message]:
        """Create it, without what it had."""
        create = self._message(_NEW_TABLE, CREATE, attribute(_USER_DATA, self.owner) if self.owner else b"")
        return [create, self.remove(), create]

    def remove(self) -> Message:
        return self._message(_DELETE_TABLE, 0, b"")

    def base_chain(self, name: str, kind: bytes, hook: int, priority: int) -> Message:
        """A chain that packets pass. `kind`: b"filter" or b"nat"."""
        hooked = nested(4, big(1, hook), big(2, priority))
        return self._message(_NEW_CHAIN, CREATE, text(3, name) + hooked + attribute(7, kind + b"\0"))

    def chain(self, name: str) -> Message:
        """A chain that rules and maps jump to."""
        return self._message(_NEW_CHAIN, CREATE, text(3, name))

    def rule(self, chain: str, *expressions: bytes) -> Message:
        return self._message(_NEW_RULE, CREATE | APPEND, text(2, chain) + nested(4, *expressions))

    def address_set(self, name: str) -> Message:
        return self._set(name, b"")

    def address_map(self, name: str) -> Message:
        """A map from addresses to verdicts."""
        return self._set(name, big(3, _MAP) + big(6, _VERDICT_DATA))

    def _set(self, name: str, more: bytes) -> Message:
        self._sets += 1
        key = big(4, _ADDRESS_TYPES[self.version]) + big(5, _ADDRESS_BYTES[self.version])
        return self._message(_NEW_SET, CREATE, text(2, name) + key + big(10, self._sets) + more)

    def elements(self, name: str, elements: Iterable[tuple[Address, str]]) -> list[Message]:
        """Members of a set, or of a map if a chain comes with them."""
        encoded = [
            nested(1, _data(1, address.packed), nested(2, _verdict_data(JUMP, chain)) if chain else b"")
            for address, chain in elements
        ]
        return [
            self._message(_NEW_ELEMENTS, CREATE, text(2, name) + nested(3, *encoded[at : at + _ELEMENTS]))
            for at in range(0, len(encoded), _ELEMENTS)
        ]

    def _message(self, kind: int, flags: int, body: bytes) -> Message:
        return Message(kind, flags | REQUEST, self._header + text(1, self.name) + body)

    # Expressions that depend on the IP version

    def address(self, offsets: dict[int, int]) -> bytes:
        """Load the source or destination address."""
        return _payload(_NETWORK_HEADER, offsets[self.version], _ADDRESS_BYTES[self.version])

    def is_in(self, offsets: dict[int, int], network: Network, operator: int = EQUAL) -> list[bytes]:
        """Compare the source or destination address with a network."""
        load = self.address(offsets)
        return [load, _mask(network.netmask.packed), compare(operator, network.network_address.packed)]

    def keep_source(self) -> list[bytes]:
        """Translate the source address into itself, so that no later rule translates it."""
        family = big(2, FAMILIES[self.version])
        return [self.address(SOURCE), _expression("nat", big(1, _SOURCE_NAT), family, big(3, _REGISTER))]


# Expressions


def _expression(name: str, *values: bytes) -> bytes:
    return nested(1, text(1, name), nested(2, *values))


def _payload(header: int, offset: int, length: int) -> bytes:
    return _expression("payload", big(1, _REGISTER), big(2, header), big(3, offset), big(4, length))


def meta(key: int) -> bytes:
    return _expression("meta", big(2, key), big(1, _REGISTER))


def compare(operator: int, value: bytes) -> bytes:
    """A value shorter than the register is compared with its beginning."""
    return _expression("cmp", big(1, _REGISTER), big(2, operator), _data(3, value))


def link_name(name: str) -> bytes:
    """The whole name of a link, as `compare` needs it."""
    return name.encode().ljust(_IFNAME_BYTES, b"\0")


def destination_port() -> bytes:
    """Load the destination port of TCP, UDP or SCTP."""
    return _payload(_TRANSPORT_HEADER, 2, 2)


def connection_is(states: int, operator: int = NOT_EQUAL) -> list[bytes]:
    """Compare the state of the packet's connection: with `EQUAL` it is in none of the states."""
    load = _expression("ct", big(2, _CT_STATE), big(1, _REGISTER))
    return [load, _mask(struct.pack("=I", states)), compare(operator, bytes(4))]


def lookup(name: str, *, verdict: bool = False) -> bytes:
    """Continue if the register is in a set. `verdict`: apply the verdict of a map."""
    return _expression("lookup", text(1, name), big(2, _REGISTER), big(3, _VERDICT) if verdict else b"")


def masquerade() -> bytes:
    return _expression("masq")


def verdict(code: int) -> bytes:
    return _expression("immediate", big(1, _VERDICT), nested(2, _verdict_data(code, "")))


def jump(chain: str) -> bytes:
    return _expression("immediate", big(1, _VERDICT), nested(2, _verdict_data(JUMP, chain)))


def _verdict_data(code: int, chain: str) -> bytes:
    target = text(2, chain) if chain else b""
    return nested(2, attribute(1, struct.pack(">i", code)) + target)


def _mask(mask: bytes) -> bytes:
    return _expression(
        "bitwise",
        big(1, _REGISTER),
        big(2, _REGISTER),
        big(3, len(mask)),
        _data(4, mask),
        _data(5, bytes(len(mask))),
    )


def _data(kind: int, value: bytes) -> bytes:
    return nested(kind, attribute(1, value))


def big(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))


def addresses_in(text_of: Iterable[str], version: int) -> list[Address]:
    """The addresses of an IP version, sorted."""
    return sorted(each for each in map(ipaddress.ip_address, text_of) if each.version == version)
