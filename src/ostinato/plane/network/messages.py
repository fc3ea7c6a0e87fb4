"""Netlink messages: encoding, and a socket that sends requests and reads the kernel's replies.

- The kernel replies before `send` returns, so no call waits.
- A refused request raises OSError with the kernel's errno.
- A socket belongs to the network namespace in which it was opened, whatever namespace the thread enters later.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

ROUTE, NETFILTER = 0, 12  # netlink protocols
REQUEST, ACK, DUMP, EXCLUSIVE, CREATE, APPEND = 0x1, 0x4, 0x300, 0x200, 0x400, 0x800
_ERROR, _DONE = 2, 3  # message types
_NESTED: Final = 0x8000  # flag of an attribute that holds attributes
_TYPE_MASK: Final = 0x3FFF
_LARGEST: Final = 1 << 16
_SEND_BUFFER_FORCE: Final = 32  # SO_SNDBUFFORCE
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")


class Message(NamedTuple):
    """A message before it is numbered."""

    kind: int
    flags: int
    body: bytes


class NetlinkSocket:
    """Close it after use."""

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self._socket.close()

    def request(self, kind: int, flags: int, body: bytes) -> bytes:
        """Send a request and return the body of its reply, b"" for a bare acknowledgement."""
        number = next(self._numbers)
        self._socket.send(encode(Message(kind, flags | REQUEST, body), number))
        while True:
            for answered, to, content in _parse(self._socket.recv(_LARGEST)):
                if to == number:
                    return _acknowledged(content) if answered == _ERROR else content

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """The bodies of all objects that the kernel lists."""
        number = next(self._numbers)
        self._socket.send(encode(Message(kind, REQUEST | DUMP, body), number))
        found: list[bytes] = []
        while True:
            for answered, to, content in _parse(self._socket.recv(_LARGEST)):
                if to != number:
                    continue
                if answered == _DONE:
                    return found
                if answered == _ERROR:
                    _acknowledged(content)
                found.append(content)

    def batch(self, begin: Message, messages: Sequence[Message], end: Message) -> None:
        """Send messages that take effect together or not at all."""
        numbered = [(each, next(self._numbers)) for each in (begin, *messages, end)]
        whole = b"".join(encode(each, number) for each, number in numbered)
        if len(whole) > _LARGEST:
            with suppress(OSError):  # takes CAP_NET_ADMIN, as such messages do
                self._socket.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCE, 2 * len(whole))
        self._socket.send(whole)
        waiting = {number for each, number in numbered if each.flags & ACK}
        while waiting:
            for answered, to, content in _parse(self._socket.recv(_LARGEST)):
                if answered == _ERROR and to in {number for _, number in numbered}:
                    waiting.discard(to)
                    _acknowledged(content)


def encode(message: Message, number: int) -> bytes:
    kind, flags, body = message
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, number, 0) + body


def _parse(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, number and body of each message of a datagram."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, number, _ = _HEADER.unpack_from(data, at)
        yield kind, number, data[at + _HEADER.size : at + length]
        at += (max(length, _HEADER.size) + 3) & ~3


def _acknowledged(content: bytes) -> bytes:
    (code,) = struct.unpack_from("=i", content)
    if code:
        raise OSError(-code, os.strerror(-code))
    return b""


def attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def nested(kind: int, *values: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(values))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message's body, by type; the last of a repeated one."""
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_MASK] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found
