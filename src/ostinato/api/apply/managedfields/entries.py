"""metadata.managedFields: decode, encode and cap the entries.

- Entries are sorted by operation, time, manager, apiVersion and subresource.
- A list with an invalid entry is rejected as a whole.
- At most `MAX_UPDATERS` entries of updates are kept; older ones are merged (`cap`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from ostinato.api.apply.fieldpath.field_set import FieldSet, FieldSetError, ordered, parse, union
from ostinato.api.apply.managedfields.updater import Identity, Owned, Owners
from ostinato.api.text.go_format import json_text, quote
from ostinato.api.time import Time, TimeError

Entry = dict[str, Any]

_EPOCH = "1970-01-01T00:00:00Z"  # sort key of entries without a time
_TEXTS = ("manager", "operation", "apiVersion", "fieldsType", "subresource", "time")


class ManagedFieldsError(ValueError):
    """managedFields cannot be decoded."""


class Managed:
    """Decoded managedFields: the field set of each manager, and the time of its last change."""

    __slots__ = ("as_read", "owners", "read_from", "times")

    def __init__(self, owners: Owners | None = None, times: dict[Identity, str] | None = None) -> None:
        self.owners = owners if owners is not None else {}
        self.times = times if times is not None else {}
        self.read_from: Any = None  # the decoded list
        self.as_read: dict[Identity, FieldSet] = {}  # the decoded sets; unchanged ones are already ordered


class _Read(msgspec.Struct, rename="camel", gc=False):
    """A valid entry."""

    operation: Literal["Apply", "Update"]
    api_version: Annotated[str, msgspec.Meta(min_length=1)]
    fields_type: Literal["FieldsV1"]
    fields: Any = msgspec.field(default=None, name="fieldsV1")
    manager: str = ""
    subresource: str = ""
    time: str = ""


def decode(entries: Any) -> Managed:
    """Decode managedFields; None is an empty list. Raises ManagedFieldsError."""
    managed = Managed()
    if entries is None:
        return managed
    if not isinstance(entries, list):
        raise ManagedFieldsError("managedFields must be a list")
    managed.read_from = entries
    for index, entry in enumerate(entries):
        try:
            read = msgspec.convert(entry, _Read)
        except msgspec.ValidationError:
            read = _read(entry, index)
        applied = read.operation == "Apply"
        identity = Identity(read.manager, read.operation, "" if applied else read.api_version, read.subresource)
        try:
            fields = parse(read.fields)
        except FieldSetError as error:
            raise ManagedFieldsError(f"error decoding versioned set of entry {index}: {error}") from None
        managed.owners[identity] = Owned(fields, read.api_version, applied)
        managed.as_read[identity] = fields
        managed.times.pop(identity, None)
        if read.time:
            managed.times[identity] = canonical_time(read.time)
    return managed


def _read(entry: Any, index: int) -> _Read:
    """Decode an entry that msgspec rejects: null is the same as absent; errors have kube-apiserver's messages."""
    if not isinstance(entry, dict):
        raise ManagedFieldsError(f"managed fields entry {index} must be an object")
    for name in _TEXTS:
        if not isinstance(entry.get(name) or "", str):
            raise ManagedFieldsError(f"{name} must be a string in managed fields entry {index}")
    operation = entry.get("operation")
    if operation not in ("Apply", "Update"):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    api_version = entry.get("apiVersion")
    if not api_version:
        raise ManagedFieldsError("apiVersion must not be empty")
    fields_type = entry.get("fieldsType")
    if not fields_type:
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
    if fields_type != "FieldsV1":
        raise ManagedFieldsError(f"invalid fieldsType {quote(fields_type)} in managed fields entry {index}")
    manager, subresource, time = (entry.get(name) or "" for name in ("manager", "subresource", "time"))
    return _Read(operation, api_version, fields_type, entry.get("fieldsV1"), manager, subresource, time)


def canonical_time(text: str) -> str:
    """Return a time in its canonical form. Raises ManagedFieldsError."""
    return _usual_time(text) if len(text) <= _USUAL_TIME else _time(text)


def _time(text: str) -> str:
    try:
        return str(Time.parse(text))
    except TimeError as error:
        raise ManagedFieldsError(str(error)) from None


_USUAL_TIME = 40  # characters
_usual_time = lru_cache(maxsize=1024)(_time)  # many objects have the same times


def encode(managed: Managed) -> list[Entry]:
    """Encode managedFields."""
    as_read, times = managed.as_read, managed.times
    entries: list[Entry] = []
    for identity, owned in managed.owners.items():
        fields = owned.fields if owned.fields is as_read.get(identity) else ordered(owned.fields)
        entries.append(encode_entry(identity, owned, fields, times.get(identity, "")))
    return sort_entries(entries)


def encode_entry(identity: Identity, owned: Owned, fields: FieldSet, time: str) -> Entry:
    """Encode one entry; `fields` must be ordered."""
    entry: Entry = {}
    if identity.manager:
        entry["manager"] = identity.manager
    entry["operation"] = "Apply" if owned.applied else identity.operation
    entry["apiVersion"] = owned.api_version
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def sort_entries(entries: list[Entry]) -> list[Entry]:
    """Sort the list in place and return it."""
    if len(entries) > 1:
        entries.sort(key=_sort_key)
    return entries


def _sort_key(entry: Entry) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time", _EPOCH),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def identity_text(identity: Identity) -> str:
    """Return the manager identifier as Kubernetes writes it, for sorting."""
    keys = ("manager", "operation", "apiVersion", "subresource")
    return (
        "{" + ",".join(f'"{key}":{json_text(value)}' for key, value in zip(keys, identity, strict=True) if value) + "}"
    )


def is_reset(entries: Any) -> bool:
    """Whether a request resets managedFields: an empty list, or one empty entry."""
    return isinstance(entries, list) and (
        not entries
        or (
            len(entries) == 1
            and isinstance(entries[0], dict)
            and entries[0].get("fieldsV1") is None
            and not any(entries[0].values())
        )
    )


# Capping

MAX_UPDATERS = 10  # entries of updates per object
_ANCIENT = "ancient-changes"


def cap(managed: Managed) -> None:
    """Merge the oldest updates of each version into one entry, down to `MAX_UPDATERS`. Modifies `managed`."""
    owners, times = managed.owners, managed.times
    if len(owners) <= MAX_UPDATERS:
        return
    updaters = [identity for identity, owned in owners.items() if not owned.applied]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda identity: (times.get(identity, _EPOCH), identity_text(identity)))
    first: dict[str, Identity] = {}  # the oldest of each version; merged when a second one is found
    for identity in updaters:
        if excess == 0:
            return
        owned = owners[identity]
        if owned.api_version not in first:
            first[owned.api_version] = identity
            continue
        bucket = Identity(_ANCIENT, "Update", owned.api_version)
        if bucket not in owners:
            owners[bucket] = owners.pop(first[owned.api_version])
        owners[bucket] = owned._replace(fields=union(owned.fields, owners[bucket].fields))
        del owners[identity]
        excess -= 1
        times.pop(bucket, None)
        if identity in times:
            times[bucket] = times[identity]
