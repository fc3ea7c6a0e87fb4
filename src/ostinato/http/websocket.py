"""WebSocket (RFC 6455): the handshake and frames of both sides, without extensions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser

MAX_IGNORED_MESSAGE: Final = 1 << 16  # bytes of a message that is ignored
MAX_MESSAGE: Final = 1 << 22  # bytes of a message that is delivered
_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class InvalidFrame(Exception):  # noqa: N818
    """The peer violated the protocol. `code`: with which the connection is closed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"WebSocket closed with {code}")
        self.code = code


def accept_key(key: str) -> str:
    """Return the `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`."""
    return base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()  # noqa: S324 - required by the RFC


def handshake(key: str, protocol: str) -> bytes:
    """Encode the response that accepts an upgrade. `protocol`: the selected subprotocol; "" for none."""
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_key(key)}",
    ]
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def upgrade_fields(key: str, protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers that request an upgrade. `key`: 16 random bytes in base64."""
    fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    fields.append(("Sec-WebSocket-Key", key))
    return [*fields, ("Sec-WebSocket-Protocol", ",".join(protocols))] if protocols else fields


def check_upgrade(response: ResponseParser, key: str, protocols: Sequence[str]) -> str:
    """Return the selected subprotocol; "" for none. Raises `InvalidHttp` if the response does not fit the request."""
    headers = response.headers
    protocol = headers.get("sec-websocket-protocol", "")
    if headers.get("upgrade", "").lower() != "websocket" or "upgrade" not in response.elements("connection"):
        raise InvalidHttp("the server switched to another protocol than WebSocket")
    if headers.get("sec-websocket-accept") != accept_key(key):
        raise InvalidHttp("the server did not accept the WebSocket key")
    if "sec-websocket-extensions" in headers or (protocol and protocol not in protocols):
        raise InvalidHttp("the server selected a WebSocket extension or subprotocol that was not offered")
    return protocol


def frame(opcode: int, data: bytes, mask: bytes = b"") -> bytes:
    """Encode an unfragmented frame. `mask`: the masking key of a client, 4 random bytes."""
    size, masked = len(data), 0x80 if mask else 0
    if size < 126:
        head = bytes((0x80 | opcode, masked | size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, masked | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, masked | 127)) + size.to_bytes(8, "big")
    return head + mask + _masked(data, mask) if mask else head + data


def text(data: bytes) -> bytes:
    return frame(TEXT, data)


def close(code: int, mask: bytes = b"") -> bytes:
    return frame(CLOSE, code.to_bytes(2, "big"), mask)


class FrameReader:
    """Parser of the peer's frames."""

    def __init__(self, deliver: Callable[[bytes], None] | None = None, mask: Callable[[], bytes] | None = None) -> None:
        """Parameters:

        - `deliver`: receives each message. Defaults to None: messages are ignored, and must be small.
        - `mask`: returns a masking key, on the client's side. Defaults to None: this is the server's side.
        """
        self._mask = mask
        self._masked = 0x80 if mask is None else 0  # the mask bit of the peer's frames
        self._buffer = b""
        self._deliver = deliver
        self._max_message = MAX_IGNORED_MESSAGE if deliver is None else MAX_MESSAGE
        self._fragments: list[bytes] = []  # of an incomplete message

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Parse received data; return the frames to respond with, and whether the peer closes the connection."""
        self._buffer += data
        response = b""
        while True:
            found = self._take()
            if found is None:
                return response, False
            opcode, final, payload = found
            if opcode == CLOSE:
                return response + self._frame(CLOSE, payload[:2]), True
            if opcode == PING:
                response += self._frame(PONG, payload)
            elif opcode in (CONTINUATION, TEXT, BINARY) and self._deliver is not None:
                self._gather(payload, final=final)

    def _frame(self, opcode: int, data: bytes) -> bytes:
        return frame(opcode, data, b"" if self._mask is None else self._mask())

    def _gather(self, payload: bytes, *, final: bool) -> None:
        self._fragments.append(payload)
        if sum(map(len, self._fragments)) > self._max_message:
            raise InvalidFrame(1009)
        if final:
            assert self._deliver is not None
            self._deliver(b"".join(self._fragments))
            self._fragments.clear()

    def _take(self) -> tuple[int, bool, bytes] | None:
        """Remove and return opcode, final flag and payload of the first frame; None if it is incomplete."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, size = buffer[0] & 0x0F, buffer[1] & 0x7F
        if buffer[0] & 0x70 or buffer[1] & 0x80 != self._masked:  # no extension was negotiated; clients must mask
            raise InvalidFrame(1002)
        start = 2
        if size > 125:
            if opcode >= CLOSE:
                raise InvalidFrame(1002)
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return None
            size = int.from_bytes(buffer[2:start], "big")
        if size > self._max_message:
            raise InvalidFrame(1009)
        end = start + (4 if self._masked else 0) + size
        if len(buffer) < end:
            return None
        self._buffer = buffer[end:]
        payload = buffer[end - size : end]
        if self._masked:
            payload = _masked(payload, buffer[start : start + 4])
        return opcode, bool(buffer[0] & 0x80), payload


def _masked(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
