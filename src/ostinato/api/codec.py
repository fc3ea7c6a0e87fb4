"""The codec: typed objects to and from JSON, as bytes and as dicts.

- Reading is tolerant of what servers do (`serializer.lenient_decoding`) and strict about the rest: an object of another
  kind, or a value of another type, is an `ObjectError` that names object, field, and what was expected.
- Writing puts `apiVersion` and `kind` first and leaves out what is at its default.
- Objects read from bytes remember them, so that `overlay` can later keep what the class does not know.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec

from ostinato.api.meta import ListMeta
from ostinato.api.object import KindInfo, Object, ObjectList, kind_of
from ostinato.api.serializer.lenient_decoding import Mismatch, fit
from ostinato.api.serializer.omit_zero import sparse
from ostinato.api.serializer.scalars import decode_leaf, encode_leaf
from ostinato.api.serializer.type_info import Shape

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T", bound=Object)
R = TypeVar("R")

_untyped = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder(enc_hook=encode_leaf)


class ObjectError(ValueError):
    """JSON that is no object of the class it is read as."""


class WrongKind(ObjectError):  # noqa: N818 - reads as what happened
    """The JSON says that it is an object of another kind."""


def to_json(instance: msgspec.Struct) -> bytes:
    data = _encoder.encode(sparse(instance))
    if not isinstance(instance, Object):
        return data
    head = _head(type(instance))
    return head + data[1:] if len(data) > 2 else head[:-1] + b"}"


def to_dict(instance: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(sparse(instance), enc_hook=encode_leaf)
    if not isinstance(instance, Object):
        return fields
    gvk = kind_of(instance).gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **fields}


def from_json(cls: type[S], data: bytes) -> S:
    """Read an object, or any struct, from bytes; an object remembers them."""
    if not data.startswith(_usual_heads(cls)):
        _check_said_kind(cls, data)
    return _read(cls, data)


def from_dict(cls: type[S], value: dict[str, Any]) -> S:
    """Read an object, or any struct, from a dict in JSON shape, which stays the caller's."""
    if not isinstance(value, dict):
        raise ObjectError(f"{cls.__name__}: expected dict, got {type(value).__name__}")
    if issubclass(cls, Object) and cls.__kind__ is not None:
        _check_kind(cls.__kind__, value.get("apiVersion"), value.get("kind"))
    try:
        instance: S = msgspec.convert(value, cls, dec_hook=decode_leaf)
    except msgspec.ValidationError:
        return _fitted(cls, value)
    return instance


class RawList(msgspec.Struct, frozen=True):
    """A LIST answer whose items are still bytes. They share the answer's memory: `bytes(item)` takes one out."""

    api_version: str
    kind: str
    metadata: ListMeta
    items: list[msgspec.Raw]


def list_from_json(cls: type[T], data: bytes) -> ObjectList[T]:
    """Read a LIST answer of a kind; its items carry no `apiVersion` and `kind` of their own."""
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
    """The first bytes of an object, as we write them."""
    version, kind = _said_kind(kind_of(cls))
    return b"{" + version + b"," + kind + b","


@cache
def _usual_heads(cls: type[Any]) -> tuple[bytes, ...]:
    """As they usually come: one of them shows the kind without a look at the rest. What has none shows nothing."""
    if not issubclass(cls, Object) or cls.__kind__ is None:
        return (b"",)
    version, kind = _said_kind(cls.__kind__)
    return b"{" + kind + b"," + version + b",", b"{" + version + b"," + kind + b","


def _said_kind(info: KindInfo) -> tuple[bytes, bytes]:
    return b'"apiVersion":' + _encoder.encode(info.gvk.api_version), b'"kind":' + _encoder.encode(info.gvk.kind)


def _check_said_kind(cls: type[Any], data: bytes) -> None:
    try:
        found = _parsed(_decoder(_TypeMeta), cls, data)
    except msgspec.ValidationError:
        return  # no JSON object at all: reading it as one says so
    _check_kind(kind_of(cls), found.api_version, found.kind)


def _check_kind(info: KindInfo, api_version: Any, kind: Any) -> None:
    """What is said must be right; what is not said is taken for granted."""
    gvk = info.gvk
    if (kind or gvk.kind) != gvk.kind or (api_version or gvk.api_version) != gvk.api_version:
        found = f"{api_version or gvk.api_version}, Kind={kind or gvk.kind}"
        raise WrongKind(f"expected {gvk.api_version}, Kind={gvk.kind}, got {found}")


@cache
def _decoder(cls: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(cls, dec_hook=decode_leaf)


def _read(cls: type[S], data: bytes) -> S:
    try:
        instance: S = _decoder(cls).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        instance = _fitted(cls, _parsed(_untyped, cls, data))
    if isinstance(instance, Object):
        instance.__origin__ = data
    return instance


def _fitted(cls: type[S], value: Any) -> S:
    """The slow way, after the fast one has failed: for tolerance, and for the words of the error."""
    if not isinstance(value, dict):
        raise ObjectError(f"{cls.__name__}: expected an object, got {type(value).__name__}")
    try:
        instance: S = msgspec.convert(fit(value, Shape(cls)), cls, dec_hook=decode_leaf)
    except Mismatch as mismatch:
        problem = f"{mismatch.path}: {mismatch.problem}" if mismatch.path else mismatch.problem
    except msgspec.ValidationError as error:  # types that only msgspec knows, in its words
        problem = str(error)
    else:
        return instance
    raise ObjectError(f"{_described(cls, value)}: {problem}")


def _described(cls: type[Any], value: dict[str, Any]) -> str:
    """The object by kind and key, as far as it says: "Pod default/a"."""
    info = cls.__kind__ if issubclass(cls, Object) else None
    title: str = info.gvk.kind if info is not None else cls.__name__
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return title
    parts = (metadata.get("namespace"), metadata.get("name"))
    key = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{title} {key}" if key else title


def _parsed(decoder: msgspec.json.Decoder[R], cls: type[Any], data: bytes) -> R:
    """Decode, and put what is wrong with the JSON itself into words; wrong types are left to the caller."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise ObjectError(f"{cls.__name__}: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if isinstance(error, msgspec.ValidationError) and decoder is not _untyped:  # to which no type is wrong
            raise
        raise ObjectError(f"{cls.__name__}: {error}") from None
