"""Kubernetes' protobuf encoding: `application/vnd.kubernetes.protobuf`.

- Go clients prefer it. An object is encoded as four magic bytes and an envelope (`runtime.Unknown`) with apiVersion,
  kind and the message of that kind.
- Messages are converted to and from JSON-compatible dicts directly, by tables; the result is the JSON that Go writes.
- Only built-in kinds have protobuf (`has_protobuf`): custom resources and Table do not.
"""

from ostinato.api.protobuf.envelope import (
    CONTENT_TYPE,
    EncodeError,
    decode,
    decode_watch_event,
    encode,
    encode_item,
    frame,
    item_of,
    list_envelope,
    unframe,
    watch_event,
)
from ostinato.api.protobuf.tables import has_protobuf

__all__ = [
    "CONTENT_TYPE",
    "EncodeError",
    "decode",
    "decode_watch_event",
    "encode",
    "encode_item",
    "frame",
    "has_protobuf",
    "item_of",
    "list_envelope",
    "unframe",
    "watch_event",
]
