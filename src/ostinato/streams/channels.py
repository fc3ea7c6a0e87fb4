"""WebSocket channels (`channel.k8s.io`): the client of exec and attach.

Each message begins with its channel: 0 is stdin, 1 stdout, 2 stderr, 3 the exit status, 4 the terminal size. Version 5
adds 255, which closes a channel. In the base64 protocols messages are text: a digit and the encoded data.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ostinato.api.errors import InternalError
from ostinato.api.status import Status
from ostinato.streams.session import Command, EndOfInput, Input, Size, run
from ostinato.streams.upgrade import Socket, Upgrade

WEBSOCKET: Final = "websocket"
V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
V4_BASE64, V1_BASE64 = "v4.base64.channel.k8s.io", "base64.channel.k8s.io"
PROTOCOLS: Final = (V5, V4, V1, V4_BASE64, V1_BASE64)
TOKEN_PROTOCOL: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - how browsers pass a bearer token
_STDIN, _ERROR, _RESIZE, _CLOSE = 0, 3, 4, 255


def command_upgrade(command: Command, protocol: str) -> Upgrade:
    """Return the upgrade for a command over WebSocket; `protocol` is one of `PROTOCOLS`, or "" for the first."""

    async def serve(socket: Socket) -> None:
        peer = ChannelPeer(socket, command, protocol)
        await peer.greet()
        await run(command, peer)

    return Upgrade(serve, WEBSOCKET, protocol, text=is_text(protocol))


def failed_upgrade(status: Status, protocol: str) -> Upgrade:
    """Return an upgrade that reports a failed start in the exit status: browsers hide the body of an HTTP error."""

    async def serve(socket: Socket) -> None:
        await socket.send(pack(_ERROR, msgspec.json.encode(status.to_dict()), protocol))

    return Upgrade(serve, WEBSOCKET, protocol, text=is_text(protocol))


def offered(headers: Mapping[str, str]) -> list[str]:
    """Return the WebSocket subprotocols that a client offers."""
    words = [word.strip() for word in headers.get("sec-websocket-protocol", "").split(",")]
    return [word for word in words if word and not word.startswith(TOKEN_PROTOCOL)]


def choose(words: Sequence[str], known: Iterable[str]) -> str | None:
    """Return the first supported subprotocol of those offered; "" if none is offered, None if none is supported."""
    return next((word for word in words if word in known), None) if words else ""


def is_text(protocol: str) -> bool:
    return "base64" in protocol


def pack(channel: int, data: bytes, protocol: str) -> bytes:
    if is_text(protocol):
        return b"%d" % channel + base64.b64encode(data)
    return bytes((channel,)) + data


def unpack(message: bytes, protocol: str) -> tuple[int, bytes]:
    """Return channel and data of a message; channel -1 if it is invalid."""
    if not message:
        return -1, b""
    if not is_text(protocol):
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), base64.b64decode(message[1:])
    except binascii.Error:
        return -1, b""


class ChannelPeer:
    """A `Peer` over WebSocket channels."""

    def __init__(self, socket: Socket, command: Command, protocol: str) -> None:
        self._socket = socket
        self._command = command
        self._protocol = protocol

    async def greet(self) -> None:
        """Send an empty message, which tells the client that the connection is established."""
        await self.output(1 if self._command.stdout else 2 if self._command.stderr else _ERROR, b"")

    async def next(self) -> Input | None:
        while (message := await self._socket.receive()) is not None:
            channel, data = unpack(message, self._protocol)
            if channel == _STDIN and self._command.stdin and data:
                return data
            if channel == _RESIZE and self._command.tty and (size := Size.parse(data)) is not None:
                return size
            if channel == _CLOSE and self._protocol == V5 and data == bytes((_STDIN,)) and self._command.stdin:
                return EndOfInput()
        return None

    async def output(self, stream: int, data: bytes) -> None:
        await self._socket.send(pack(stream, data, self._protocol))

    async def ended(self, status: Status) -> None:
        if self._protocol == V5 and status.reason == "InternalError":
            status = InternalError.of(status.message).status  # a kube-apiserver in between repeats it
        if self._protocol in (V5, V4, V4_BASE64):
            await self.output(_ERROR, msgspec.json.encode(status.to_dict()))
        elif status.status != "Success":
            await self.output(_ERROR, status.message.encode())
