"""Overlay: a typed object laid over the JSON it was read from, so that an update loses nothing.

- Fields that the class knows take the typed value; what the object does not hold any more is gone.
- Fields that the class does not know stay as they were, in structs, in the values of maps and in the items of lists.
- An item of a list is the one with the same key, where the list is declared to have one. In other lists it is the one
  at the same place, or, if the number of items changed, the one that says the same in all known fields.
- What did not change in meaning does not change in form: "0.5" of a CPU is not rewritten as "500m".
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
    """A new document; `raw` is not changed, but parts of it are shared."""
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
            return raw  # 1 as well: 1.0 in its place would be news to a server
        case "union" if isinstance(raw, dict) and isinstance(encoded, dict):
            struct = info.struct_for(encoded)
            if struct is not None and info.struct_for(raw) is struct:  # of another one, nothing is meant any more
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
    """A known field that is at its default, and so not encoded: it stays if it said the same before."""
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
    """The fields that tell the items of a list apart."""
    for marker in info.markers:
        if isinstance(marker, ListMap):
            return marker.keys
    for marker in info.markers:
        if isinstance(marker, PatchMerge) and marker.key is not None:
            return (marker.key,)
    return ()


def _key(item: Any, keys: tuple[str, ...], inner: TypeInfo) -> tuple[str, ...]:
    """What tells an item apart; a key that is not written has its default."""
    if not isinstance(item, dict):
        return (repr(item),)
    struct = inner.struct_for(item) if inner.form == "union" else inner
    fields = {} if struct is None else fields_by_wire(struct.type)
    return tuple(repr(item[key] if key in item else fields[key].default if key in fields else None) for key in keys)


def _known_fields(item: Any, info: TypeInfo) -> bytes:
    """What an item says, however it says it."""
    return msgspec.json.encode(_known(item, info), order="deterministic")


def _known(value: Any, info: TypeInfo) -> Any:
    """The value without what the class does not know and what is at its default, which not everybody writes."""
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
    """The type of what lists in lists hold at last."""
    return info.type if info.inner is None else _innermost(info.inner)


def _has_structs(info: TypeInfo) -> bool:
    inner = (info.inner,) if info.inner is not None else info.variants
    return info.form == "struct" or any(map(_has_structs, inner))


def _is_same_scalar(raw: Any, encoded: Any, leaf: type[Any]) -> bool:
    """Whether two texts are the same quantity or time."""
    try:
        return bool(decode_scalar(leaf, raw) == decode_scalar(leaf, encoded))
    except (NotImplementedError, TypeError, ValueError):
        return False
