"""Envelopes of objects in protobuf, and frames of watch events."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from ostinato.api.protobuf.decoding import read_message, read_object
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.protobuf.tables import MAGIC, META, fields_of, message_of
from ostinato.api.protobuf.varint import delimited, varint
from ostinato.api.wire.json import DecodeError

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"

_LENGTH: Final = struct.Struct(">I")
_NO_ENCODING: Final = b"\x1a\x00\x22\x00"  # empty contentEncoding and contentType


class EncodeError(ValueError):
    """The object cannot be encoded: its kind has no protobuf, or a value has the wrong type."""


def decode(data: bytes) -> dict[str, Any]:
    """Decode an object with its envelope."""
    return read_object(data)


def encode(obj: Mapping[str, Any]) -> bytes:
    """Encode an object with its envelope."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    message = message_of(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
    if message is None:
        raise EncodeError(f"{api_version} {kind} has no protobuf form")
    raw = _write(message, obj)
    return _opening(api_version, kind, len(raw)) + raw + _NO_ENCODING


def item_of(api_version: str, list_kind: str) -> str:
    """Return the message of the items of a list, whose metadata has number 1 and whose items have number 2."""
    message = message_of(api_version, list_kind)
    if message is None:
        raise EncodeError(f"{api_version} {list_kind} has no protobuf form")
    metadata, items = fields_of(message)
    assert (metadata.number, metadata.name, items.number, items.name) == (1, "metadata", 2, "items")
    return items.type


def encode_item(message: str, obj: Mapping[str, Any]) -> bytes:
    """Encode an object as an item of a list."""
    return delimited(b"\x12", _write(message, obj))


def list_envelope(head: Mapping[str, Any], length: int) -> tuple[bytes, bytes]:
    """Return what precedes and follows the encoded items of a list. `head`: the list without its items."""
    api_version, kind = head["apiVersion"], head["kind"]
    message = message_of(api_version, kind)
    assert message is not None
    raw = _write(message, head)
    return _opening(api_version, kind, len(raw) + length) + raw, _NO_ENCODING


def _opening(api_version: str, kind: str, length: int) -> bytes:
    """Return the envelope up to the message, which has this length."""
    meta = delimited(b"\x0a", api_version.encode()) + delimited(b"\x12", kind.encode())
    return MAGIC + delimited(b"\x0a", meta) + b"\x12" + varint(length)


def watch_event(kind: str, encoded: bytes) -> bytes:
    """Encode a watch event: type (ADDED, MODIFIED, ...) and encoded object."""
    return frame(delimited(b"\x0a", kind.encode()) + delimited(b"\x12", delimited(b"\x0a", encoded)))


def decode_watch_event(data: bytes) -> dict[str, Any]:
    """Decode `type` and `object` of a watch event, without the length of its frame."""
    event = read_message(META + "WatchEvent", data)
    assert isinstance(event, dict)
    return event


def frame(data: bytes) -> bytes:
    """Return data with its length as prefix, as in a watch response."""
    return _LENGTH.pack(len(data)) + data


def unframe(buffer: bytes, limit: int = 16 * 1024 * 1024) -> tuple[list[bytes], bytes]:
    """Return the complete frames, and the remaining bytes. Raises DecodeError for frames longer than `limit`."""
    frames: list[bytes] = []
    at = 0
    while len(buffer) - at >= _LENGTH.size:
        (size,) = _LENGTH.unpack_from(buffer, at)
        if size > limit:
            raise DecodeError(f"frame of {size} bytes is longer than {limit}")
        end = at + _LENGTH.size + size
        if end > len(buffer):
            break
        frames.append(buffer[at + _LENGTH.size : end])
        at = end
    return frames, buffer[at:]


def _write(message: str, obj: Mapping[str, Any]) -> bytes:
    try:
        return write_message(message, obj)
    except (AttributeError, TypeError, ValueError, struct.error, RecursionError) as error:
        raise EncodeError(f"{obj.get('kind')} has no protobuf form: {error}") from error
