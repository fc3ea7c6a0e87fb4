"""Codec: encodes and decodes typed objects, as JSON bytes or dicts.

- Decoding accepts missing required fields and nulls, which servers send (`serializer.lenient_decoding`). Another kind,
  or a value of another type, raises `ObjectError` with object, field and expected type.
- Encoding writes `apiVersion` and `kind` first, and omits fields with their default value that were not set.
- Objects decoded from bytes keep them (`origin`), so that `overlay` can preserve fields unknown to the class.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec

from ostinato.api.meta import ListMeta
from ostinato.api.object import KindInfo, Object, ObjectList, kind_of
from ostinato.api.serializer.lenient_decoding import Mismatch, coerce
from ostinato.api.serializer.omit_zero import omit_zero_structs
from ostinato.api.serializer.scalars import decode_scalar, encode_scalar
from ostinato.api.serializer.type_info import TypeInfo
from ostinato.api.struct import record_given

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T", bound=Object)
R = TypeVar("R")

_untyped = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder(enc_hook=encode_scalar)


class ObjectError(ValueError):
    """The JSON cannot be decoded as an object of the class."""


class WrongKind(ObjectError):  # noqa: N818 - named as the condition
    """The JSON is an object of another kind."""


def to_json(instance: msgspec.Struct) -> bytes:
    data = _encoder.encode(omit_zero_structs(instance))
    if not isinstance(instance, Object):
        return data
    head = _head(type(instance))
    return head + data[1:] if len(data) > 2 else head[:-1] + b"}"


def to_dict(instance: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(omit_zero_structs(instance), enc_hook=encode_scalar)
    if not isinstance(instance, Object):
        return fields
    gvk = kind_of(instance).gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **fields}


def from_json(cls: type[S], data: bytes) -> S:
    """Decode an object, or any struct, from bytes. An object keeps them as its origin."""
    if not data.startswith(_expected_heads(cls)):
        _check_type_meta(cls, data)
    return _read(cls, data)


def from_dict(cls: type[S], value: dict[str, Any]) -> S:
    """Decode an object, or any struct, from a JSON-compatible dict, which is not modified.

    The fields that the dict has count as set: they are encoded again, also if they equal their default.
    """
    if not isinstance(value, dict):
        raise ObjectError(f"{cls.__name__}: expected dict, got {type(value).__name__}")
    if issubclass(cls, Object) and cls.__kind__ is not None:
        _check_kind(cls.__kind__, value.get("apiVersion"), value.get("kind"))
    try:
        instance: S = msgspec.convert(value, cls, dec_hook=decode_scalar)
    except msgspec.ValidationError:
        instance = _decode_leniently(cls, value)
    record_given(instance, value)
    return instance


class RawList(msgspec.Struct, frozen=True):
    """A list response with undecoded items, which share the memory of the response: `bytes(item)` copies one."""

    api_version: str
    kind: str
    metadata: ListMeta
    items: list[msgspec.Raw]


def list_from_json(cls: type[T], data: bytes) -> ObjectList[T]:
    """Decode a list response; its items have no `apiVersion` and `kind`."""
    raw = raw_list_from_json(data)
    return ObjectList(metadata=raw.metadata, items=[_read(cls, bytes(item)) for item in raw.items])


def raw_list_from_json(data: bytes) -> RawList:
    try:
        answer = _parsed(_decoder(_ListAnswer), RawList, data)
    except msgspec.ValidationError as error:
        raise ObjectError(f"not a list of objects: {error}") from None
    return RawList(answer.api_version or "", answer.kind or "", answer.metadata or ListMeta(), answer.items or [])


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: Any = None
    kind: Any = None


class _ListAnswer(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: ListMeta | None = None
    items: list[msgspec.Raw] | None = None


@cache
def _head(cls: type[Object]) -> bytes:
    """Return the first bytes of an encoded object."""
    version, kind = _type_meta(kind_of(cls))
    return b"{" + version + b"," + kind + b","


@cache
def _expected_heads(cls: type[Any]) -> tuple[bytes, ...]:
    """Return the usual first bytes of encoded objects: a match confirms the kind without parsing the rest."""
    if not issubclass(cls, Object) or cls.__kind__ is None:
        return (b"",)
    version, kind = _type_meta(cls.__kind__)
    return b"{" + kind + b"," + version + b",", b"{" + version + b"," + kind + b","


def _type_meta(info: KindInfo) -> tuple[bytes, bytes]:
    return b'"apiVersion":' + _encoder.encode(info.gvk.api_version), b'"kind":' + _encoder.encode(info.gvk.kind)


def _check_type_meta(cls: type[Any], data: bytes) -> None:
    try:
        found = _parsed(_decoder(_TypeMeta), cls, data)
    except msgspec.ValidationError:
        return  # not a JSON object; decoding reports it
    _check_kind(kind_of(cls), found.api_version, found.kind)


def _check_kind(info: KindInfo, api_version: Any, kind: Any) -> None:
    """Raise WrongKind if apiVersion or kind is given and differs."""
    gvk = info.gvk
    if (kind or gvk.kind) != gvk.kind or (api_version or gvk.api_version) != gvk.api_version:
        found = f"{api_version or gvk.api_version}, Kind={kind or gvk.kind}"
        raise WrongKind(f"expected {gvk.api_version}, Kind={gvk.kind}, got {found}")


@cache
def _decoder(cls: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(cls, dec_hook=decode_scalar)


def _read(cls: type[S], data: bytes) -> S:
    try:
        instance: S = _decoder(cls).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        instance = _decode_leniently(cls, _parsed(_untyped, cls, data))
    if isinstance(instance, Object):
        instance.__origin__ = data
    return instance


def _decode_leniently(cls: type[S], value: Any) -> S:
    """Decode leniently, after the fast path failed; errors name the field."""
    if not isinstance(value, dict):
        raise ObjectError(f"{cls.__name__}: expected an object, got {type(value).__name__}")
    try:
        instance: S = msgspec.convert(coerce(value, TypeInfo(cls)), cls, dec_hook=decode_scalar)
    except Mismatch as mismatch:
        problem = f"{mismatch.path}: {mismatch.problem}" if mismatch.path else mismatch.problem
    except msgspec.ValidationError as error:  # types that lenient decoding leaves to msgspec
        problem = str(error)
    else:
        return instance
    raise ObjectError(f"{_described(cls, value)}: {problem}")


def _described(cls: type[Any], value: dict[str, Any]) -> str:
    """Return kind and key of the object, as far as known: "Pod default/a"."""
    info = cls.__kind__ if issubclass(cls, Object) else None
    title: str = info.gvk.kind if info is not None else cls.__name__
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return title
    parts = (metadata.get("namespace"), metadata.get("name"))
    key = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{title} {key}" if key else title


def _parsed(decoder: msgspec.json.Decoder[R], cls: type[Any], data: bytes) -> R:
    """Decode; malformed JSON raises ObjectError. Type errors are left to the caller."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise ObjectError(f"{cls.__name__}: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if isinstance(error, msgspec.ValidationError) and decoder is not _untyped:
            raise
        raise ObjectError(f"{cls.__name__}: {error}") from None
