"""Overlay: the JSON of a modified typed object, with the fields of its origin that the class does not know.

- Known fields have the value of the typed object; cleared fields are removed.
- Unknown fields are preserved, in structs, in values of maps and in items of lists.
- Items of lists are matched by key if the list has one; else by index, or, if the length changed, by the values of all
  known fields.
- Values that are equal keep their form: a CPU of "0.5" does not become "500m".
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.markers import ListMap, PatchMerge
from ostinato.api.object import Object
from ostinato.api.serializer.scalars import decode_scalar, encode_scalar
from ostinato.api.serializer.type_info import Field, TypeInfo, fields_by_wire


def overlay(raw: dict[str, Any], typed: Object) -> dict[str, Any]:
    """Return a new document; `raw` is not modified, but shared in parts."""
    encoded = to_dict(typed)
    result = _struct(raw, encoded, TypeInfo(type(typed)))
    return {"apiVersion": encoded["apiVersion"], "kind": encoded["kind"], **result}


def _value(raw: Any, encoded: Any, info: TypeInfo) -> Any:
    match info.form:
        case "struct" if isinstance(raw, dict):
            return _struct(raw, encoded, info)
        case "list" if isinstance(raw, list) and info.inner is not None and _has_structs(info.inner):
            return _list(raw, encoded, info, info.inner)
        case "map" if isinstance(raw, dict) and info.inner is not None:
            inner = info.inner
            return {key: _value(raw[key], item, inner) if key in raw else item for key, item in encoded.items()}
        case "list" if info.inner is not None and raw == encoded and _innermost(info.inner) is float:
            return raw
        case "leaf" if raw == encoded or _is_same_scalar(raw, encoded, info.type):
            return raw  # also 1 for 1.0, which a server would treat as a change
        case "union" if isinstance(raw, dict) and isinstance(encoded, dict):
            struct = info.struct_for(encoded)
            if struct is not None and info.struct_for(raw) is struct:  # unknown fields of another variant are dropped
                return _struct(raw, encoded, struct)
    return encoded


def _struct(raw: dict[str, Any], encoded: dict[str, Any], info: TypeInfo) -> dict[str, Any]:
    fields = fields_by_wire(info.type)
    result: dict[str, Any] = {}
    for name, value in raw.items():
        field = fields.get(name)
        if name in encoded:
            result[name] = encoded[name] if field is None else _value(value, encoded[name], field.type_info)
        elif field is None:
            result[name] = value
        else:
            _keep_default(result, field, value)
    return result | {name: value for name, value in encoded.items() if name not in raw}


def _keep_default(result: dict[str, Any], field: Field, raw: Any) -> None:
    """Keep a known field that is not encoded, as it has its default, if the origin has the same value."""
    if field.empty_struct is not None and isinstance(raw, dict):
        kept = _struct(raw, to_dict(field.empty_struct), field.type_info)
        if kept or not raw:
            result[field.wire] = kept
    elif raw == msgspec.to_builtins(field.default, enc_hook=encode_scalar):
        result[field.wire] = raw


def _list(raw: list[Any], encoded: list[Any], info: TypeInfo, inner: TypeInfo) -> list[Any]:
    keys = _keys(info)
    if keys:
        before = {_key(item, keys, inner): item for item in reversed(raw)}
        matches = [before.get(_key(item, keys, inner)) for item in encoded]
    elif len(raw) == len(encoded):
        matches = raw
    else:
        same: dict[bytes, list[Any]] = {}
        for item in reversed(raw):
            same.setdefault(_known_fields(item, inner), []).append(item)
        matches = [(same.get(_known_fields(item, inner)) or [None]).pop() for item in encoded]
    return [item if match is None else _value(match, item, inner) for match, item in zip(matches, encoded, strict=True)]


def _keys(info: TypeInfo) -> tuple[str, ...]:
    """Return the key fields of the items of a list."""
    for marker in info.markers:
        if isinstance(marker, ListMap):
            return marker.keys
    for marker in info.markers:
        if isinstance(marker, PatchMerge) and marker.key is not None:
            return (marker.key,)
    return ()


def _key(item: Any, keys: tuple[str, ...], inner: TypeInfo) -> tuple[str, ...]:
    """Return the key of an item; absent key fields have their default."""
    if not isinstance(item, dict):
        return (repr(item),)
    struct = inner.struct_for(item) if inner.form == "union" else inner
    fields = {} if struct is None else fields_by_wire(struct.type)
    return tuple(repr(item[key] if key in item else fields[key].default if key in fields else None) for key in keys)


def _known_fields(item: Any, info: TypeInfo) -> bytes:
    """Return the known fields of an item in canonical form."""
    return msgspec.json.encode(_known(item, info), order="deterministic")


def _known(value: Any, info: TypeInfo) -> Any:
    """Return the value without unknown fields and fields with their default."""
    match info.form:
        case "struct" if isinstance(value, dict):
            known = {name: value[name] for name in (() if info.tag is None else info.tag[:1]) if name in value}
            for field in info.fields:
                inner = _known(value.get(field.wire), field.type_info)
                default = msgspec.to_builtins(field.default, enc_hook=encode_scalar)
                if inner is not None and inner != _known(default, field.type_info):
                    known[field.wire] = inner
            return known
        case "union" if isinstance(value, dict) and (struct := info.struct_for(value)) is not None:
            return _known(value, struct)
        case "list" if isinstance(value, list) and info.inner is not None:
            return [_known(item, info.inner) for item in value]
        case "map" if isinstance(value, dict) and info.inner is not None:
            return {key: _known(item, info.inner) for key, item in value.items()}
        case "leaf" if info.type is float and isinstance(value, int):
            return float(value)
        case "leaf":
            try:
                return encode_scalar(decode_scalar(info.type, value))
            except (NotImplementedError, TypeError, ValueError):
                return value
    return value


def _innermost(info: TypeInfo) -> Any:
    """Return the type of the innermost items of nested lists."""
    return info.type if info.inner is None else _innermost(info.inner)


def _has_structs(info: TypeInfo) -> bool:
    inner = (info.inner,) if info.inner is not None else info.variants
    return info.form == "struct" or any(map(_has_structs, inner))


def _is_same_scalar(raw: Any, encoded: Any, leaf: type[Any]) -> bool:
    """Whether two strings are the same quantity or time."""
    try:
        return bool(decode_scalar(leaf, raw) == decode_scalar(leaf, encoded))
    except (NotImplementedError, TypeError, ValueError):
        return False
