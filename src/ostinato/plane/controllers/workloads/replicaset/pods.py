"""Pod summaries: the fields that decide whether a Pod counts and since when it is ready.

Most changes of a Pod do not affect these fields. `PodSummaries` decodes them once per resourceVersion, so that counting
decodes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from ostinato.api.object import Object
from ostinato.api.selectors.labels import Selector
from ostinato.api.time import Time
from ostinato.cache import Deleted, Entry, Event, Updated
from ostinato.controllers.sources.handlers import Keys
from ostinato.plane.ownership.event_handler import ForControllerRef

O = TypeVar("O", bound=Object)  # noqa: E741

_FINISHED: Final = ("Succeeded", "Failed")


class PodSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    finished: bool
    ready: bool
    ready_since: str | None = None  # RFC 3339; None if it is not ready or has no transition time

    def ready_at(self) -> Time | None:
        return None if self.ready_since is None else Time.parse(self.ready_since)


class _Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    status: _Status = _Status()


_read = msgspec.json.Decoder(_Pod).decode


def summarize(entry: Entry) -> PodSummary:
    status = _read(entry.data).status
    finished = status.phase in _FINISHED
    for condition in status.conditions or ():
        if condition.type == "Ready" and condition.status == "True":
            return PodSummary(finished=finished, ready=True, ready_since=condition.last_transition_time)
    return PodSummary(finished=finished, ready=False)


class PodSummaries:
    """The latest summary of each Pod."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, PodSummary]] = {}  # by uid: (resourceVersion, summary)

    def at(self, entry: Entry) -> PodSummary:
        seen = self._seen.get(entry.uid)
        if seen is not None and seen[0] == entry.resource_version:
            return seen[1]
        found = summarize(entry)
        self._seen[entry.uid] = (entry.resource_version, found)
        return found

    def forget(self, entry: Entry) -> None:
        self._seen.pop(entry.uid, None)

    def __len__(self) -> int:
        return len(self._seen)


class ForReplicaOwner(ForControllerRef[O]):
    """Enqueues the owner of a Pod when a relevant field changes; see `ForControllerRef`."""

    def __init__(self, kind: type[O], select: Callable[[O], Selector], summaries: PodSummaries) -> None:
        super().__init__(kind, select)
        self._summaries = summaries

    def keys(self, event: Event) -> Keys:
        found = super().keys(event)
        if isinstance(event, Deleted):
            self._summaries.forget(event.last_known)
        elif isinstance(event, Updated) and found and not self._counts(event.old, event.new):
            return ()
        return found

    def _counts(self, old: Entry, new: Entry) -> bool:
        if old.deletion_timestamp != new.deletion_timestamp:
            return True
        if old.labels_json != new.labels_json or old.owners_json != new.owners_json:
            return True
        before = self._summaries.at(old)
        return self._summaries.at(new) != before
