"""Netlink: devices, addresses and routes of this machine, by the messages that the kernel takes.

A request is answered before the call that sends it returns, so none of this waits. What the kernel refuses is an
OSError with its number. A connection is about the network namespace in which it was made.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import socket
import struct
from typing import Final, NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_ROUTE: Final = 0  # the protocol of netlink that all of this is
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_ERROR: Final = 2  # a message that says how a request went
_NEW_LINK, _DELETE_LINK, _GET_LINK = 16, 17, 18
_NEW_ADDRESS, _DELETE_ADDRESS = 20, 21
_NEW_ROUTE, _DELETE_ROUTE, _GET_ROUTE = 24, 25, 26
_IFNAME, _LINK_INFO, _NAMESPACE = 3, 18, 28  # attributes of a link
_INFO_KIND, _INFO_DATA, _PEER = 1, 2, 1
_UP: Final = 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_DETECTION: Final = 2  # of duplicates: an address is ready at once
_DESTINATION, _DEVICE, _GATEWAY = 1, 4, 5  # attributes of a route
_MAIN_TABLE, _STATIC, _UNICAST, _LOCAL = 254, 4, 1, 2
_EVERYWHERE, _ON_LINK = 0, 253
_ON_LINK_FLAG, _MATCHED = 4, 0x2000

_HEADER: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_ADDRESS: Final = struct.Struct("=BBBBI")
_ROUTING: Final = struct.Struct("=BBBBBBBBI")


class Match(NamedTuple):
    """The route that packets to an address take."""

    length: int  # of its prefix: 0 is the default route's
    is_local: bool  # the address is this machine's own


class Netlink:
    """Close it after use."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _ROUTE)
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self._socket.close()

    # Devices

    def add_pair(self, name: str, peer: str, namespace: int) -> None:
        """Two devices, joined: one here, its peer in the namespace of a descriptor."""
        other = _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, peer) + _number(_NAMESPACE, namespace)
        data = _attribute(_INFO_DATA, _attribute(_PEER, other))
        info = _attribute(_LINK_INFO, _attribute(_INFO_KIND, b"veth") + data)
        self._change(_NEW_LINK, _CREATE | _EXCLUSIVE, _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, name) + info)

    def set_up(self, name: str) -> int:
        """Have a device work; its number."""
        index = self._index(name)
        self._change(_NEW_LINK, 0, _LINK.pack(0, 0, index, _UP, _UP))
        return index

    def remove(self, name: str) -> None:
        """A device, and its peer, with their addresses and the routes over them."""
        self._change(_DELETE_LINK, 0, _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, name))

    # Addresses

    def add_address(self, device: int, address: Address) -> None:
        self._change(_NEW_ADDRESS, _CREATE | _EXCLUSIVE, _host(device, address))

    def remove_address(self, device: int, address: Address) -> None:
        self._change(_DELETE_ADDRESS, 0, _host(device, address))

    # Routes

    def add_route(self, device: int, address: Address) -> None:
        """Have packets to an address go to a device; FileExistsError if another route says where they go."""
        self._change(_NEW_ROUTE, _CREATE | _EXCLUSIVE, _route_to(device, address))

    def remove_route(self, device: int, address: Address) -> None:
        self._change(_DELETE_ROUTE, 0, _route_to(device, address))

    def add_default_route(self, device: int, gateway: Address) -> None:
        """Have all other packets go to a neighbour."""
        head = _ROUTING.pack(_family(gateway), 0, 0, 0, _MAIN_TABLE, _STATIC, _EVERYWHERE, _UNICAST, _ON_LINK_FLAG)
        body = head + _attribute(_GATEWAY, gateway.packed) + _number(_DEVICE, device)
        self._change(_NEW_ROUTE, _CREATE | _EXCLUSIVE, body)

    def match(self, address: Address) -> Match | None:
        """How packets to an address go; None if they go nowhere."""
        head = _ROUTING.pack(_family(address), address.max_prefixlen, 0, 0, 0, 0, 0, 0, _MATCHED)
        try:
            answer = self._ask(_GET_ROUTE, 0, head + _attribute(_DESTINATION, address.packed))
        except OSError:  # there is no way there
            return None
        _, length, _, _, _, _, _, kind, _ = _ROUTING.unpack_from(answer)
        return Match(length, kind == _LOCAL)

    # Inside

    def _index(self, name: str) -> int:
        """The number of a device. (`socket.if_nametoindex` looks in the namespace of the caller.)"""
        body = _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, name)
        return int(_LINK.unpack_from(self._ask(_GET_LINK, 0, body))[2])

    def _change(self, kind: int, flags: int, body: bytes) -> None:
        self._ask(kind, flags | _ACK, body)

    def _ask(self, kind: int, flags: int, body: bytes) -> bytes:
        """Send a request; the body of the answer, b"" where that only says that it is done."""
        number = next(self._numbers)
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, flags | _REQUEST, number, 0) + body)
        while True:
            answer = self._socket.recv(1 << 16)
            length, answered, _, to, _ = _HEADER.unpack_from(answer)
            if to != number:
                continue
            if answered != _ERROR:
                return answer[_HEADER.size : length]
            (code,) = struct.unpack_from("=i", answer, _HEADER.size)
            if code:
                raise OSError(-code, os.strerror(-code))
            return b""


def _attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))


def _family(address: Address) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _host(device: int, address: Address) -> bytes:
    head = _ADDRESS.pack(_family(address), address.max_prefixlen, _NO_DETECTION, _EVERYWHERE, device)
    return head + _attribute(_IFA_LOCAL, address.packed) + _attribute(_IFA_ADDRESS, address.packed)


def _route_to(device: int, address: Address) -> bytes:
    scope = _ON_LINK if address.version == 4 else _EVERYWHERE
    length = address.max_prefixlen
    head = _ROUTING.pack(_family(address), length, 0, 0, _MAIN_TABLE, _STATIC, scope, _UNICAST, 0)
    return head + _attribute(_DESTINATION, address.packed) + _number(_DEVICE, device)
