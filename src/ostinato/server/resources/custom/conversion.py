"""Webhook conversion of custom resources between versions.

Objects are stored in the storage version; the webhook converts them to every other version. Gets and writes always call
the webhook. Lists and watches cache its results: one call for each object and resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from ostinato.api.apply import TypedError
from ostinato.api.errors import TooManyRequests, Unknown
from ostinato.api.gvk import GroupVersionKind
from ostinato.server.resources.custom.conversion_review import Conversions
from ostinato.server.resources.custom.definition import Version, shaped
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.store.records import Entry, Event

T = TypeVar("T")


class ConversionNeeded(Exception):  # noqa: N818
    """An object is needed in another version, and the webhook has not been called for it yet."""

    def __init__(self, value: Json, to: str) -> None:
        super().__init__(f"to {to}")
        self.value = value
        self.to = to

    @property
    def key(self) -> bytes:
        return msgspec.json.encode([self.value, self.to])


class Conversion:
    """Conversion to and from one served version."""

    def __init__(self, conversions: Conversions, version: Version) -> None:
        self._conversions = conversions
        self._definition = conversions.definition
        self._kind: str = conversions.definition.names["kind"]
        self._version = version
        self._beginning = msgspec.json.encode({"apiVersion": version.api_version})[:-1] + b","
        # Results for field managers while `resolve` runs: objects in another version, or the error.
        self._known: dict[bytes, Json | str] = {}

    # Reading

    async def data(self, data: bytes) -> bytes:
        """Convert stored data to this version."""
        return (await self._all([data]))[0]

    async def entry(self, entry: Entry) -> Entry:
        """Convert an entry to this version, without the cache."""
        if entry.data.startswith(self._beginning):
            return entry
        return self._kept(entry, await self.data(entry.data))

    async def entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Convert entries to this version, with the cache."""
        missing = [entry for entry in entries if self._found(entry) is None]
        if missing:
            try:
                converted = await self._all([entry.data for entry in missing])
            except Unknown as error:
                gvk = GroupVersionKind.of(self._version.api_version, self._kind)
                why = f"storage is (re)initializing: failed to list {gvk}: {error}"
                raise TooManyRequests.of(why, 1) from None
            for entry, data in zip(missing, converted, strict=True):
                self._kept(entry, data)
        return [self._found(entry) or entry for entry in entries]

    async def events(self, events: Iterable[Event]) -> list[Event]:
        """Convert events to this version, with the cache."""
        events = list(events)
        shown = [entry for event in events for entry in (event.entry, event.previous) if entry is not None]
        await self.entries(shown)
        return [
            Event(event.key, event.version, self._found(event.entry), self._found(event.previous), event.time)
            for event in events
        ]

    def _found(self, entry: Entry | None) -> Entry | None:
        if entry is None or entry.data.startswith(self._beginning):
            return entry
        kept: dict[str, Entry] = getattr(entry, "converted", {})
        return kept.get(self._version.api_version)

    def _kept(self, entry: Entry, data: bytes) -> Entry:
        obj = msgspec.json.decode(data)
        labels = obj["metadata"].get("labels") or {}
        made = Entry(entry.key, entry.version, data, labels, self._definition.fields(obj), entry.uid)
        entry.converted = {**getattr(entry, "converted", {}), self._version.api_version: made}
        return made

    async def _all(self, stored: list[bytes]) -> list[bytes]:
        """Convert stored data to this version. The webhook does not see resourceVersions."""
        found: list[bytes | None] = [data if data.startswith(self._beginning) else None for data in stored]
        objects: list[Json] = []
        versions: list[str] = []
        for data, done in zip(stored, found, strict=True):
            if done is None:
                obj = {"kind": self._kind, **msgspec.json.decode(data)}
                versions.append(obj["metadata"].pop("resourceVersion", ""))
                objects.append(obj)
        converted = iter(
            zip(await self._conversions.convert(objects, self._version.api_version), versions, strict=True)
        )
        return [data if data is not None else self._stored(*next(converted)) for data in found]

    def _stored(self, obj: Json, version: str) -> bytes:
        """A converted object, encoded as it would be stored in this version."""
        obj = shaped(self._version.node, obj)
        metadata = {**obj["metadata"], "resourceVersion": version} if version else obj["metadata"]
        rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
        ordered = {name: metadata[name] for name in sorted(metadata)}
        return msgspec.json.encode({"apiVersion": self._version.api_version, "metadata": ordered, **rest})

    # Writing

    async def to_storage(self, obj: Json) -> Json:
        """Convert an object of this version to the storage version."""
        storage = self._definition.storage
        if obj["apiVersion"] == storage.api_version:
            return obj
        metadata = dict(obj["metadata"])
        version = metadata.pop("resourceVersion", None)
        (made,) = await self.between([{**obj, "metadata": metadata}], storage.api_version)
        if version is not None:
            made["metadata"]["resourceVersion"] = version
        apply_defaults(storage.node, made)
        return made

    async def between(self, objects: list[Json], to: str) -> list[Json]:
        """Convert objects to another version, pruned to its schema."""
        node = self._definition.version(to).node
        return [shaped(node, obj) for obj in await self._conversions.convert(objects, to)]

    # Field managers are synchronous: `resolve` calls the webhook for them.

    async def resolve(self, make: Callable[[], T]) -> T:
        """Call `make`, which uses `known`; after each Unconverted, call the webhook and call it again."""
        known: dict[bytes, Json | str] = {}
        while True:
            self._known = known
            try:
                return make()
            except ConversionNeeded as missing:
                wanted = missing
            finally:
                self._known = {}
            try:
                (known[wanted.key],) = await self._conversions.convert([wanted.value], wanted.to)
            except Unknown as error:
                known[wanted.key] = str(error)

    def known(self, value: Json, to: str) -> Json:
        """An object in another version, for field managers; Unconverted if the webhook has not been called for it."""
        if value.keys() <= {"kind", "apiVersion", "metadata"} and not value.get("metadata"):
            return {**value, "apiVersion": to}  # an empty object is empty in all versions
        wanted = ConversionNeeded(value, to)
        found = self._known.get(wanted.key)
        if found is None:
            raise wanted
        if isinstance(found, str):
            raise TypedError([found])
        return found
