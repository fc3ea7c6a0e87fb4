"""Decoding of a body of any kind, with kube-apiserver's error messages."""

from __future__ import annotations

from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.schema.decoding.builtin import json_type

NO_KIND = "couldn't get version/kind; json parse error: "
_TEXT_OR_NULL = frozenset({str, type(None)})
_KIND_STRUCT = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def decode_value(data: bytes, media: str) -> dict[str, Any]:
    """Decode the object in a body, whatever its kind; DecodeError if it is not an object.

    `media`: "json", "yaml" or "protobuf".
    """
    if media == "protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

        return protobuf.decode(data)
    if media == "yaml":
        from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415

        value: Any = decode_yaml(data)
    else:
        try:
            value = decode_json(data)
        except DecodeError as error:
            raise DecodeError(f"{NO_KIND}{error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DecodeError(f"{NO_KIND}json: cannot unmarshal {json_type(value)} into {_KIND_STRUCT}")
    for field in ("apiVersion", "kind"):
        if type(value.get(field)) not in _TEXT_OR_NULL:
            found = json_type(value[field])
            raise DecodeError(f"{NO_KIND}json: cannot unmarshal {found} into Go struct field .{field} of type string")
    return value


def not_registered(kind: str, api_version: str, scheme: str = "pkg/api/legacyscheme/scheme.go:30") -> str:
    """kube-apiserver's message for an unknown kind; `scheme` is the source position of its type registry."""
    return f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme {quote(scheme)}"
