"""The nf_tables rules of a Pod network, over netlink: source NAT for what leaves the machine, and no way in.

A table holds two chains, as `nft list table ip NAME` shows them:

    chain postrouting { type nat hook postrouting priority 100;
        ip saddr PODS oifname != "ost*" masquerade }
    chain forward { type filter hook forward priority 0;
        iifname != "ost*" oifname BRIDGE ct state & (established | related) == 0 drop }

"ost*" are Ostinato's own links: bridges of Pods, and the link of the Services. Traffic between them keeps its
addresses.
"""

from __future__ import annotations

import ipaddress
import struct
from contextlib import suppress
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
    nested,
    text,
)

LINK_PREFIX: Final = "ost"  # of the names of all links that are Ostinato's

_IPV4: Final = 2  # NFPROTO_IPV4
_SUBSYSTEM: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES
_NEW_TABLE, _DELETE_TABLE, _NEW_CHAIN, _NEW_RULE = (_SUBSYSTEM | each for each in (0, 2, 3, 6))
_BATCH_BEGIN, _BATCH_END = 16, 17
_POSTROUTING, _FORWARD = 4, 2  # hooks
_SOURCE_NAT, _FILTER = 100, 0  # priorities
_IFNAME_BYTES: Final = 16

_REGISTER: Final = 1  # NFT_REG_1
_VERDICT: Final = 0  # NFT_REG_VERDICT
_DROP: Final = 0  # NF_DROP
_EQUAL, _NOT_EQUAL = 0, 1
_META_INPUT_NAME, _META_OUTPUT_NAME = 6, 7
_NETWORK_HEADER, _SOURCE_OFFSET, _ADDRESS_BYTES = 1, 12, 4
_CT_STATE, _ESTABLISHED_OR_RELATED = 0, 2 | 4


def install(table: str, bridge: str, pods: ipaddress.IPv4Network, *, reachable: bool = False) -> None:
    """Create a table for the Pods of a bridge, in place of one of the same name. OSError if the kernel refuses it.

    `reachable`: other machines may connect to the Pods: nothing is dropped. Defaults to False.
    """
    masquerade = [
        *_source_in(pods),
        _meta(_META_OUTPUT_NAME),
        _compare(_NOT_EQUAL, LINK_PREFIX.encode()),
        _expression("masq"),
    ]
    drop = [
        _meta(_META_INPUT_NAME),
        _compare(_NOT_EQUAL, LINK_PREFIX.encode()),
        _meta(_META_OUTPUT_NAME),
        _compare(_EQUAL, bridge.encode().ljust(_IFNAME_BYTES, b"\0")),
        _expression("ct", _big(2, _CT_STATE), _big(1, _REGISTER)),
        _mask(struct.pack("=I", _ESTABLISHED_OR_RELATED)),
        _compare(_EQUAL, bytes(4)),
        _verdict(_DROP),
    ]
    _send(
        Message(_NEW_TABLE, CREATE, text(1, table)),
        Message(_DELETE_TABLE, 0, text(1, table)),
        Message(_NEW_TABLE, CREATE, text(1, table)),
        _chain(table, "postrouting", b"nat", _POSTROUTING, _SOURCE_NAT),
        _chain(table, "forward", b"filter", _FORWARD, _FILTER),
        _rule(table, "postrouting", masquerade),
        *([] if reachable else [_rule(table, "forward", drop)]),
    )


def remove(table: str) -> None:
    """Remove a table, if there is one and this process may."""
    with suppress(OSError):
        _send(Message(_DELETE_TABLE, 0, text(1, table)))


def _send(*messages: Message) -> None:
    netfilter = NetlinkSocket(NETFILTER)
    try:
        batch = struct.pack(">BBH", 0, 0, 10)
        begin, end = (Message(kind, REQUEST, batch) for kind in (_BATCH_BEGIN, _BATCH_END))
        family = struct.pack(">BBH", _IPV4, 0, 0)
        requests = [Message(kind, flags | REQUEST | ACK, family + body) for kind, flags, body in messages]
        netfilter.batch(begin, requests, end)
    finally:
        netfilter.close()


def _chain(table: str, name: str, kind: bytes, hook: int, priority: int) -> Message:
    hooked = nested(4, _big(1, hook), _big(2, priority))
    return Message(_NEW_CHAIN, CREATE, text(1, table) + text(3, name) + hooked + attribute(7, kind + b"\0"))


def _rule(table: str, chain: str, expressions: list[bytes]) -> Message:
    return Message(_NEW_RULE, CREATE | APPEND, text(1, table) + text(2, chain) + nested(4, *expressions))


# Expressions


def _expression(name: str, *values: bytes) -> bytes:
    return nested(1, text(1, name), nested(2, *values))


def _source_in(network: ipaddress.IPv4Network) -> list[bytes]:
    load = _expression(
        "payload",
        _big(1, _REGISTER),
        _big(2, _NETWORK_HEADER),
        _big(3, _SOURCE_OFFSET),
        _big(4, _ADDRESS_BYTES),
    )
    return [load, _mask(network.netmask.packed), _compare(_EQUAL, network.network_address.packed)]


def _meta(key: int) -> bytes:
    return _expression("meta", _big(2, key), _big(1, _REGISTER))


def _compare(operator: int, value: bytes) -> bytes:
    """A value shorter than the register is compared with its beginning."""
    return _expression("cmp", _big(1, _REGISTER), _big(2, operator), _data(3, value))


def _mask(mask: bytes) -> bytes:
    return _expression(
        "bitwise",
        _big(1, _REGISTER),
        _big(2, _REGISTER),
        _big(3, len(mask)),
        _data(4, mask),
        _data(5, bytes(len(mask))),
    )


def _verdict(code: int) -> bytes:
    return _expression("immediate", _big(1, _VERDICT), nested(2, nested(2, _big(1, code))))


def _data(kind: int, value: bytes) -> bytes:
    return nested(kind, attribute(1, value))


def _big(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))
