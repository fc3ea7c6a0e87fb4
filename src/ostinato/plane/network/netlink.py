"""Links, addresses and routes of a network namespace, over rtnetlink.

A refused request raises OSError with the kernel's errno. A `Netlink` belongs to the network namespace in which it was
created, whatever namespace the thread enters later.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from typing import Final, NamedTuple

from ostinato.plane.network.messages import (
    ACK,
    CREATE,
    EXCLUSIVE,
    ROUTE,
    NetlinkSocket,
    attribute,
    attributes,
    nested,
    number,
    text,
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NEW_LINK, _DELETE_LINK, _GET_LINK = 16, 17, 18
_NEW_ADDRESS, _DELETE_ADDRESS, _GET_ADDRESS = 20, 21, 22
_NEW_ROUTE, _DELETE_ROUTE, _GET_ROUTE = 24, 25, 26
_HARDWARE_ADDRESS, _IFNAME, _MASTER, _LINK_INFO, _ALIAS, _NAMESPACE = 1, 3, 10, 18, 20, 28  # attributes of a link
_INFO_KIND, _INFO_DATA, _PEER = 1, 2, 1
_SET_LINK, _PORT_INFO, _ISOLATED, _CALL_IPTABLES, _CALL_IP6TABLES = 19, 12, 33, 36, 37
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}
_UP: Final = 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_DETECTION: Final = 2  # no duplicate address detection: an IPv6 address is usable immediately
_DESTINATION, _DEVICE, _GATEWAY = 1, 4, 5  # attributes of a route
_MAIN_TABLE, _STATIC, _UNICAST, _LOCAL = 254, 4, 1, 2
_EVERYWHERE, _ON_LINK = 0, 253
_ON_LINK_FLAG, _MATCHED = 4, 0x2000
LONGEST_ALIAS: Final = 255  # bytes

_LINK: Final = struct.Struct("=BxHiII")
_ADDRESS: Final = struct.Struct("=BBBBI")
_ROUTING: Final = struct.Struct("=BBBBBBBBI")


class Match(NamedTuple):
    """The route that packets to an address take."""

    length: int  # of its prefix: 0 is the default route's
    is_local: bool  # the address is one of this namespace's own


class Link(NamedTuple):
    """A network interface."""

    number: int  # its index
    name: str
    master: int  # the number of its bridge; 0 if it is not a port of one
    alias: str


class Route(NamedTuple):
    """A unicast route, of any table."""

    destination: Network
    device: int


class Netlink:
    """Close it after use."""

    def __init__(self) -> None:
        self._socket = NetlinkSocket(ROUTE)

    def close(self) -> None:
        self._socket.close()

    # Links

    def add_pair(self, name: str, peer: str, namespace: int, *, bridge: int = 0, hardware: bytes = b"") -> None:
        """Add a veth pair: one end here, its peer in the namespace of a descriptor.

        - `bridge`: index of the bridge that the end here becomes a port of. Defaults to none.
        - `hardware`: MAC address of the peer. Defaults to a random one.
        """
        other = _LINK.pack(0, 0, 0, 0, 0) + text(_IFNAME, peer) + number(_NAMESPACE, namespace)
        if hardware:
            other += attribute(_HARDWARE_ADDRESS, hardware)
        info = nested(_LINK_INFO, attribute(_INFO_KIND, b"veth"), nested(_INFO_DATA, attribute(_PEER, other)))
        master = number(_MASTER, bridge) if bridge else b""
        body = _LINK.pack(0, 0, 0, 0, 0) + text(_IFNAME, name) + master + info
        self._change(_NEW_LINK, CREATE | EXCLUSIVE, body)

    def add_bridge(self, name: str, hardware: bytes) -> None:
        """`hardware`: its MAC address. Without a fixed one it would change with the ports."""
        info = nested(_LINK_INFO, attribute(_INFO_KIND, b"bridge"))
        body = _LINK.pack(0, 0, 0, 0, 0) + text(_IFNAME, name) + attribute(_HARDWARE_ADDRESS, hardware) + info
        self._change(_NEW_LINK, CREATE | EXCLUSIVE, body)

    def filter_bridge(self, name: str) -> None:
        """Have packets that pass a bridge pass the rules for forwarded packets, where br_netfilter exists."""
        calls = (attribute(each, b"\1") for each in (_CALL_IPTABLES, _CALL_IP6TABLES))
        info = nested(_LINK_INFO, attribute(_INFO_KIND, b"bridge"), nested(_INFO_DATA, *calls))
        self._change(_NEW_LINK, 0, _LINK.pack(0, 0, self._index(name), 0, 0) + info)

    def isolate_port(self, index: int) -> None:
        """Have a port of a bridge exchange no frames with other isolated ports."""
        body = _LINK.pack(socket.AF_BRIDGE, 0, index, 0, 0) + nested(_PORT_INFO, attribute(_ISOLATED, b"\1"))
        self._change(_SET_LINK, 0, body)

    def set_up(self, name: str, *, alias: str = "") -> int:
        """Set a link up and return its index. `alias`: set as its ifalias, if given."""
        index = self._index(name)
        marked = attribute(_ALIAS, alias.encode()[:LONGEST_ALIAS]) if alias else b""
        self._change(_NEW_LINK, 0, _LINK.pack(0, 0, index, _UP, _UP) + marked)
        return index

    def remove(self, name: str) -> None:
        """Remove a link and its veth peer, with their addresses and routes."""
        self._change(_DELETE_LINK, 0, _LINK.pack(0, 0, 0, 0, 0) + text(_IFNAME, name))

    def links(self) -> list[Link]:
        found = []
        for body in self._socket.dump(_GET_LINK, _LINK.pack(0, 0, 0, 0, 0)):
            known = attributes(body[_LINK.size :])
            name, alias = (known.get(each, b"").rstrip(b"\0").decode(errors="replace") for each in (_IFNAME, _ALIAS))
            master = int.from_bytes(known.get(_MASTER, b""), sys.byteorder)
            found.append(Link(_LINK.unpack_from(body)[2], name, master, alias))
        return found

    # Addresses

    def add_address(self, device: int, address: Address, length: int | None = None) -> None:
        """`length`: of the prefix of the network that is on this link. Defaults to the address alone."""
        self._change(_NEW_ADDRESS, CREATE | EXCLUSIVE, _address(device, address, length))

    def remove_address(self, device: int, address: Address, length: int | None = None) -> None:
        self._change(_DELETE_ADDRESS, 0, _address(device, address, length))

    def addresses(self, device: int, version: int = 4) -> list[Network]:
        """The networks of a link's addresses, apart from link-local ones of IPv6."""
        found: list[Network] = []
        for body in self._socket.dump(_GET_ADDRESS, _ADDRESS.pack(_FAMILIES[version], 0, 0, 0, 0)):
            family, length, _, scope, index = _ADDRESS.unpack_from(body)
            known = attributes(body[_ADDRESS.size :])
            local = known.get(_IFA_LOCAL) or known.get(_IFA_ADDRESS)
            if family == _FAMILIES[version] and index == device and local is not None and scope != _ON_LINK:
                found.append(_network(version, local, length))
        return found

    # Routes

    def add_route(self, device: int, destination: Address | Network) -> None:
        """Route packets for an address or network to a link, on which it is reached directly.

        FileExistsError if another route has the same destination.
        """
        self._change(_NEW_ROUTE, CREATE | EXCLUSIVE, _route_to(device, destination))

    def remove_route(self, device: int, destination: Address | Network) -> None:
        self._change(_DELETE_ROUTE, 0, _route_to(device, destination))

    def add_default_route(self, device: int, gateway: Address) -> None:
        self.add_route_via(device, ipaddress.ip_network("0.0.0.0/0" if gateway.version == 4 else "::/0"), gateway)

    def add_route_via(self, device: int, destination: Network, gateway: Address) -> None:
        """Route packets for a network to a gateway, which is reached directly on a link."""
        family, length = _family(gateway), destination.prefixlen
        head = _ROUTING.pack(family, length, 0, 0, _MAIN_TABLE, _STATIC, _EVERYWHERE, _UNICAST, _ON_LINK_FLAG)
        to = attribute(_DESTINATION, destination.network_address.packed) if length else b""
        body = head + to + attribute(_GATEWAY, gateway.packed) + number(_DEVICE, device)
        self._change(_NEW_ROUTE, CREATE | EXCLUSIVE, body)

    def routes(self, version: int = 4) -> list[Route]:
        found = []
        for body in self._socket.dump(_GET_ROUTE, _ROUTING.pack(_FAMILIES[version], 0, 0, 0, 0, 0, 0, 0, 0)):
            family, length, _, _, _, _, _, kind, _ = _ROUTING.unpack_from(body)
            known = attributes(body[_ROUTING.size :])
            if kind == _UNICAST and family == _FAMILIES[version]:
                destination = _network(version, known.get(_DESTINATION, bytes(4 if version == 4 else 16)), length)
                found.append(Route(destination, int.from_bytes(known.get(_DEVICE, b""), sys.byteorder)))
        return found

    def match(self, address: Address) -> Match | None:
        """The route that packets to an address take; None if there is none."""
        head = _ROUTING.pack(_family(address), address.max_prefixlen, 0, 0, 0, 0, 0, 0, _MATCHED)
        try:
            answer = self._socket.request(_GET_ROUTE, 0, head + attribute(_DESTINATION, address.packed))
        except OSError:
            return None
        _, length, _, _, _, _, _, kind, _ = _ROUTING.unpack_from(answer)
        return Match(length, kind == _LOCAL)

    def _index(self, name: str) -> int:
        """The index of a link of this socket's namespace; `socket.if_nametoindex` uses that of the thread."""
        body = _LINK.pack(0, 0, 0, 0, 0) + text(_IFNAME, name)
        return int(_LINK.unpack_from(self._socket.request(_GET_LINK, 0, body))[2])

    def _change(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.request(kind, flags | ACK, body)


def _family(address: Address | Network) -> int:
    return _FAMILIES[address.version]


def _network(version: int, address: bytes, length: int) -> Network:
    if version == 4:
        return ipaddress.IPv4Network((address, length), strict=False)
    return ipaddress.IPv6Network((address, length), strict=False)


def _address(device: int, address: Address, length: int | None) -> bytes:
    length = address.max_prefixlen if length is None else length
    head = _ADDRESS.pack(_family(address), length, _NO_DETECTION, _EVERYWHERE, device)
    return head + attribute(_IFA_LOCAL, address.packed) + attribute(_IFA_ADDRESS, address.packed)


def _route_to(device: int, destination: Address | Network) -> bytes:
    network = ipaddress.ip_network(destination)
    scope = _ON_LINK if network.version == 4 else _EVERYWHERE
    head = _ROUTING.pack(_family(network), network.prefixlen, 0, 0, _MAIN_TABLE, _STATIC, scope, _UNICAST, 0)
    return head + attribute(_DESTINATION, network.network_address.packed) + number(_DEVICE, device)
