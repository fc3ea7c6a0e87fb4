"""Entries: objects as a cache stores them, as JSON with the metadata that controllers need most.

- Key, uid, resourceVersion, generation, labels and deletionTimestamp are read without decoding, or from the metadata
  alone.
- `read` decodes the object into the requested form; each call returns a new object, which the caller may change.
- Immutable. Bytes that many objects have in common (labels, owners, prefix) are stored once.
- Entries refer to nothing that the garbage collector has to traverse.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec

from ostinato.api.codec import ObjectError, WrongKind, from_json
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import KindInfo
from ostinato.api.serializer.header import Header, read_header
from ostinato.api.struct import BuiltinStruct
from ostinato.client.views import Kind, MetadataOf, PartialObjectMetadata, Unstructured, view_of

T = TypeVar("T")


class CollectionInfo(msgspec.Struct, frozen=True, eq=False):
    """What the entries of a collection have in common: their kind, and whether they hold metadata only."""

    info: KindInfo
    metadata_only: bool = False


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    key: NamespacedName
    uid: str
    resource_version: str
    generation: int
    deletion_timestamp: str | None  # as on the wire; None unless the object is being deleted
    labels_json: bytes  # shared among equal ones
    owners_json: bytes  # shared among equal ones
    prefix: bytes  # the JSON before the metadata, without nested values; shared among equal ones
    metadata_bytes: bytes
    suffix: bytes  # the JSON after the metadata; compressed against `reference`, if there is one
    reference: bytes
    collection: CollectionInfo
    fields: dict[str, Any] | None = None  # indexed fields that decoding found; None once stored

    def read(self, kind: Kind[T]) -> T:
        """Decode the object as a class, `Unstructured.of(…)` or `MetadataOf(…)`."""
        view, collection = view_of(kind), self.collection
        gvk = collection.info.gvk
        if view.gvk is not gvk and view.gvk != gvk:
            raise WrongKind(f"{self}: not a {view.gvk.kind} of {view.gvk.api_version or 'any version'}")
        if isinstance(view, MetadataOf):
            return cast("T", view.read(self.metadata_json, collection.info))
        if collection.metadata_only:
            raise ObjectError(f"{self}: the cache has metadata only; read MetadataOf({view.gvk.kind})")
        return view.read(self.data, collection.info)

    def dict(self) -> dict[str, Any]:
        """Decode the object as a dict, with `apiVersion` and `kind`."""
        return self.read(Unstructured(self.collection.info.gvk))

    def metadata(self) -> PartialObjectMetadata:
        """Decode the metadata, which takes a tenth of the time of the object."""
        return self.read(_metadata_view(self.collection.info))

    @property
    def header(self) -> Header:
        """The metadata fields that controllers need most, in half the time of `metadata`."""
        return read_header(self.metadata_json)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only."""
        return labels_from(self.labels_json)

    @property
    def owner_uids(self) -> tuple[str, ...]:
        return owner_uids_from(self.owners_json)

    @property
    def owner_references(self) -> list[OwnerReference]:
        if not self.owners_json:
            return []
        return from_json(_Owners, b'{"ownerReferences":%b}' % self.owners_json).owner_references or []

    @property
    def controller(self) -> OwnerReference | None:
        """The controller reference, if there is one."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None

    @property
    def is_being_deleted(self) -> bool:
        """Whether the object has a deletionTimestamp."""
        return self.deletion_timestamp is not None

    @property
    def metadata_json(self) -> bytes:
        """JSON of an object with nothing but the metadata."""
        return b'{"metadata":' + self.metadata_bytes + b"}"

    @property
    def content(self) -> bytes:
        """The JSON after the metadata, where an object has its spec and status."""
        return _unpacked(self.suffix, self.reference) if self.reference else self.suffix

    @property
    def data(self) -> bytes:
        """JSON of the object, with the metadata before all other nested values."""
        return b"%b%b%b" % (self.prefix, self.metadata_bytes, self.content)

    def stored(self, suffix: bytes = b"", reference: bytes = b"") -> Entry:
        """Return the entry as a store keeps it: without `fields`, and packed if there is a reference."""
        if not reference:
            if self.fields is None:
                return self
            suffix, reference = self.suffix, self.reference
        return Entry(
            self.key,
            self.uid,
            self.resource_version,
            self.generation,
            self.deletion_timestamp,
            self.labels_json,
            self.owners_json,
            self.prefix,
            self.metadata_bytes,
            suffix,
            reference,
            self.collection,
        )

    def same_state(self, other: Entry) -> bool:
        """Whether both are the same object at the same resourceVersion."""
        return self.resource_version == other.resource_version and self.uid == other.uid

    def __str__(self) -> str:
        return f"{self.collection.info.gvk.kind} {self.key}"

    def __repr__(self) -> str:
        return f"<{self} at resourceVersion {self.resource_version}>"


class _Owners(BuiltinStruct):
    owner_references: list[OwnerReference] | None = None


class _Uid(msgspec.Struct, gc=False):
    uid: str


_uids = msgspec.json.Decoder(list[_Uid])


@lru_cache(maxsize=256)  # the handlers of an event read the same entries
def _unpacked(suffix: bytes, reference: bytes) -> bytes:
    return zlib.decompressobj(-15, reference).decompress(suffix)


@lru_cache(maxsize=4096)
def labels_from(data: bytes) -> Mapping[str, str]:
    """Decode labels; once for all objects with the same."""
    found = msgspec.json.decode(data) if data else None
    if not isinstance(found, dict):
        return _NO_LABELS
    return MappingProxyType({key: value for key, value in found.items() if isinstance(value, str)})


@lru_cache(maxsize=4096)
def owner_uids_from(data: bytes) -> tuple[str, ...]:
    """Decode the uids of ownerReferences."""
    if not data:
        return ()
    try:
        return tuple([each.uid for each in _uids.decode(data)])
    except msgspec.ValidationError:
        found = msgspec.json.decode(data)
    owners = [each.get("uid") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return tuple(uid for uid in owners if isinstance(uid, str))


_NO_LABELS: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=1024)
def _metadata_view(info: KindInfo) -> MetadataOf:
    return MetadataOf(info.gvk)
