"""Updates that were seen before: what came of them for the owners of fields.

Who owns what after an update follows from who owned what before, which fields have changed, and who wrote; times apart.
A controller that writes the status of a thousand objects settles the same thing a thousand times. So what came of it is
remembered, by the text of these three, and only the times are put in.
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
    in_order,
    read_time,
    written,
)
from ostinato.api.apply.managedfields.updater import Identity
from ostinato.api.apply.typed.compare import Comparison

_MOST = 64  # that are remembered
_LONGEST = 2048  # bytes of a text that is remembered
_OWNER = b'k:{\\"uid\\":'  # no two objects have the same owner references, nearly
_WRITTEN = -1  # the place of what was written now
_SOME_TIME = "?"  # where the time is to stand

_encode = msgspec.json.Encoder().encode


class Question(NamedTuple):
    """What an update is about."""

    text: bytes
    times: Sequence[str]  # of the entries, in their order


def question(entries: Any, api_version: str, changes: Comparison, manager: str) -> Question | None:
    """What an update asks, of an object that has these entries; None if it is not of the usual kind."""
    if type(entries) is not list or not entries:
        return None
    times: list[str] = []
    timeless: list[Entry] = []
    for entry in entries:
        if type(entry) is not dict or entry.get("apiVersion") != api_version or type(entry.get("time")) is not str:
            return None
        try:
            times.append(read_time(entry["time"]))
        except ManagedFieldsError:
            return None
        timeless.append({**entry, "time": ""})
    text = _encode((manager, timeless, changes))
    if len(text) > _LONGEST or len(times) >= MAX_UPDATERS or _OWNER in text:
        return None
    return Question(text, times)


class SeenUpdates:
    """Those of one endpoint."""

    def __init__(self) -> None:
        # What came of each: the entries, and where each has its time from: the place of an entry before, or _WRITTEN.
        self._known: dict[bytes, list[tuple[Entry, int]]] = {}

    def answer(self, asked: Question, now: str) -> list[Entry] | None:
        """The entries after an update; None if no such was seen."""
        known = self._known.get(asked.text)
        if known is None:
            return None
        times = (*asked.times, now)  # _WRITTEN is the last
        return in_order([{**entry, "time": times[place]} for entry, place in known])

    def keep(self, asked: Question, managed: Managed, writer: Identity | None) -> None:
        """Remember what came of an update: the owners after it, and which of them wrote."""
        places = {identity: place for place, identity in enumerate(managed.as_read)}
        if len(places) < len(asked.times):
            return  # several entries of one owner
        if writer is not None:
            places[writer] = _WRITTEN
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[asked.text] = [
            (written(identity, owned, ordered(owned.fields), _SOME_TIME), places[identity])
            for identity, owned in managed.owners.items()
        ]
