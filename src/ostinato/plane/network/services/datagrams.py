"""A UDP socket whose replies come from the address that the client sent to.

A socket that is bound to all addresses would reply from the address of the route to the client. A client that sent to
another one, such as a Pod to the address of its node, drops such a reply.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

_MAX_SIZE: Final = 65_535
_IP_PKTINFO: Final = 8  # Linux; Python has no name for it
_SPACE: Final = 64  # for the control messages of a datagram
_IPV4_ADDRESS: Final = slice(4, 8)  # of this machine, in struct in_pktinfo
_IPV6_ADDRESS: Final = slice(16)  # in struct in6_pktinfo


class Client(NamedTuple):
    """Where a datagram came from, and the address that it was sent to: replies come from there."""

    peer: tuple[Any, ...]  # socket address: host, port, and more for IPv6
    reply_from: tuple[int, int, bytes] | None  # control message; None: as the kernel chooses

    @property
    def host(self) -> str:
        return str(self.peer[0])


class DatagramSocket:
    def __init__(self, bound: socket.socket, received: Callable[[bytes, Client], None]) -> None:
        """Call `received` for each datagram. `close` closes the socket, which does not block."""
        self._socket = bound
        self._received = received
        self._loop = asyncio.get_running_loop()
        if sys.platform == "linux" and bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        elif sys.platform == "linux":
            bound.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        self._loop.add_reader(bound.fileno(), self._receive)

    def send(self, data: bytes, client: Client) -> None:
        """Send a datagram; lost if the kernel cannot take it now, or the client cannot be reached."""
        control = [] if client.reply_from is None else [client.reply_from]
        with suppress(OSError):
            self._socket.sendmsg([data], control, 0, client.peer)

    def close(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _receive(self) -> None:
        try:
            data, control, _, peer = self._socket.recvmsg(_MAX_SIZE, _SPACE)
        except OSError:  # none yet, or the error of an earlier datagram
            return
        self._received(data, Client(peer, _reply_from(control)))


def _reply_from(control: list[tuple[int, int, bytes]]) -> tuple[int, int, bytes] | None:
    """Return the control message that makes the address that a datagram was sent to the source of a reply."""
    for level, kind, content in control:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):  # interface, own address, destination
            return level, kind, bytes(4) + content[_IPV4_ADDRESS] + bytes(4)
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):  # destination, interface
            return level, kind, content[_IPV6_ADDRESS] + bytes(4)
    return None
