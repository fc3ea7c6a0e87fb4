"""Events that controllers have recorded, to assert on.

await events.expect("Synced", regarding=foo)
assert await events.list(kind="Warning") == []
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ostinato.api.accessors import AnyObject, name, namespace
from ostinato.kinds.events_v1 import Event

if TYPE_CHECKING:
    from ostinato.testing.cluster import Cluster


class RecordedEvent(NamedTuple):
    """
    - `kind`: "Normal" or "Warning".
    - `reason`, `note`: as the controller recorded them.
    - `regarding`: the object, as `Kind namespace/name`.
    - `times`: how often it was recorded.
    """

    kind: str
    reason: str
    note: str
    regarding: str
    times: int = 1

    def __str__(self) -> str:
        return f"{self.kind} {self.reason} {self.regarding}: {self.note}"


class Events:
    """The Events of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list(
        self, reason: str = "", *, regarding: AnyObject | str | None = None, kind: str = "", note: str = ""
    ) -> list[RecordedEvent]:
        """Return the Events so far, in the order of their first writes.

        - `reason`, `kind`: only with these.
        - `regarding`: only about this object, or one of this name.
        - `note`: only if the note contains it.
        """
        found = [each async for each in self._cluster.client.list(Event, namespace=_where(self._cluster))]
        found.sort(key=lambda each: (str(each.metadata.creation_timestamp), int(each.metadata.resource_version or 0)))
        return [
            _recorded(each)
            for each in found
            if reason in ("", each.reason)
            and kind in ("", each.type)
            and note in (each.note or "")
            and (regarding is None or _is_about(each, regarding))
        ]

    async def expect(
        self, reason: str, *, regarding: AnyObject | str | None = None, kind: str = "", note: str = ""
    ) -> RecordedEvent:
        """Wait for an Event, and return it; the error lists those that there are."""
        __tracebackhide__ = True  # pytest shows the line of the test
        try:
            found = await self._cluster.eventually(
                lambda: self.list(reason, regarding=regarding, kind=kind, note=note),
            )
        except AssertionError as error:
            others = "\n".join(f"  {each}" for each in await self.list()) or "  none"
            raise AssertionError(f"no Event {reason!r}; recorded:\n{others}\n{error}") from None
        return found[0]


def _where(cluster: Cluster) -> str:
    return cluster.namespace if cluster.is_real else ""


def _recorded(event: Event) -> RecordedEvent:
    about: Any = event.regarding
    key = "" if about is None else "/".join(part for part in (about.namespace, about.name) if part)
    count = (event.series.count if event.series is not None else event.deprecated_count) or 1
    regarding = "" if about is None else f"{about.kind} {key}"
    return RecordedEvent(event.type or "", event.reason or "", event.note or "", regarding, count)


def _is_about(event: Event, regarding: AnyObject | str) -> bool:
    about = event.regarding
    if about is None:
        return False
    if isinstance(regarding, str):
        return about.name == regarding
    return about.name == name(regarding) and (about.namespace or "") == (namespace(regarding) or about.namespace or "")
