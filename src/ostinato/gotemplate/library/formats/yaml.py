"""YAML as sigs.k8s.io/yaml reads and writes it."""

from __future__ import annotations

import math
from typing import Any, Final

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.gotemplate.errors import LimitError
from ostinato.gotemplate.library.formats.json import from_json
from ostinato.gotemplate.library.formats.pretty_yaml import pretty_yaml
from ostinato.gotemplate.library.formats.wire import go_numbers, wire_value
from ostinato.gotemplate.library.kinds import NilList, NilStrings
from ostinato.gotemplate.library.registry import Registry
from ostinato.gotemplate.limits import check_parts
from ostinato.gotemplate.strings import encode
from ostinato.gotemplate.values import Value

YAML: Final = Registry()
_register = YAML

_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "bool", float: "number"}


def read_yaml(data: bytes | str) -> Any:
    """Decode the first document; numbers become floats. Raises DecodeError."""
    raw = data if isinstance(data, bytes) else encode(data)
    try:
        return go_numbers(decode_yaml(raw))
    except DecodeError as error:
        raise DecodeError(f"error converting YAML to JSON: {error}") from None


def encoded_yaml(value: Value) -> str:
    """Encode a value, without the newline at the end. Raises ValueError for what has no JSON, LimitError."""
    check_parts(value)
    try:
        return encode_yaml(_plain(wire_value(value))).decode().removesuffix("\n")
    except TypeError as error:
        raise ValueError(str(error)) from None


def to_yaml(value: Value) -> str:
    """Encode a value; "" for what has no JSON."""
    try:
        return encoded_yaml(value)
    except LimitError:
        raise
    except ValueError:
        return ""


def _plain(value: Any) -> Any:
    """Check what the encoder takes: finite numbers, valid Unicode."""
    match value:
        case NilList() | NilStrings():
            return None
        case float():
            if not math.isfinite(value):
                raise ValueError("json: unsupported value")
            return value
        case str():
            return value if value.isascii() else encode(value).decode("utf-8", "replace")
        case dict():
            return {_plain(key): _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value


def _mismatch(value: Any, wanted: str) -> str:
    kind = _KINDS[type(value)]
    return f"json: cannot unmarshal {kind} into Go value of type {wanted}"


@_register("toYaml", "interface {}")
def to_yaml_(value: Any) -> str:
    return to_yaml(value)


@_register("mustToYaml", "interface {}")
def must_to_yaml(value: Any) -> str:
    """Of Helm v4."""
    return encoded_yaml(value)


@_register("toYamlPretty", "interface {}")
def to_yaml_pretty(value: Any) -> str:
    check_parts(value)
    return pretty_yaml(value).removesuffix("\n")


@_register("fromYaml", "string")
def from_yaml(text: str) -> dict[str, Any]:
    """Decode a map; what cannot be decoded is a map with the key Error."""
    try:
        found = read_yaml(text)
    except DecodeError as error:
        return {"Error": str(error)}
    if found is None or isinstance(found, dict):
        return found or {}
    problem = _mismatch(found, "map[string]interface {}")
    return {"Error": f"error unmarshaling JSON: while decoding JSON: {problem}"}


@_register("fromYamlArray", "string")
def from_yaml_array(text: str) -> list[Any]:
    """Decode a list; what cannot be decoded is a list with the error."""
    try:
        found = read_yaml(text)
    except DecodeError as error:
        return [str(error)]
    if found is None or isinstance(found, list):
        return found or []
    return [f"error unmarshaling JSON: while decoding JSON: {_mismatch(found, '[]interface {}')}"]


@_register("fromJson", "string")
def helm_from_json(text: str) -> dict[str, Any]:
    """Decode a map, as `fromYaml`: Helm's function, not sprig's."""
    try:
        found = from_json(text)
    except DecodeError as error:
        return {"Error": str(error)}
    if found is None or isinstance(found, dict):
        return found or {}
    return {"Error": _mismatch(found, "map[string]interface {}")}


@_register("fromJsonArray", "string")
def from_json_array(text: str) -> list[Any]:
    try:
        found = from_json(text)
    except DecodeError as error:
        return [str(error)]
    if found is None or isinstance(found, list):
        return found or []
    return [_mismatch(found, "[]interface {}")]
