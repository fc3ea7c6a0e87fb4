"""Port forwarding: a connection to a port of a Pod over a WebSocket.

    async with await client.pods.port_forward("web-0", 8080) as connection:
        await connection.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
        while data := await connection.read():
            ...

A port has two channels, for data and for errors. The first message on each repeats the port number. A WebSocket carries
one connection.
"""

from __future__ import annotations

from typing import Final

from ostinato.client.transport.closable import AsyncClosable
from ostinato.client.transport.protocol import ConnectionLost, TransportError, WebSocket

PROTOCOLS: Final = ("v4.channel.k8s.io",)
_DATA: Final = b"\x00"
_ERROR: Final = b"\x01"


class PortForwardError(TransportError):
    """The node could not connect to the port; the message is the node's."""


class PortForward(AsyncClosable):
    """A connection to a port of a Pod."""

    def __init__(self, socket: WebSocket, port: int, about: str) -> None:
        self._socket = socket
        self._about = about
        self._greeting = port.to_bytes(2, "little")
        self._greeted: set[bytes] = set()  # channels whose first message was received

    async def write(self, data: bytes) -> None:
        await self._socket.send(_DATA + data)

    async def read(self) -> bytes:
        """Wait for data; b"" after the peer has closed the connection."""
        while (message := await self._socket.receive()) is not None:
            channel, data = message[:1], message[1:]
            if channel not in self._greeted:
                self._greet(channel, data)
            elif channel == _ERROR and data:
                raise PortForwardError(f"{self._about}: {data.decode(errors='replace')}")
            elif channel == _DATA and data:
                return data
        return b""

    def _greet(self, channel: bytes, data: bytes) -> None:
        if channel not in (_DATA, _ERROR) or data != self._greeting:
            raise ConnectionLost(f"{self._about}: protocol violation: the first message does not repeat the port")
        self._greeted.add(channel)

    async def close(self) -> None:
        await self._socket.close()
