"""Entries: objects as a cache holds them, as bytes and with the little that is known of each without decoding it.

- What controllers go by (key, uid, version, generation, labels, whether it is being deleted) is there at once, or after
  a look at the metadata alone.
- `read(Pod)` decodes a new object, which is the caller's own: nothing that is done to it changes the cache.
- An entry never changes. A newer state of the object is another entry.
- What follows the metadata may be packed (`ostinato.cache.store.packing`), and is unpacked by whoever reads it.

Entries hold nothing that holds anything else, and the garbage collector never looks at them.
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
from ostinato.api.header import Header, read_header
from ostinato.api.meta import OwnerReference
from ostinato.api.object import KindInfo
from ostinato.api.struct import Struct
from ostinato.client.views import Kind, MetadataOf, PartialObjectMetadata, Unstructured, view_of

T = TypeVar("T")


class CollectionInfo(msgspec.Struct, frozen=True, eq=False):
    """What all entries of a collection have in common: their kind, and whether only their metadata is here."""

    info: KindInfo
    metadata_only: bool = False


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    key: NamespacedName
    uid: str
    resource_version: str
    generation: int
    deletion_timestamp: str | None  # as on the wire; None as long as nobody deleted the object
    labels_json: bytes  # shared among the objects that have the same
    owners_json: bytes  # shared among the objects that have the same
    prefix: bytes  # what stands before the metadata; nothing nested; shared among the objects that have the same
    metadata_bytes: bytes
    suffix: bytes  # what follows the metadata; if there is a reference, the differences from that
    reference: bytes
    collection: CollectionInfo
    fields: dict[str, Any] | None = None  # that indexes go by, if it is about to be indexed and they are known

    def read(self, kind: Kind[T]) -> T:
        """The object in a form of the caller's choice: a class, `Unstructured.of(…)`, `MetadataOf(…)`."""
        view, collection = view_of(kind), self.collection
        gvk = collection.info.gvk
        if view.gvk is not gvk and view.gvk != gvk:
            raise WrongKind(f"{self} is no {view.gvk.kind} of {view.gvk.api_version or 'any version'}")
        if isinstance(view, MetadataOf):
            return cast("T", view.read(self.metadata_json, collection.info))
        if collection.metadata_only:
            raise ObjectError(f"{self}: only its metadata is in the cache; read MetadataOf({view.gvk.kind})")
        return view.read(self.data, collection.info)

    def dict(self) -> dict[str, Any]:
        """The object in JSON shape, with its `apiVersion` and `kind`."""
        return self.read(Unstructured(self.collection.info.gvk))

    def metadata(self) -> PartialObjectMetadata:
        """The metadata alone, which takes a tenth of the time."""
        return self.read(_metadata_view(self.collection.info))

    @property
    def header(self) -> Header:
        """The metadata that controllers go by, in half of that."""
        return read_header(self.metadata_json)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, to be read."""
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
        """The owner that manages the object, if there is one."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None

    @property
    def is_being_deleted(self) -> bool:
        """Whether somebody deleted the object, which stays until its finalizers are gone."""
        return self.deletion_timestamp is not None

    @property
    def metadata_json(self) -> bytes:
        """An object of nothing but the metadata."""
        return b'{"metadata":' + self.metadata_bytes + b"}"

    @property
    def data(self) -> bytes:
        """The object, with its metadata before everything that is nested."""
        reference = self.reference
        suffix = zlib.decompressobj(-15, reference).decompress(self.suffix) if reference else self.suffix
        return b"%b%b%b" % (self.prefix, self.metadata_bytes, suffix)

    def stored(self, suffix: bytes = b"", reference: bytes = b"") -> Entry:
        """The same for a store, which has its indexes: packed if there is a reference."""
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
        """Whether both are the same object at the same version."""
        return self.resource_version == other.resource_version and self.uid == other.uid

    def __str__(self) -> str:
        return f"{self.collection.info.gvk.kind} {self.key}"

    def __repr__(self) -> str:
        return f"<{self} at version {self.resource_version}>"


class _Owners(Struct):
    """What is said of owners in metadata."""

    owner_references: list[OwnerReference] | None = None


class _Uid(msgspec.Struct, gc=False):
    uid: str


_uids = msgspec.json.Decoder(list[_Uid])


@lru_cache(maxsize=4096)
def labels_from(data: bytes) -> Mapping[str, str]:
    """Labels from their JSON; decoded once for all objects that have the same."""
    found = msgspec.json.decode(data) if data else None
    if not isinstance(found, dict):
        return _NO_LABELS
    return MappingProxyType({key: value for key, value in found.items() if isinstance(value, str)})


@lru_cache(maxsize=4096)
def owner_uids_from(data: bytes) -> tuple[str, ...]:
    """The uids of owners from the JSON of the references."""
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
