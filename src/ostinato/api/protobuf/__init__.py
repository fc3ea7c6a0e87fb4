"""Protobuf, as Kubernetes speaks it: `application/vnd.kubernetes.protobuf`.

Go clients send and prefer it. An object is four magic bytes, then an envelope with its apiVersion and kind, then the
message of that kind. Here it goes straight to and from the JSON shape of the object, driven by tables; the result is
what a Go program makes of the same bytes when it writes them as JSON.

Only built-in kinds have protobuf. Custom resources do not, nor does Table: `has_protobuf` tells.
"""

from ostinato.api.protobuf.envelope import (
    CONTENT_TYPE,
    EncodeError,
    decode,
    decode_watch_event,
    encode,
    frame,
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
    "frame",
    "has_protobuf",
    "unframe",
    "watch_event",
]
