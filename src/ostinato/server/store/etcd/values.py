"""Values in etcd: objects as kube-apiserver stores them, to and from the data of entries.

- Built-in kinds are protobuf or JSON, by setting; both are read. Custom resources are JSON.
- A value has no resourceVersion: an object's is the revision of its last write.
- Values are encrypted with their etcd key as context, which kube-apiserver authenticates too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from ostinato.api import protobuf
from ostinato.api.protobuf.tables import MAGIC
from ostinato.server.store.collection import Collection
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.etcd import definitions
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.records import METADATA_ORDER, UnusableStore
from ostinato.world import Ids

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Draft(NamedTuple):
    """An object to be written. Its data is complete when etcd has given it a revision."""

    head: bytes
    tail: bytes
    value: bytes  # for etcd

    def data(self, version: int) -> bytes:
        return b'%b"resourceVersion":"%d"%b' % (self.head, version, self.tail)


class Values:
    def __init__(self, layout: Layout, encryption: Encryption, ids: Ids, *, protobuf: bool = True) -> None:
        """`protobuf`: whether built-in kinds are written so; otherwise as JSON."""
        self._layout = layout
        self._encryption = encryption
        self._protobuf = protobuf
        # A resourceVersion that no client can know, so that its place in encoded objects is found with certainty.
        self.placeholder = 10**30 + int.from_bytes(ids.token(12))
        self._member = b'"resourceVersion":"%d"' % self.placeholder
        self._outdated: set[bytes] = set()

    def draft(self, collection: Collection, key: bytes, data: bytes) -> Draft:
        """Prepare an object that was encoded with the placeholder."""
        head, member, tail = data.partition(self._member)
        assert member, f"{collection.name}: an object without resourceVersion"
        bare = head + tail[1:] if tail.startswith(b",") else head.removesuffix(b",") + tail
        value = self._value(collection, bare)
        if self._encryption.is_configured:
            value = self._encryption.providers(collection.name)[0].encrypt(value, key)
        return Draft(head, tail, value)

    def _value(self, collection: Collection, data: bytes) -> bytes:
        stored = self._layout.stored(collection.name)
        if stored is None:
            assert collection.kind is not None, f"{collection.name}: the kind is not known"
            return b'{"kind":%b,%b' % (_encode(collection.kind.kind), data[1:])
        if self._protobuf and stored.media == "protobuf":
            with suppress(protobuf.EncodeError):  # JSON can hold values that protobuf cannot
                return protobuf.encode({"kind": stored.kind, "apiVersion": stored.api_version, **_decode(data)})
        return b'{"kind":%b,"apiVersion":%b,%b' % (_encode(stored.kind), _encode(stored.api_version), data[1:])

    def read(self, collection: Collection, key: bytes, value: bytes, version: int) -> bytes:
        """The data of an entry; UnusableStore if the value cannot be read. Notes whether it is outdated."""
        data, is_outdated = self._read(collection, key, value, version)
        if is_outdated:
            self._outdated.add(key)
        else:
            self._outdated.discard(key)
        return data

    def read_past(self, collection: Collection, key: bytes, value: bytes, version: int) -> bytes:
        """Like `read`, of a value that may have been replaced."""
        return self._read(collection, key, value, version)[0]

    def _read(self, collection: Collection, key: bytes, value: bytes, version: int) -> tuple[bytes, bool]:
        name = key.decode()
        value, is_outdated = self._encryption.decrypt(collection.name, name, value, key)
        stored = self._layout.stored(collection.name)
        is_protobuf = value.startswith(MAGIC)
        try:
            obj: dict[str, Any] = protobuf.decode(value) if is_protobuf else _decode(value)
            metadata = {**obj["metadata"], "resourceVersion": str(version)}
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableStore(f"{name}: the value cannot be read: {error}") from error
        if stored is not None:
            wanted = self._protobuf and stored.media == "protobuf"
            is_outdated = is_outdated or is_protobuf != wanted or obj.get("apiVersion") != stored.api_version
        if obj.get("apiVersion") == definitions.VERSION:
            obj = definitions.from_v1beta1(obj)
        metadata.pop("selfLink", None)
        custom = stored is None
        order = sorted(metadata) if custom else [field for field in METADATA_ORDER if field in metadata]
        del obj["metadata"]
        obj.pop("kind", None)
        version_ = obj.pop("apiVersion", "")
        data = {"apiVersion": version_} if custom else {}
        data |= {"metadata": {field: metadata[field] for field in order}, **obj}
        return _encode(data if collection.complete is None else collection.complete(data)), is_outdated

    def is_outdated(self, key: bytes) -> bool:
        """Whether the value would be written in another form now: another provider, media type or API version."""
        return key in self._outdated

    def forget(self, key: bytes) -> None:
        """Note that an object was written or deleted."""
        self._outdated.discard(key)
