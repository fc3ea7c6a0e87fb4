"""Objects of one world: the metadata that garbage collection, children and identities need, updated by each write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.store.records import Write
from ostinato.testing.explore.world.disk import Objects, Place


class OwnerReference(msgspec.Struct, rename="camel"):
    uid: str
    name: str
    kind: str = ""
    api_version: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    generation: int = 0
    deletion_timestamp: str = ""
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    labels: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct):
    metadata: msgspec.Raw


_decoder: Final = msgspec.json.Decoder(_Object)
_metadata_decoder: Final = msgspec.json.Decoder(Metadata)


def uids_of(objects: Objects) -> frozenset[str]:
    return frozenset(_metadata_decoder.decode(_decoder.decode(data).metadata).uid for _, data in objects.values())


class KnownObjects:
    """The objects that were written since the image, and the names that the server has generated."""

    def __init__(self, kinds: Mapping[str, GroupVersionKind], base: Collection[str]) -> None:
        """`base`: uids of the objects of the image."""
        self.kinds = kinds
        self.metadata: dict[Place, Metadata] = {}
        self.uids: dict[str, Place] = {}
        self.state = 0  # hash of all objects; equal for equal objects, regardless of uids, times and resourceVersions
        self._hashes: dict[Place, int] = {}  # of each, whose sum it is
        self._aliases: dict[str, str] = {}  # of generated names
        self._base = base

    def written(self, write: Write) -> Metadata | None:
        """Update the metadata of an object; None if it was deleted."""
        place = (write.collection, write.key)
        self.state -= self._hashes.pop(place, 0)
        if write.data is None:
            if place not in self.metadata:
                self.state += hash(place)  # an object of the image
            known = self.metadata.pop(place, None)
            if known is not None:
                self.uids.pop(known.uid, None)
            return None
        raw = _decoder.decode(write.data).metadata
        metadata = self.metadata[place] = _metadata_decoder.decode(raw)
        self.uids[metadata.uid] = place
        if metadata.generate_name:
            self._aliases[metadata.name] = f"{metadata.generate_name}*"
        self._hashes[place] = found = self._hash(place, metadata, write.data.replace(bytes(raw), b"", 1))
        self.state += found
        return metadata

    def _hash(self, place: Place, metadata: Metadata, rest: bytes) -> int:
        """Return the hash of an object. `rest`: without its metadata."""
        return hash(
            (
                place[0],
                self.stable(place[1]),
                metadata.generation,
                metadata.deletion_timestamp != "",
                tuple(metadata.finalizers),
                tuple((owner.kind, owner.name, owner.uid in self.uids) for owner in metadata.owner_references),
                bytes(metadata.labels),
                bytes(metadata.annotations),
                rest,
            )
        )

    @property
    def has_generated_names(self) -> bool:
        return bool(self._aliases)

    def stable(self, key: str) -> str:
        """Return `namespace/name` with the prefix of a generated name in place of the name."""
        namespace, slash, name = key.rpartition("/")
        return f"{namespace}{slash}{self._aliases.get(name, name)}"

    def children(self, namespace: str, name: str) -> list[tuple[GroupVersionKind, str, str]]:
        """Return kind, namespace and name of what objects of this name own."""
        return [
            (self.kinds[place[0]], each.namespace, each.name)
            for place, each in self.metadata.items()
            if place[0] in self.kinds
            and each.namespace in ("", namespace)
            and any(owner.name == name for owner in each.owner_references)
        ]

    def dangling(self) -> list[Place]:
        """Return the objects whose owners are all gone."""
        return [
            place
            for place, each in self.metadata.items()
            if each.owner_references and not each.deletion_timestamp and self.is_garbage(place)
        ]

    def is_garbage(self, place: Place) -> bool:
        """Whether the owners of an object are all gone, as when its maker has not seen their deletion yet."""
        each = self.metadata.get(place)
        if each is None or not each.owner_references:
            return False
        return not any(self._is_live(each, owner) for owner in each.owner_references)

    def dependents(self, uid: str) -> list[Place]:
        return [
            place for place, each in self.metadata.items() if any(owner.uid == uid for owner in each.owner_references)
        ]

    def _is_live(self, child: Metadata, owner: OwnerReference) -> bool:
        place = self.uids.get(owner.uid)
        if place is None:
            return owner.uid in self._base
        return self.metadata[place].namespace in ("", child.namespace)
