"""Stores with one deliberate defect each, to show that the checkers find it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any
from unittest import mock

from ostinato.server.request.context import Context
from ostinato.server.store.collection import Collection
from ostinato.server.store.hub import Hub, Subscription
from ostinato.server.store.index import Index
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.records import Entry, Event, Log, Write
from ostinato.server.verbs import get, watch
from ostinato.server.verbs.watch_writer import WatchWriter
from tests.faults.simulated.disk import FaultyLog
from tests.faults.simulated.run import Machine, Run

Defect = Callable[[Run], AbstractContextManager[None]]


def _wrapping(run: Run, wrap: Callable[[FaultyLog], Log]) -> None:
    def prepare(machine: Machine) -> None:
        machine.wrap = wrap

    run.prepare = prepare


class _Wrapped:
    """A log around a log."""

    def __init__(self, inner: FaultyLog) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Hasty(_Wrapped):
    """Acknowledges before it commits."""

    def __init__(self, inner: FaultyLog) -> None:
        super().__init__(inner)
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    async def append(self, writes: Sequence[Write]) -> None:
        task = asyncio.create_task(self._later(writes))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _later(self, writes: Sequence[Write]) -> None:
        async with self._turn:
            with suppress(OSError):
                await self.inner.append(writes)


@contextmanager
def acknowledge_before_commit(run: Run) -> Iterator[None]:
    _wrapping(run, _Hasty)
    yield


class _Forgetful(_Wrapped):
    """Does not recover the last resourceVersions of deleted objects: they are given out again."""

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        _, objects = self.inner.load()
        found = list(objects)
        return max(version for _, _, version, _ in found) - 1, iter(found)


@contextmanager
def reuse_a_version(run: Run) -> Iterator[None]:
    _wrapping(run, _Forgetful)
    yield


@contextmanager
def drop_one_event(run: Run) -> Iterator[None]:
    """One of a hundred events reaches no watcher."""
    publish, rng = Hub.publish, run.rng.fork("defect")

    def forgetting(self: Hub, event: Event, *, alone: bool = False) -> None:
        if rng.random() > 0.01:
            publish(self, event, alone=alone)

    with mock.patch.object(Hub, "publish", forgetting):
        yield


@contextmanager
def stale_read(run: Run) -> Iterator[None]:
    """One of twenty gets returns the state before the last write, if that was an update."""
    entry_of, rng = get._entry, run.rng.fork("defect")

    def stale(context: Context) -> Entry:
        found = entry_of(context)
        last = next((event for event in reversed(context.collection.history) if event.entry is found), None)
        return last.previous if last is not None and last.previous is not None and rng.random() < 0.05 else found

    with mock.patch.object(get, "_entry", stale):
        yield


@contextmanager
def apply_twice(run: Run) -> Iterator[None]:
    """A write of a hundred is made again, as if it had been retried after a lost response."""
    put, rng = LocalIndex.put, run.rng.fork("defect")

    async def twice(
        self: LocalIndex, collection: Collection, entry: Entry, expected: Entry | None, encode: Any, *rest: Any
    ) -> Entry:
        done = await put(self, collection, entry, expected, encode, *rest)
        if rng.random() < 0.01 and collection.newest(done.key) is done:
            again = Entry(done.key, 0, b"", done.labels, done.fields, done.uid)
            await put(self, collection, again, done, encode, *rest)
        return done

    with mock.patch.object(LocalIndex, "put", twice):
        yield


@contextmanager
def bookmark_ahead(run: Run) -> Iterator[None]:
    """A bookmark has a resourceVersion whose events are still to come."""
    bookmark = WatchWriter.bookmark

    def ahead(self: WatchWriter, version: int, **how: Any) -> bytes:
        return bookmark(self, version if how else version + 3, **how)

    with mock.patch.object(WatchWriter, "bookmark", ahead):
        yield


@contextmanager
def skip_slow_watchers(run: Run) -> Iterator[None]:
    """A watcher that does not read quickly enough misses events, instead of being closed."""
    offer = Subscription.offer

    def skipping(self: Subscription, event: Event, *, alone: bool) -> None:
        if len(self._events) < 6:
            offer(self, event, alone=alone)

    with mock.patch.object(Subscription, "offer", skipping):
        yield


@contextmanager
def mixed_pages(run: Run) -> Iterator[None]:
    """The second page of a list is of the newest state."""

    def newest(self: Index, collection: Collection, version: int, prefix: str, after: str) -> list[Entry]:
        return collection.select(prefix, after)

    with mock.patch.object(Index, "select_at", newest):
        yield


@contextmanager
def unchecked_writes(run: Run) -> Iterator[None]:
    """Writers compare with the durable state: of two at the same time, both win."""

    def durable(self: Collection, key: str) -> Entry | None:
        return self.entries.get(key)

    with mock.patch.object(Collection, "newest", durable):
        yield


@contextmanager
def lost_history(run: Run) -> Iterator[None]:
    """A resumed watch begins one event too late."""
    since = Collection.since

    def later(self: Collection, version: int) -> list[Event]:
        return since(self, version + 1)

    with mock.patch.object(Collection, "since", later):
        yield


@contextmanager
def unfiltered_deletions(run: Run) -> Iterator[None]:
    """An object that no longer matches a selector is not reported as deleted."""
    kind_of = watch._Watch._selected_kind_of

    def wrong(self: Any, event: Event) -> str:
        kind = kind_of(self, event)
        return "" if kind == "DELETED" and event.entry is not None else kind

    with mock.patch.object(watch._Watch, "_selected_kind_of", wrong):
        yield


DEFECTS: dict[str, tuple[Defect, set[str]]] = {  # with the properties of which one is reported
    "acknowledge before commit": (acknowledge_before_commit, {"S1", "S2", "S3", "S7", "W3", "W4", "C1"}),
    "drop one watch event": (drop_one_event, {"W3", "W4", "W6", "W8", "W11"}),
    "reuse a version": (reuse_a_version, {"S3", "C1"}),
    "serve a stale read": (stale_read, {"S2"}),
    "apply twice": (apply_twice, {"S4"}),
    "bookmark ahead of undelivered events": (bookmark_ahead, {"W11", "W5", "W10", "W4"}),
    "skip slow watchers": (skip_slow_watchers, {"W3", "W4", "W6", "W8", "W11"}),
    "pages of two states": (mixed_pages, {"S6"}),
    "two winners": (unchecked_writes, {"S1", "S2", "S3", "S5"}),
    "resume one event late": (lost_history, {"W4", "W6", "W11", "W8", "W3"}),
    "selectors without deletions": (unfiltered_deletions, {"W6", "W4", "W11"}),
}
