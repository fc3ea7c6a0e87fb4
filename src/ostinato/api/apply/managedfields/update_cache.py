"""Cache of managedFields after updates.

The managedFields after an update depend on the entries before it, the changed fields and the manager only, except for
the times. Controllers write the same fields of many objects, status above all, so the results are cached by these
three, and the times are filled in. docs/dev/update-cache.md states what it saves.

Hardly two objects have the same owners or addresses, which are keys of associative lists. They are part of the result,
but do not affect it: the key has their ranks instead, and the result gets those of the object.
"""

from __future__ import annotations

import re
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
_MAX_KEY_BYTES = 4096
_MAX_OWN = 16
_OWN = re.compile(rb'k:\{\\"(uid|ip)\\":\\"([0-9A-Za-z.:-]+)\\"\}')  # key of an owner or an address, as encoded
_ITEM = b"k:{"
_KEY = b'k:{\\"%s\\":\\"%s\\"}'
_RANK = b'\\":\\"#'  # begins what stands for it
_WRITTEN = -1  # index of the time of the update
_TIME = "?"  # placeholder

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode


class UpdateKey(NamedTuple):
    """Key of an update; `times` and `own` are not part of it."""

    text: bytes
    times: Sequence[str]  # of the entries, in order
    own: Sequence[tuple[bytes, bytes]]  # the keys of owners and addresses, with their field, in order


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
    if len(text) > _MAX_KEY_BYTES or len(times) >= MAX_UPDATERS or _RANK in text:
        return None
    own = sorted(set(_OWN.findall(text))) if _ITEM in text else []
    if len(own) > _MAX_OWN:
        return None
    return UpdateKey(_ranked(text, own), times, own)


def _ranked(text: bytes, own: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Replace the keys of owners and addresses by their ranks, which keep their order."""
    for rank, (field, key) in enumerate(own):
        text = text.replace(_KEY % (field, key), _KEY % (field, b"#%d" % rank))
    return text


def _restored(text: bytes, own: Sequence[tuple[bytes, bytes]]) -> bytes:
    for rank, (field, key) in enumerate(own):
        text = text.replace(_KEY % (field, b"#%d" % rank), _KEY % (field, key))
    return text


class UpdateCache:
    """The cache of one endpoint."""

    def __init__(self) -> None:
        # The entries after each update, encoded if they have keys to fill in, with the indexes of their times among the
        # entries before it, or _WRITTEN.
        self._known: dict[bytes, tuple[list[Entry] | bytes, list[int]]] = {}

    def get(self, key: UpdateKey, now: str) -> list[Entry] | None:
        """Return the entries after an update; None if it is not cached."""
        known = self._known.get(key.text)
        if known is None:
            return None
        entries, indexes = known
        times = (*key.times, now)  # _WRITTEN is the last
        if isinstance(entries, bytes):
            entries = _decode(_restored(entries, key.own))
        made = [{**entry, "time": times[index]} for entry, index in zip(entries, indexes, strict=True)]
        return sort_entries(made)

    def put(self, key: UpdateKey, managed: Managed, writer: Identity | None) -> None:
        """Cache the managers after an update; `writer` is the one that made it."""
        indexes = {identity: index for index, identity in enumerate(managed.as_read)}
        if len(indexes) < len(key.times):
            return  # several entries of one owner
        if writer is not None:
            indexes[writer] = _WRITTEN
        if len(self._known) >= _MAX_ENTRIES:
            self._known.pop(next(iter(self._known), b""), None)  # another thread may have removed it
        entries = [
            encode_entry(identity, owned, ordered(owned.fields), _TIME) for identity, owned in managed.owners.items()
        ]
        shown = _ranked(_encode(entries), key.own) if key.own else entries
        self._known[key.text] = shown, [indexes[identity] for identity in managed.owners]
