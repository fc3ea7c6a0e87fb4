"""Watch events in the negotiated form.

An encoding that several watchers request is cached in the event.
"""

from __future__ import annotations

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind
from ostinato.server.request.negotiate import Form
from ostinato.server.request.present import new_table, partial, row
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.records import Entry, Event

_KINDS = ("ADDED", "MODIFIED", "DELETED")
_LINE_HEADS = {kind: b'{"type":"%b","object":' % kind.encode() for kind in (*_KINDS, "BOOKMARK", "ERROR")}
_LINE_END = b"}\n"
_LAST_STATE = "last state"  # key of the last state, among the event's encodings
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class NotAList(Exception):  # noqa: N818
    """A client requested PartialObjectMetadataList, and an event has no list: its watch ends."""


class WatchWriter:
    """Encodes the events of one watch, as lines of JSON or as protobuf frames."""

    def __init__(self, resource: Resource, form: Form, *, identifies_deleted: bool = False) -> None:
        """`identifies_deleted`: `parts` has no more of a deleted object than its identity. Defaults to False."""
        self._resource = resource
        self._form = form
        self._as_stored = not (form.convert or form.media == "protobuf" or resource.from_storage is not None)
        self._identifies_deleted = identifies_deleted and self._as_stored
        self._columns = form.convert == "Table"  # only the first event has the columns
        self._keys = self._encoding_keys()

    def _encoding_keys(self) -> dict[str, str]:
        """By event type, the key of its encoding. Two watches that write the same bytes have the same keys."""
        form, gvk = self._form, self._resource.gvk
        shown = f"{form.convert}.{form.version} {form.include} {self._columns}" if form.convert else ""
        return {kind: f"{kind} {gvk.api_version} {gvk.kind} {form.media} {shown}" for kind in _KINDS}

    def event(self, kind: str, event: Event) -> bytes:
        """Encode an event of this watch."""
        key = self._keys[kind]
        found = event.encoded.get(key)
        if found is None:
            found = self._framed(kind, self._body(_shown(kind, event)))
            event.encoded[key] = found
        else:
            self._sent_columns()
        return found

    def parts(self, kind: str, event: Event) -> tuple[bytes | memoryview, ...]:
        """Like `event`, in parts: without a copy of the object where that is possible, and not cached."""
        if not self._as_stored:
            return (self.event(kind, event),)
        data = _identity(event) if self._identifies_deleted and kind == "DELETED" else None
        if data is None:
            found = event.encoded.get(self._keys[kind])
            if found is not None:
                return (found,)
            data = _shown(kind, event)
        return _LINE_HEADS[kind], *self._resource.wrapped(data), _LINE_END

    def added(self, data: bytes) -> bytes:
        """Encode the ADDED event of an object that exists when the watch begins."""
        return self._framed("ADDED", self._body(data))

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        """Encode a bookmark: all events up to the resourceVersion were sent. `initial`: it ends the initial events."""
        metadata: Json = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        form = self._form
        if form.convert == "Table":
            body = self._bookmark_table(metadata, initial=initial)
        elif form.convert:
            body = self._encoded(self._partial(msgspec.json.encode({"metadata": metadata})))
        else:
            body = self._encoded(_empty(self._resource, metadata))
        return self._framed("BOOKMARK", body)

    def _bookmark_table(self, metadata: Json, *, initial: bool) -> bytes:
        form = self._form
        if initial and form.include == "None":  # the annotation must be included, whatever the client omits
            form = msgspec.structs.replace(form, include="Metadata")
        stored = self._resource.stored(_empty(self._resource, metadata))
        return self._body(msgspec.json.encode(stored), form)

    def error(self, error: APIError) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return self._framed("ERROR", self._encoded(error.to_dict()))

    def _body(self, data: bytes, form: Form | None = None) -> bytes:
        """A stored object in the negotiated form."""
        form = form or self._form
        if form.convert == "Table":
            table = new_table(self._resource, form, columns=self._columns)
            table["metadata"] = {"resourceVersion": msgspec.json.decode(data)["metadata"]["resourceVersion"]}
            table["rows"] = [row(self._resource, data, form)]
            self._sent_columns()
            return self._encoded(table)
        if form.convert:
            return self._encoded(self._partial(data))
        if form.media == "json":
            return self._resource.wrap(data)
        return self._encoded(self._resource.object(data))

    def _partial(self, data: bytes) -> Json:
        if self._form.convert == "PartialObjectMetadataList":
            raise NotAList
        return partial(data, self._form)

    def _sent_columns(self) -> None:
        if self._columns:
            self._columns = False
            self._keys = self._encoding_keys()

    def _encoded(self, value: Json) -> bytes:
        if self._form.media == "protobuf":
            from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

            return protobuf.encode(value)
        return msgspec.json.encode(value)

    def _framed(self, kind: str, body: bytes) -> bytes:
        if self._form.media == "protobuf":
            from ostinato.api import protobuf  # noqa: PLC0415

            return protobuf.watch_event(kind, body)
        return b"%b%b%b" % (_LINE_HEADS[kind], body, _LINE_END)


def _shown(kind: str, event: Event) -> bytes:
    if kind == "DELETED":
        return _last_state(event)
    assert event.entry is not None
    return event.entry.data


def _last_state(event: Event) -> bytes:
    """The object before an event that removes it from a watch, with the event's resourceVersion."""
    found = event.encoded.get(_LAST_STATE)
    if found is None:
        assert event.previous is not None
        found = event.encoded[_LAST_STATE] = _with_version(event.previous, event.version)
    return found


def _identity(event: Event) -> bytes | None:
    """Names, uid and resourceVersion of a deleted object; None if it does not begin with them."""
    assert event.previous is not None
    found = _around_version(event.previous)
    return None if found is None else b'%b"resourceVersion":"%d"}}' % (found[0], event.version)


def _with_version(entry: Entry, version: int) -> bytes:
    """Return a stored object with another resourceVersion."""
    found = _around_version(entry)
    if found is not None:
        return b'%b"resourceVersion":"%d"%b' % (found[0], version, found[1])
    obj = msgspec.json.decode(entry.data)
    obj["metadata"]["resourceVersion"] = str(version)
    return msgspec.json.encode(obj)


def _around_version(entry: Entry) -> tuple[bytes, bytes] | None:
    """What is before and after the resourceVersion of a stored object; None if it is after a nested value."""
    head, field, rest = entry.data.partition(b'"resourceVersion":"%d"' % entry.version)
    return (head, rest) if field and head.startswith(b'{"metadata":{') and head.count(b"{") == 2 else None


# Required fields of an empty object of these kinds, beyond zero values.
_NOT_EMPTY: dict[tuple[str, str], Json] = {
    ("apps", "ControllerRevision"): {"data": None},
    ("apps", "DaemonSet"): {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "0"}}},
    ("apps", "Deployment"): {"spec": {"replicas": 0}},
    ("apps", "ReplicaSet"): {"spec": {"replicas": 0}},
    ("apps", "StatefulSet"): {"spec": {"replicas": 0}},
}

_EMPTY: dict[GroupVersionKind, bytes] = {}  # of the built-in kinds that were watched


def _empty(resource: Resource, metadata: Json) -> Json:
    """The empty object of a bookmark."""
    obj: Json = {"kind": resource.gvk.kind, "apiVersion": resource.gvk.api_version}
    if not resource.custom:
        empty = _EMPTY.get(resource.gvk)
        if empty is None:
            empty = _EMPTY[resource.gvk] = msgspec.json.encode(resource.read({})[0])
        obj.update(msgspec.json.decode(empty))
        for field, shown in _NOT_EMPTY.get((resource.gvk.group, resource.gvk.kind), {}).items():
            obj[field] = {**obj.get(field, {}), **shown} if isinstance(shown, dict) else shown
    annotations = {**obj.get("metadata", {}).get("annotations", {}), **metadata.get("annotations", {})}
    obj["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
    return obj
