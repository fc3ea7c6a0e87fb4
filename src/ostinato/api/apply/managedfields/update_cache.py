"""Cache of managedFields after updates.

The managedFields after an update depend on the entries before it, the changed fields and the manager only, except for
the times. Controllers write the same fields of many objects, status above all, so the results are cached by these
three, and the times are filled in. docs/dev/update-cache.md states what it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ostinato.api.apply.fieldpath.field_set import ordered
from ostinato.api.apply.managedfields.entries import (
    MAX_UPDATERS,
    Entry,
    Managed,
    ManagedFieldsError,
    canonical_time,
    encode_entry,
    sort_entries,
)
from ostinato.api.apply.managedfields.updater import Identity
from ostinato.api.apply.typed.compare import Comparison

_MAX_ENTRIES = 64
_MAX_KEY_BYTES = 2048
_OWNER = b'k:{\\"uid\\":'  # hardly two objects have the same owner references, so these are not cached
_WRITTEN = -1  # index of the time of the update
_TIME = "?"  # placeholder

_encode = msgspec.json.Encoder().encode


class UpdateKey(NamedTuple):
    """Key of an update."""

    text: bytes
    times: Sequence[str]  # of the entries, in order; not part of the key


def update_key(entries: Any, api_version: str, changes: Comparison, manager: str) -> UpdateKey | None:
    """Return the key of an update of an object with these entries; None if it cannot be cached."""
    if type(entries) is not list or not entries:
        return None
    times: list[str] = []
    timeless: list[Entry] = []
    for entry in entries:
        if type(entry) is not dict or entry.get("apiVersion") != api_version or type(entry.get("time")) is not str:
            return None
        try:
            times.append(canonical_time(entry["time"]))
        except ManagedFieldsError:
            return None
        timeless.append({**entry, "time": ""})
    text = _encode((manager, timeless, changes))
    if len(text) > _MAX_KEY_BYTES or len(times) >= MAX_UPDATERS or _OWNER in text:
        return None
    return UpdateKey(text, times)


class UpdateCache:
    """The cache of one endpoint."""

    def __init__(self) -> None:
        # The entries after each update, with the index of their time among the entries before it, or _WRITTEN.
        self._known: dict[bytes, list[tuple[Entry, int]]] = {}

    def get(self, key: UpdateKey, now: str) -> list[Entry] | None:
        """Return the entries after an update; None if it is not cached."""
        known = self._known.get(key.text)
        if known is None:
            return None
        times = (*key.times, now)  # _WRITTEN is the last
        return sort_entries([{**entry, "time": times[index]} for entry, index in known])

    def put(self, key: UpdateKey, managed: Managed, writer: Identity | None) -> None:
        """Cache the managers after an update; `writer` is the one that made it."""
        indexes = {identity: index for index, identity in enumerate(managed.as_read)}
        if len(indexes) < len(key.times):
            return  # several entries of one owner
        if writer is not None:
            indexes[writer] = _WRITTEN
        if len(self._known) >= _MAX_ENTRIES:
            del self._known[next(iter(self._known))]
        self._known[key.text] = [
            (encode_entry(identity, owned, ordered(owned.fields), _TIME), indexes[identity])
            for identity, owned in managed.owners.items()
        ]
