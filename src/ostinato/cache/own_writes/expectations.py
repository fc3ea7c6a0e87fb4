"""Expectations: what this process has written, and the store has not seen yet.

A store is behind the server by as long as an event takes. Who writes an object and then reads it from the cache would
read what was there before; so the store is told of the write, and reads wait until it has come.

- A write has come when the store is at its version, or at a later one: events come in the sort_key of versions.
- A deletion has come when the object is gone, is another one of the same name, or waits for its finalizers.
- A conflict says that what the store has is outdated: it has come when the store has something else.
- A server that went back to an earlier state, or a cache that stops, ends all waiting.
- A write that was waited for in vain for more than a minute is lost: a server that was restored does not know of it,
  and a watch that had fallen silent would have been opened again by then. The cache is told so, to list anew, unless
  it has no watch at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.resource_versions import is_version, reached, sort_key
from ostinato.cache.store.store import Store
from ostinato.client.list_watch import QUIET
from ostinato.world import Clock


class StaleCache(TimeoutError):  # noqa: N818 - what is the matter
    """The cache has not seen a write of this process in time. Try again later, or read from the server."""


class Written(msgspec.Struct, frozen=True):
    """The object was written, and had this version then."""

    key: NamespacedName
    version: str

    def is_satisfied_by(self, store: Store) -> bool:
        return reached(store.resource_version, self.version)

    def __str__(self) -> str:
        return f"version {self.version} of {self.key}"


class Gone(msgspec.Struct, frozen=True):
    """The object with this uid, or whichever there was, does not exist any more."""

    key: NamespacedName
    uid: str = ""

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or self.uid not in ("", entry.uid)

    def __str__(self) -> str:
        return f"the end of {self.key}"


class BeingDeleted(msgspec.Struct, frozen=True):
    """The object with this uid, or whichever there was, is gone, or waits for its finalizers to be so."""

    key: NamespacedName
    uid: str = ""

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or entry.is_being_deleted or self.uid not in ("", entry.uid)

    def __str__(self) -> str:
        return f"the deletion of {self.key}"


class Superseded(msgspec.Struct, frozen=True):
    """The object has another version than this."""

    key: NamespacedName
    version: str

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or entry.resource_version != self.version

    def __str__(self) -> str:
        return f"what came after version {self.version} of {self.key}"


ExpectedState = Written | Gone | BeingDeleted | Superseded


class Expectation:
    """Something that is the case on the server, and that the store is to see."""

    __slots__ = ("_event", "_on_lost", "_timed_out_at", "satisfied", "source", "state")

    def __init__(
        self, source: object, state: ExpectedState, on_lost: Callable[[ExpectedState], object] = lambda _: None
    ) -> None:
        self.source = source
        self.state = state
        self.satisfied = False
        self._on_lost = on_lost
        self._timed_out_at: float | None = None  # when somebody first gave up waiting
        self._event: asyncio.Event | None = None  # when somebody waits for it, which few do

    def satisfy(self) -> None:
        self.satisfied = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        if self.satisfied:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    def timed_out(self, now: float) -> None:
        """Somebody has waited in vain."""
        if self._timed_out_at is None:
            self._timed_out_at = now
        elif now - self._timed_out_at >= QUIET:
            self._on_lost(self.state)


class Expectations:
    """The writes to one collection."""

    def __init__(
        self, store: Store, source: object, on_lost: Callable[[ExpectedState], object] = lambda _: None
    ) -> None:
        """`lost` is called when a write will not come any more. Defaults to nobody."""
        self._store = store
        self._source = source
        self._on_lost = on_lost
        self._pending: dict[NamespacedName, list[Expectation]] = {}  # none of them has come
        self._writes: list[tuple[tuple[int, str], int, Expectation]] = []  # of them a heap, by version and number
        self._others: list[Expectation] = []  # and those that come by something else than a version
        self._count = 0  # writes so far: their numbers
        self._version = ""  # of the store, when it was last looked at

    def expect(self, state: ExpectedState) -> Expectation:
        expectation = Expectation(self._source, state, self._on_lost)
        if state.is_satisfied_by(self._store):
            expectation.satisfy()
        else:
            self._pending.setdefault(state.key, []).append(expectation)
            if isinstance(state, Written) and is_version(state.version):
                self._count += 1
                heappush(self._writes, (sort_key(state.version), self._count, expectation))
            else:
                self._others.append(expectation)
        return expectation

    @property
    def has_pending(self) -> bool:
        """Whether there is a write that has not come."""
        return bool(self._pending)

    def pending(self, key: NamespacedName | None = None, namespace: str = "") -> list[Expectation]:
        """The writes that have not come: of an object, or in a namespace, or all."""
        if key is not None:
            return list(self._pending.get(key, ()))
        return [
            each
            for known, expectations in self._pending.items()
            if not namespace or known.namespace == namespace
            for each in expectations
        ]

    def observe(self) -> None:
        """The store has changed: release those whose write has come."""
        before, self._version = self._version, self._store.resource_version
        if not self._pending:
            return
        if is_version(before) and is_version(self._version) and sort_key(self._version) < sort_key(before):
            self.clear()  # what was written is lost, or will come under another version
            return
        if self._writes and is_version(self._version):
            seen = sort_key(self._version)
            while self._writes and self._writes[0][0] <= seen:
                self._satisfy(heappop(self._writes)[2])
        if self._others:
            come = [each for each in self._others if each.state.is_satisfied_by(self._store)]
            for each in come:
                self._others.remove(each)
                self._satisfy(each)

    def _satisfy(self, expectation: Expectation) -> None:
        key = expectation.state.key
        pending = self._pending[key]
        pending.remove(expectation)
        if not pending:
            del self._pending[key]
        expectation.satisfy()

    def clear(self) -> None:
        """Nobody is to wait any longer."""
        for expectations in self._pending.values():
            for each in expectations:
                each.satisfy()
        self._pending.clear()
        self._writes.clear()
        self._others.clear()


async def wait_for(expectations: Iterable[Expectation], timeout: float, clock: Clock) -> None:  # noqa: ASYNC109
    """Return when all writes have come; `StaleCache` after `timeout` seconds."""
    late = [each for each in expectations if not each.satisfied]
    if not late:
        return
    try:
        async with clock.timeout(timeout):
            for each in late:
                await each.wait()
    except TimeoutError:
        missing = next((each for each in late if not each.satisfied), None)
        if missing is None:
            return  # they came in the very moment in which the time was over
        missing.timed_out(clock.monotonic())
        raise StaleCache(f"{missing.source}: the cache has not seen {missing.state} after {timeout:g} s") from None
