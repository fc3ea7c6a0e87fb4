"""WebSocket, as far as it is needed: for streams, where the server talks and the client may say that it goes, and for
messages both ways.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from ostinato.http.request import Head
from ostinato.streams.channels import offered

MOST_SMALL = 1 << 16  # bytes of a message of a client that has nothing to say
MOST_MESSAGE = 1 << 22  # bytes of any other
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class BadFrame(Exception):  # noqa: N818
    """Bytes that break the protocol; `code` is what the connection is closed with."""

    def __init__(self, code: int) -> None:
        super().__init__(f"WebSocket closed with {code}")
        self.code = code


def handshake(head: Head, chosen: str | None = None) -> bytes:
    """The answer that turns the connection into a WebSocket. `chosen`: its protocol; defaults to the first offered."""
    key = head.headers.get("sec-websocket-key", "")
    accept = base64.b64encode(hashlib.sha1((key + _MAGIC).encode()).digest()).decode()  # noqa: S324 - RFC 6455 says so
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept}",
    ]
    if chosen is None:
        chosen = next(iter(offered(head.headers)), "")
    if chosen:
        lines.append(f"Sec-WebSocket-Protocol: {chosen}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def frame(opcode: int, data: bytes) -> bytes:
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
    """What a client sends: pings are answered, a close is told, messages are handed over, or ignored."""

    def __init__(self, deliver: Callable[[bytes], None] | None = None) -> None:
        """`deliver` gets each message. Without it they are ignored, and must be small."""
        self._buffer = b""
        self._deliver = deliver
        self._most = MOST_SMALL if deliver is None else MOST_MESSAGE
        self._parts: list[bytes] = []  # of a message whose end has not come

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """The bytes to answer with, and whether the client closes."""
        self._buffer += data
        answers = b""
        while True:
            found = self._take()
            if found is None:
                return answers, False
            opcode, final, payload = found
            if opcode == CLOSE:
                return answers + frame(CLOSE, payload[:2]), True
            if opcode == PING:
                answers += frame(PONG, payload)
            elif opcode in (CONTINUATION, TEXT, BINARY) and self._deliver is not None:
                self._gather(payload, final=final)

    def _gather(self, payload: bytes, *, final: bool) -> None:
        self._parts.append(payload)
        if sum(map(len, self._parts)) > self._most:
            raise BadFrame(1009)
        if final:
            assert self._deliver is not None
            self._deliver(b"".join(self._parts))
            self._parts.clear()

    def _take(self) -> tuple[int, bool, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, size = buffer[0] & 0x0F, buffer[1] & 0x7F
        if buffer[0] & 0x70 or not buffer[1] & 0x80:  # extensions were not agreed on; clients must mask
            raise BadFrame(1002)
        start = 2
        if size > 125:
            if opcode >= CLOSE:
                raise BadFrame(1002)
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return None
            size = int.from_bytes(buffer[2:start], "big")
        if size > self._most:
            raise BadFrame(1009)
        if len(buffer) < start + 4 + size:
            return None
        mask = buffer[start : start + 4]
        masked = buffer[start + 4 : start + 4 + size]
        self._buffer = buffer[start + 4 + size :]
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return opcode, bool(buffer[0] & 0x80), (int.from_bytes(masked, "big") ^ key).to_bytes(size, "big")
