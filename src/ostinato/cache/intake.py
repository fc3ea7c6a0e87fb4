"""Intake: makes entries of the bytes that a server sends.

An object is looked at twice: once to find its metadata, skipping the rest, and once inside the metadata. Its
`managedFields`, a large part that no controller reads, are cut out without decoding them, unless they are asked for.

In what is stored, the metadata comes before everything else that is nested, so that it can be read without the rest.
API servers write it so; where something else did not, the object is put together anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.gvk import NamespacedName
from ostinato.cache.entry import Entry, Form

Json = dict[str, Any]
Transform = Callable[[Json], Json]
"""Makes of an object, in JSON shape, what the cache is to hold of it: less, as a rule. What it is given is its own."""

_METADATA: Final = b'"metadata":'
_MANAGED_FIELDS: Final = b'"managedFields":'
_COMMA: Final = ord(",")
_PARTIAL: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")


class _Document(msgspec.Struct, rename="camel", gc=False):
    metadata: msgspec.Raw = msgspec.Raw()
    api_version: str | None = None
    kind: str | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    generation: int | None = 0
    deletion_timestamp: str | None = None
    labels: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    managed_fields: msgspec.Raw = msgspec.Raw()


_document = msgspec.json.Decoder(_Document)
_metadata = msgspec.json.Decoder(_Metadata)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Intake:
    def __init__(self, form: Form, *, keep_managed_fields: bool = False, transform: Transform | None = None) -> None:
        """
        - `keep_managed_fields`: leave them where they are. Defaults to cutting them out.
        - `transform`: what the cache is to hold of an object. Key, uid and version stay those of the object as it came.
        """
        self.form = form
        self._keep = keep_managed_fields
        self._transform = transform
        gvk = form.info.gvk
        self._expected = _PARTIAL if form.metadata_only else (gvk.api_version, gvk.kind)

    def entry(self, data: bytes) -> Entry:
        """An `ObjectError` if it is no object, or one of another kind, or if the transform fails."""
        try:
            document = _document.decode(data)
            self._check_kind(document)
            if not document.metadata:
                raise ObjectError(f"{self.form.info.gvk.kind}: it has no metadata")
            metadata = _metadata.decode(document.metadata)
            if not metadata.name:
                raise ObjectError(f"{self.form.info.gvk.kind}: it has no name")
            if self._transform is not None:
                return self._transformed(self._transform, data, metadata)
            return self._stored(data, document, metadata)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ObjectError(f"{self.form.info.gvk.kind}: {error}") from None

    def _check_kind(self, document: _Document) -> None:
        """What is said must be right; items of lists of built-in kinds do not say."""
        api_version, kind = self._expected
        if (document.kind or kind) != kind or (document.api_version or api_version) != api_version:
            raise WrongKind(
                f"expected {api_version}, Kind={kind}, got {document.api_version or ''}, Kind={document.kind or ''}"
            )

    def _stored(self, data: bytes, document: _Document, metadata: _Metadata) -> Entry:
        raw = bytes(document.metadata)
        start = data.find(b"{", 1)  # of the first thing that is nested
        size = len(raw)
        cut: _Span | None = None
        usual = data.startswith(_METADATA, start - len(_METADATA)) and data.startswith(raw, start)
        if usual and metadata.managed_fields and not self._keep:
            cut = _managed_fields(data, start, start + size, bytes(metadata.managed_fields))
            usual = cut is not None
        if not usual:
            data, start, size = _arranged(data, keep_managed_fields=self._keep)
        elif cut is not None:
            data = data[: cut[0]] + data[cut[1] :]
            size -= cut[1] - cut[0]
        return Entry(
            NamespacedName(sys.intern(metadata.namespace or ""), metadata.name),
            metadata.uid or "",
            metadata.resource_version or "",
            metadata.generation or 0,
            metadata.deletion_timestamp,
            _shared(bytes(metadata.labels)),
            _shared(bytes(metadata.owner_references)),
            data,
            start,
            start + size,
            self.form,
        )

    def _transformed(self, transform: Transform, data: bytes, metadata: _Metadata) -> Entry:
        about = f"{self.form.info.gvk.kind} {NamespacedName(metadata.namespace or '', metadata.name)}"
        try:
            changed = transform(msgspec.json.decode(data))
            if not isinstance(changed, dict):
                raise TypeError(f"it gave no dict but {type(changed).__name__}")
            changed.setdefault("metadata", {})
            data = msgspec.json.encode(changed)
        except Exception as error:  # whatever the user's function does
            raise ObjectError(f"{about}: the transform failed: {error!r}") from error
        document = _document.decode(data)
        self._check_kind(document)
        left = _metadata.decode(document.metadata)
        left.name, left.namespace, left.uid = metadata.name, metadata.namespace, metadata.uid
        left.resource_version = metadata.resource_version
        return self._stored(data, document, left)


_Span = tuple[int, int]


def _managed_fields(data: bytes, start: int, end: int, value: bytes) -> _Span | None:
    """Where they stand in the metadata, with one of the commas around them; None if that is not plain to see."""
    first = data.rfind(_MANAGED_FIELDS, start, end)
    after = first + len(_MANAGED_FIELDS)
    if first < 0 or not data.startswith(value, after):
        return None
    after += len(value)
    if data[first - 1] == _COMMA:
        return first - 1, after
    return first, after + (data[after] == _COMMA)


def _arranged(data: bytes, *, keep_managed_fields: bool) -> tuple[bytes, int, int]:
    """The object put together anew, with its metadata first; where that begins, and how long it is."""
    parts = _parts.decode(data)
    metadata = _parts.decode(parts.pop("metadata"))
    if not keep_managed_fields:
        metadata.pop("managedFields", None)
    head = msgspec.json.encode({name: parts.pop(name) for name in ("apiVersion", "kind") if name in parts})[:-1]
    head += _METADATA if len(head) == 1 else b"," + _METADATA
    encoded = msgspec.json.encode(metadata)
    rest = b"," + msgspec.json.encode(parts)[1:] if parts else b"}"
    return head + encoded + rest, len(head), len(encoded)


@lru_cache(maxsize=4096)
def _shared(data: bytes) -> bytes:
    """One copy of bytes that many objects have."""
    return data
