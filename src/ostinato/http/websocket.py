"""WebSocket (RFC 6455) on the server's side: the handshake and frames, without extensions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Final

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


def frame(opcode: int, data: bytes) -> bytes:
    """Encode an unfragmented frame."""
    size = len(data)
    if size < 126:
        head = bytes((0x80 | opcode, size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 127)) + size.to_bytes(8, "big")
    return head + data


def text(data: bytes) -> bytes:
    return frame(TEXT, data)


def close(code: int) -> bytes:
    return frame(CLOSE, code.to_bytes(2, "big"))


class FrameReader:
    """Parser of a client's frames."""

    def __init__(self, deliver: Callable[[bytes], None] | None = None) -> None:
        """`deliver`: receives each message. Defaults to None: messages are ignored, and must be small."""
        self._buffer = b""
        self._deliver = deliver
        self._max_message = MAX_IGNORED_MESSAGE if deliver is None else MAX_MESSAGE
        self._fragments: list[bytes] = []  # of an incomplete message

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Parse received data; return the frames to respond with, and whether the client closes the connection."""
        self._buffer += data
        response = b""
        while True:
            found = self._take()
            if found is None:
                return response, False
            opcode, final, payload = found
            if opcode == CLOSE:
                return response + frame(CLOSE, payload[:2]), True
            if opcode == PING:
                response += frame(PONG, payload)
            elif opcode in (CONTINUATION, TEXT, BINARY) and self._deliver is not None:
                self._gather(payload, final=final)

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
        if buffer[0] & 0x70 or not buffer[1] & 0x80:  # no extension was negotiated; clients must mask
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
        if len(buffer) < start + 4 + size:
            return None
        mask = buffer[start : start + 4]
        masked = buffer[start + 4 : start + 4 + size]
        self._buffer = buffer[start + 4 + size :]
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return opcode, bool(buffer[0] & 0x80), (int.from_bytes(masked, "big") ^ key).to_bytes(size, "big")
