"""EntryDecoder: makes entries of the bytes that a server sends.

One pass over an object finds its metadata (`scan`). Its `managedFields`, a large part that no controller reads, are cut
out without decoding them, unless they are asked for. API servers write them at the end of the metadata of built-in
kinds, which shows where that ends; otherwise another pass does.

In what is stored, the metadata comes before everything else that is nested, so that it can be read without the rest.
API servers write it so; where something else did not, the object is put together anew.
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
"""Makes of an object, in JSON shape, what the cache is to hold of it: less, as a rule. What it is given is its own."""

_METADATA: Final = b'"metadata":'
_MANAGED_FIELDS: Final = b'"managedFields":'
_COMMA: Final = ord(",")
_LARGEST_SHARED: Final = 512  # bytes before the metadata; more is the object's own, and would be held in vain
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
        - `keep_managed_fields`: leave them where they are. Defaults to cutting them out.
        - `transform`: what the cache is to hold of an object. Key, uid and version stay those of the object as it came.
        - `fields`: that are looked for on the way, for indexes.
        """
        self.collection = collection
        self.has_skipped = False  # whether there was an object of which no entry could be made
        self._keep = keep_managed_fields
        self._transform = transform
        self._scan = Scan(fields)
        gvk = collection.info.gvk
        self._expected = _PARTIAL if collection.metadata_only else (gvk.api_version, gvk.kind)

    def decode(self, data: bytes) -> Entry:
        """An `ObjectError` if it is no object, or one of another kind, or if the transform fails."""
        try:
            document = self._scan.read(data)
            self._check_kind(document)
            metadata = document.metadata
            if metadata is UNSET:
                raise ObjectError(f"{self.collection.info.gvk.kind}: it has no metadata")
            if not metadata.name:
                raise ObjectError(f"{self.collection.info.gvk.kind}: it has no name")
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
        """What is said must be right; items of lists of built-in kinds do not say."""
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
            _shared(bytes(metadata.labels)),
            _shared(bytes(metadata.owner_references)),
            _shared(prefix) if len(prefix) <= _LARGEST_SHARED else prefix,
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
                raise TypeError(f"it gave no dict but {type(changed).__name__}")
            changed.setdefault("metadata", {})
            data = msgspec.json.encode(changed)
        except Exception as error:  # whatever the user's function does
            raise ObjectError(f"{about}: the transform failed: {error!r}") from error
        document = self._scan.read(data)
        self._check_kind(document)
        left = document.metadata
        assert left is not UNSET, "it was set above"
        left.name, left.namespace, left.uid = metadata.name, metadata.namespace, metadata.uid
        left.resource_version = metadata.resource_version
        return self._entry(data, document, left)


_Parts = tuple[bytes, bytes, bytes]  # of an object: what stands before its metadata, that, and what follows it


def _usual_parts(data: bytes, managed_fields: bytes, *, keep: bool) -> _Parts | None:
    """If the metadata is the first thing that is nested and ends with the managedFields; None if not, or not plainly.

    In JSON nothing but a name looks like `"managedFields":`, for quotes inside of texts are escaped. Braces inside of
    texts are counted too, which at worst takes the other way.
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
        or data.count(b"{", start, first) != data.count(b"}", start, first) + 1  # it may be the name of a label
        or data.find(_METADATA, start, first) >= 0  # the last of two is what counts
    ):
        return None
    metadata = data[start : end + 1] if keep else data[start : first - 1] + b"}"
    return data[:start], metadata, data[end + 1 :]


def _parts(data: bytes, managed_fields: bytes, *, keep: bool) -> _Parts:
    """However the object is written."""
    metadata = bytes(_whole.decode(data).metadata)
    start = data.find(b"{", 1)
    if (
        start < len(_METADATA)
        or not data.startswith(_METADATA, start - len(_METADATA))
        or not data.startswith(metadata, start)
    ):
        return _arranged(data, keep=keep)
    prefix, rest = data[:start], data[start + len(metadata) :]
    if keep or not managed_fields:
        return prefix, metadata, rest
    cut = _managed_fields(metadata, managed_fields)
    return _arranged(data, keep=keep) if cut is None else (prefix, metadata[: cut[0]] + metadata[cut[1] :], rest)


def _managed_fields(metadata: bytes, value: bytes) -> tuple[int, int] | None:
    """Where they stand, with one of the commas around them; None if that is not plain to see."""
    first = metadata.rfind(_MANAGED_FIELDS)
    after = first + len(_MANAGED_FIELDS)
    if first < 0 or not metadata.startswith(value, after):
        return None
    after += len(value)
    if metadata[first - 1] == _COMMA:
        return first - 1, after
    return first, after + (metadata[after] == _COMMA)


def _arranged(data: bytes, *, keep: bool) -> _Parts:
    """The object put together anew, with its metadata first."""
    parts = _fields.decode(data)
    metadata = _fields.decode(parts.pop("metadata"))
    if not keep:
        metadata.pop("managedFields", None)
    head = msgspec.json.encode({name: parts.pop(name) for name in ("apiVersion", "kind") if name in parts})[:-1]
    head += _METADATA if len(head) == 1 else b"," + _METADATA
    rest = b"," + msgspec.json.encode(parts)[1:] if parts else b"}"
    return head, msgspec.json.encode(metadata), rest


@lru_cache(maxsize=4096)
def _shared(data: bytes) -> bytes:
    """One copy of bytes that many objects have."""
    return data
