"""Conversion by webhook: what one version of a definition says, in the words of another.

A kind whose definition names a conversion webhook is stored in its storage version, and every other version is what the
webhook makes of it. It may change all but metadata, of which labels and annotations are its own to say.

- A single read and every write ask the webhook. Lists and watches ask it once for each version of an object.
- What does not come back as it must (one object for each, of the version and kind that is asked for, with the name,
  namespace and uid that it had) fails the request, in the words of a kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ostinato.api import names
from ostinato.api.apply import TypedError
from ostinato.api.errors import TooManyRequests, Unknown
from ostinato.api.field_errors import Path, joined
from ostinato.api.gvk import GroupVersionKind
from ostinato.server.resources.custom.definition import Definition, Version, shaped
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.builtin import json_type
from ostinato.server.schema.default import apply_defaults
from ostinato.server.store.index import Entry, Event
from ostinato.server.webhooks.review import check_kind, decoded, version_of
from ostinato.server.webhooks.target import CallError

if TYPE_CHECKING:
    from ostinato.server.webhooks.target import Ask
    from ostinato.world import Ids

T = TypeVar("T")
_SECONDS: Final = 30  # for an answer
_MOST_OBJECTS: Final = 100  # of one review
_MOST_BYTES: Final = 2 << 20
_GO_TYPES: Final = {type(None): "<nil>", str: "string", bool: "bool", int: "int64", float: "float64"} | {
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class Conversions:
    """The webhook of a definition."""

    def __init__(self, definition: Definition, ask: Ask, ids: Ids) -> None:
        webhook = definition.spec["conversion"]["webhook"]
        self.definition = definition
        self._kind: str = definition.names["kind"]
        self._client: Json = webhook["clientConfig"]
        self._review = version_of(webhook.get("conversionReviewVersions") or [])
        self._ask = ask
        self._ids = ids

    async def convert(self, objects: Sequence[Json], to: str) -> list[Json]:
        """Objects of other versions in a version, each with its kind and apiVersion; Unknown if that fails."""
        converted: list[Json] = []
        for batch in _batches(objects):
            try:
                converted += await self._converted(batch, to)
            except Unknown:
                if len(batch) == 1:
                    raise
                for obj in batch:  # so that what is told is about the one that it is about
                    converted += await self._converted([obj], to)
        return converted

    async def _converted(self, objects: list[Json], to: str) -> list[Json]:
        known = [version.api_version for version in self.definition.versions]
        for obj in objects:
            if obj["apiVersion"] not in known:
                raise Unknown.of(f"request to convert CR from an invalid group/version: {obj['apiVersion']}")
        about = f"conversion webhook for {GroupVersionKind.of(objects[0]['apiVersion'], self._kind)}"
        try:
            answers = await self._reviewed(objects, to)
        except CallError as error:
            raise Unknown.of(f"{about} failed: {error}") from None
        if len(answers) != len(objects):
            raise Unknown.of(f"{about} returned {len(answers)} objects, expected {len(objects)}")
        return [_checked(about, obj, answer, to) for obj, answer in zip(objects, answers, strict=True)]

    async def _reviewed(self, objects: list[Json], to: str) -> list[Any]:
        if not self._review:
            raise Unknown.of("no supported conversion review versions")
        expected = GroupVersionKind("apiextensions.k8s.io", self._review, "ConversionReview")
        uid = self._ids.uid()
        review = {
            "kind": expected.kind,
            "apiVersion": expected.api_version,
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        answer = decoded(await self._ask(self._client, msgspec.json.encode(review), _SECONDS), expected)
        fault = check_kind(answer, expected) if self._review == "v1" else ""
        if fault:
            raise CallError(fault)
        response = answer.get("response")
        if not isinstance(response, dict):
            raise CallError("no response provided")
        if self._review == "v1" and response.get("uid", "") != uid:
            raise CallError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
        result = response.get("result") or {}
        if result.get("status") != "Success":
            told = result.get("message") or f"response.result.status was '{result.get('status') or ''}', not 'Success'"
            raise CallError(told)
        return response.get("convertedObjects") or []


def _batches(objects: Sequence[Json]) -> Iterator[list[Json]]:
    batch: list[Json] = []
    size = 0
    for obj in objects:
        length = len(msgspec.json.encode(obj)) if len(objects) > 1 else 0
        if batch and (len(batch) >= _MOST_OBJECTS or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(obj)
        size += length
    if batch:
        yield batch


def _checked(about: str, original: Json, converted: Any, to: str) -> Json:
    """A converted object, with the metadata of the original but for labels and annotations."""
    if not isinstance(converted, dict):
        if converted is None:
            raise Unknown.of("unexpected end of JSON input")
        raise Unknown.of(
            f"json: cannot unmarshal {json_type(converted)} into Go value of type map[string]interface {{}}"
        )
    if not converted.get("kind"):
        raise Unknown.of(f"Object 'Kind' is missing in '{msgspec.json.encode(converted).decode()}'")
    faulty = f"{about} returned invalid object"
    if converted.get("apiVersion") != to:
        found = converted.get("apiVersion", "")
        raise Unknown.of(f"{faulty} at index 0: invalid groupVersion (expected {to}, received {found})")
    if converted["kind"] != original["kind"]:
        raise Unknown.of(
            f"{faulty} at index 0: invalid kind (expected {original['kind']}, received {converted['kind']})"
        )
    before: Json = original.get("metadata", {})
    after = converted.get("metadata")
    for field, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        new = after.get(field, "") if isinstance(after, dict) else ""
        if before.get(field, "") != new:
            raise Unknown.of(f"{faulty}: must have the same {shown}: {before.get(field, '')} != {new}")
    metadata = dict(before)
    for field in ("labels", "annotations"):
        try:
            _take(metadata, field, after if isinstance(after, dict) else {})
        except ValueError as error:
            raise Unknown.of(f"{about} returned invalid metadata: {error}") from None
    return {**converted, "metadata": metadata}


def _take(metadata: Json, field: str, converted: Json) -> None:
    """Labels or annotations of a converted object; ValueError if they are none."""
    values = converted.get(field)
    if values is None:
        metadata.pop(field, None)
        return
    if not isinstance(values, dict):
        raise ValueError(f"invalid metadata.{field} of type {_GO_TYPES[type(values)]} in converted object")
    for key, value in values.items():
        if not isinstance(value, str):
            kind = _GO_TYPES[type(value)]
            raise ValueError(f"metadata.{field}[{key}] must be a string, but is {kind} in converted object")
    if values != metadata.get(field, {}):
        if field == "labels":
            faults = names.validate_labels(values, Path("metadata", "labels"))
        else:
            faults = names.validate_annotations(values, Path("metadata", "annotation"))
        if faults:
            raise ValueError(joined(faults))
    metadata[field] = values


class Unconverted(Exception):  # noqa: N818
    """Something is needed in another version, and only the webhook knows it."""

    def __init__(self, value: Json, to: str) -> None:
        super().__init__(f"to {to}")
        self.value = value
        self.to = to

    @property
    def key(self) -> bytes:
        return msgspec.json.encode([self.value, self.to])


class Conversion:
    """Conversion to and from one version that is served."""

    def __init__(self, conversions: Conversions, version: Version) -> None:
        self._conversions = conversions
        self._definition = conversions.definition
        self._kind: str = conversions.definition.names["kind"]
        self._version = version
        self._beginning = msgspec.json.encode({"apiVersion": version.api_version})[:-1] + b","
        # What field managers have asked for, while they work: objects in another version, or why there are none.
        self._known: dict[bytes, Json | str] = {}

    # Reading

    async def data(self, data: bytes) -> bytes:
        """Stored data in this version."""
        return (await self._all([data]))[0]

    async def entry(self, entry: Entry) -> Entry:
        """An entry in this version, asked for now."""
        if entry.data.startswith(self._beginning):
            return entry
        return self._kept(entry, await self.data(entry.data))

    async def entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Entries in this version, of which those that were asked for before are not asked for again."""
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
        """Events in this version; the same rules."""
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
        """Stored data in this version. The webhook sees no versions of objects: they are not its affair."""
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
        """A converted object as one of this version would be stored."""
        obj = shaped(self._version.node, obj)
        metadata = {**obj["metadata"], "resourceVersion": version} if version else obj["metadata"]
        rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
        ordered = {name: metadata[name] for name in sorted(metadata)}
        return msgspec.json.encode({"apiVersion": self._version.api_version, "metadata": ordered, **rest})

    # Writing

    async def to_storage(self, obj: Json) -> Json:
        """An object of this version in the storage version, as it is stored."""
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
        """Objects in another version, cut to its schema."""
        node = self._definition.version(to).node
        return [shaped(node, obj) for obj in await self._conversions.convert(objects, to)]

    # Field managers, which cannot wait

    async def resolve(self, make: Callable[[], T]) -> T:
        """What `make` gives, which asks `known`: called again with each answer that it needs."""
        known: dict[bytes, Json | str] = {}
        while True:
            self._known = known
            try:
                return make()
            except Unconverted as missing:
                wanted = missing
            finally:
                self._known = {}
            try:
                (known[wanted.key],) = await self._conversions.convert([wanted.value], wanted.to)
            except Unknown as error:
                known[wanted.key] = str(error)

    def known(self, value: Json, to: str) -> Json:
        """An object in another version, for field managers; Unconverted if it is yet to be asked for."""
        if value.keys() <= {"kind", "apiVersion", "metadata"} and not value.get("metadata"):
            return {**value, "apiVersion": to}  # an empty object is empty in all versions
        wanted = Unconverted(value, to)
        found = self._known.get(wanted.key)
        if found is None:
            raise wanted
        if isinstance(found, str):
            raise TypedError([found])
        return found
