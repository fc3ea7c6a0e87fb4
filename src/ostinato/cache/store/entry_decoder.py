"""Entry decoder: turns the JSON that a server sends into entries.

- One pass finds the metadata and the indexed fields (`scan`).
- managedFields are cut out without decoding them, unless they are to be kept. API servers write them at the end of the
  metadata of built-in kinds, which shows where the metadata ends; otherwise a second pass does.
- In an entry the metadata precedes all other nested values, so that it can be read without them. API servers write it
  that way; objects from other sources are re-encoded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.scan import Document, Metadata, Path, Scan

Json = dict[str, Any]
Transform = Callable[[Json], Json]
"""Reduces an object, as a dict that it may change, to what the cache stores of it."""

_METADATA: Final = b'"metadata":'
_MANAGED_FIELDS: Final = b'"managedFields":'
_COMMA: Final = ord(",")
_LARGEST_SHARED: Final = 512  # bytes; a longer prefix is unlikely to be common, so it is not interned
_PARTIAL: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")


class _Whole(msgspec.Struct, gc=False):
    metadata: msgspec.Raw = msgspec.Raw()


_whole = msgspec.json.Decoder(_Whole)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class EntryDecoder:
    def __init__(
        self,
        collection: CollectionInfo,
        *,
        keep_managed_fields: bool = False,
        transform: Transform | None = None,
        fields: Iterable[Path] = (),
    ) -> None:
        """
        - `keep_managed_fields`: store managedFields too. Defaults to False.
        - `transform`: applied to every object. Key, uid and resourceVersion stay those of the original.
        - `fields`: the paths of indexed fields, to be found in the same pass.
        """
        self.collection = collection
        self.has_skipped = False  # whether an object could not be decoded
        self._keep = keep_managed_fields
        self._transform = transform
        self._scan = Scan(fields)
        gvk = collection.info.gvk
        self._expected = _PARTIAL if collection.metadata_only else (gvk.api_version, gvk.kind)

    def decode(self, data: bytes) -> Entry:
        """Return the entry; raise `ObjectError` for invalid JSON, another kind, or a failing transform."""
        try:
            document = self._scan.read(data)
            self._check_kind(document)
            metadata = document.metadata
            if metadata is UNSET:
                raise ObjectError(f"{self.collection.info.gvk.kind}: metadata: missing")
            if not metadata.name:
                raise ObjectError(f"{self.collection.info.gvk.kind}: metadata.name: missing")
            if self._transform is not None:
                return self._transformed(self._transform, data, metadata)
            return self._entry(data, document, metadata)
        except ObjectError:
            self.has_skipped = True
            raise
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.has_skipped = True
            raise ObjectError(f"{self.collection.info.gvk.kind}: {error}") from None

    def _check_kind(self, document: Document) -> None:
        """Raise `WrongKind` for another apiVersion or kind. Items of built-in lists have neither."""
        api_version, kind = self._expected
        if (document.kind or kind) != kind or (document.api_version or api_version) != api_version:
            raise WrongKind(
                f"expected {api_version}, Kind={kind}, got {document.api_version or ''}, Kind={document.kind or ''}"
            )

    def _entry(self, data: bytes, document: Document, metadata: Metadata) -> Entry:
        parts = _usual_parts(data, bytes(metadata.managed_fields), keep=self._keep)
        prefix, metadata_bytes, rest = parts or _parts(data, bytes(metadata.managed_fields), keep=self._keep)
        return Entry(
            NamespacedName(sys.intern(metadata.namespace or ""), metadata.name),
            metadata.uid or "",
            metadata.resource_version or "",
            metadata.generation or 0,
            metadata.deletion_timestamp,
            _interned(bytes(metadata.labels)),
            _interned(bytes(metadata.owner_references)),
            _interned(prefix) if len(prefix) <= _LARGEST_SHARED else prefix,
            metadata_bytes,
            rest,
            b"",
            self.collection,
            self._scan.fields(document),
        )

    def _transformed(self, transform: Transform, data: bytes, metadata: Metadata) -> Entry:
        about = f"{self.collection.info.gvk.kind} {NamespacedName(metadata.namespace or '', metadata.name)}"
        try:
            changed = transform(msgspec.json.decode(data))
            if not isinstance(changed, dict):
                raise TypeError(f"must return a dict, not {type(changed).__name__}")
            changed.setdefault("metadata", {})
            data = msgspec.json.encode(changed)
        except Exception as error:  # user code may raise anything
            raise ObjectError(f"{about}: transform failed: {error!r}") from error
        document = self._scan.read(data)
        self._check_kind(document)
        remaining = document.metadata
        assert remaining is not UNSET, "set above"
        remaining.name, remaining.namespace, remaining.uid = metadata.name, metadata.namespace, metadata.uid
        remaining.resource_version = metadata.resource_version
        return self._entry(data, document, remaining)


_Parts = tuple[bytes, bytes, bytes]  # the JSON before the metadata, the metadata, and the JSON after it


def _usual_parts(data: bytes, managed_fields: bytes, *, keep: bool) -> _Parts | None:
    """Split an object whose metadata is its first nested value and ends with managedFields; None for any other.

    In JSON only a key looks like `"managedFields":`, as quotes in strings are escaped. Braces in strings are counted
    too; at worst that leads to the slow path.
    """
    start = data.find(b"{", 1)
    if not managed_fields or start < len(_METADATA) or not data.startswith(_METADATA, start - len(_METADATA)):
        return None
    first = data.find(_MANAGED_FIELDS, start)
    end = first + len(_MANAGED_FIELDS) + len(managed_fields)
    if (
        first < 0
        or data[first - 1] != _COMMA
        or data[end : end + 1] != b"}"
        or not data.startswith(managed_fields, end - len(managed_fields))
        or data.count(b"{", start, first) != data.count(b"}", start, first) + 1  # it may be a label's key
        or data.find(_METADATA, start, first) >= 0  # of duplicate keys the last counts
    ):
        return None
    metadata = data[start : end + 1] if keep else data[start : first - 1] + b"}"
    return data[:start], metadata, data[end + 1 :]


def _parts(data: bytes, managed_fields: bytes, *, keep: bool) -> _Parts:
    """Split any object."""
    metadata = bytes(_whole.decode(data).metadata)
    start = data.find(b"{", 1)
    if (
        start < len(_METADATA)
        or not data.startswith(_METADATA, start - len(_METADATA))
        or not data.startswith(metadata, start)
    ):
        return _reencoded(data, keep=keep)
    prefix, rest = data[:start], data[start + len(metadata) :]
    if keep or not managed_fields:
        return prefix, metadata, rest
    cut = _managed_fields(metadata, managed_fields)
    return _reencoded(data, keep=keep) if cut is None else (prefix, metadata[: cut[0]] + metadata[cut[1] :], rest)


def _managed_fields(metadata: bytes, value: bytes) -> tuple[int, int] | None:
    """Return where they begin and end, with one adjacent comma; None if that is ambiguous."""
    first = metadata.rfind(_MANAGED_FIELDS)
    after = first + len(_MANAGED_FIELDS)
    if first < 0 or not metadata.startswith(value, after):
        return None
    after += len(value)
    if metadata[first - 1] == _COMMA:
        return first - 1, after
    return first, after + (metadata[after] == _COMMA)


def _reencoded(data: bytes, *, keep: bool) -> _Parts:
    """Split a re-encoded object, with the metadata first."""
    parts = _fields.decode(data)
    metadata = _fields.decode(parts.pop("metadata"))
    if not keep:
        metadata.pop("managedFields", None)
    head = msgspec.json.encode({name: parts.pop(name) for name in ("apiVersion", "kind") if name in parts})[:-1]
    head += _METADATA if len(head) == 1 else b"," + _METADATA
    rest = b"," + msgspec.json.encode(parts)[1:] if parts else b"}"
    return head, msgspec.json.encode(metadata), rest


@lru_cache(maxsize=4096)
def _interned(data: bytes) -> bytes:
    """Return one copy of equal bytes."""
    return data
