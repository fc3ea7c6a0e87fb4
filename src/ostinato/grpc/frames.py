"""Frames of HTTP/2 (RFC 9113), as far as a gRPC client needs them."""

from __future__ import annotations

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD: Final = struct.Struct(">HBBBI")  # size (24 bits), type, flags, stream
HEAD_SIZE: Final = 9
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

MAX_FRAME: Final = 1 << 14  # ours, and of the peer unless it says otherwise
MAX_STREAM: Final = (1 << 31) - 1
MAX_WINDOW: Final = (1 << 31) - 1
DEFAULT_WINDOW: Final = (1 << 16) - 1

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(1, 6)

NO_ERROR, PROTOCOL_ERROR, _, FLOW_CONTROL_ERROR = range(4)
REFUSED_STREAM: Final = 7
CANCEL: Final = 8


class FrameError(Exception):
    """Bytes of the peer that are not HTTP/2."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Build a frame."""
    size = len(payload)
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def window_update(stream: int, size: int) -> bytes:
    """Build a frame that lets the peer send `size` more bytes."""
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big"))


def settings(values: dict[int, int]) -> bytes:
    """Build a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in values.items()))


def read_settings(payload: bytes) -> dict[int, int]:
    """Read the payload of a SETTINGS frame."""
    if len(payload) % 6:
        raise FrameError(f"SETTINGS of {len(payload)} bytes")
    return dict(struct.iter_unpack(">HI", payload))


def read_number(payload: bytes, what: str) -> int:
    """Read a payload of 32 bits."""
    if len(payload) != 4:
        raise FrameError(f"{what} of {len(payload)} bytes")
    return int.from_bytes(payload, "big")


def without_padding(payload: bytes, flags: int, *, has_priority: bool = False) -> bytes:
    """Remove padding and priority from the payload of a DATA or HEADERS frame."""
    start, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise FrameError("padded frame without a length")
        start, end = 1, end - payload[0]
    if has_priority and flags & WITH_PRIORITY:
        start += 5
    if start > end:
        raise FrameError("padding is longer than its frame")
    return payload[start:end]
