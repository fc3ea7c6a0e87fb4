"""Expectations: the writes of this process that a store has not observed yet.

The counterpart of kube-controller-manager's ControllerExpectations, by resourceVersion instead of by count. A store is
behind the server by the latency of the watch, so a read right after a write would return the state before it. Each
write registers an expectation with the store, and reads wait until it is satisfied.

- `Written`: satisfied when the store's resourceVersion reaches that of the write. Events arrive in that order.
- `Gone`, `BeingDeleted`: satisfied when the object is absent, has another uid, or (`BeingDeleted`) has a
  deletionTimestamp.
- `Superseded`, after a conflict: satisfied when the store no longer has the resourceVersion that was rejected.
- All are satisfied when the server is restored to an earlier state, and when the cache stops.
- An expectation that times out again 70 s or more after its first timeout is lost: by then a stalled watch would have
  been reopened, so the server was restored. `on_lost` makes the reflector relist, if it has a watch open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.resource_versions import is_version, reached, sort_key
from ostinato.cache.store.store import Store
from ostinato.client.list_watch import STALL_TIMEOUT
from ostinato.world import Clock


class StaleCache(TimeoutError):  # noqa: N818 - named after the condition
    """The cache did not observe a write of this process in time. Retry later, or read from the server."""


class Written(msgspec.Struct, frozen=True):
    """The object was written, with this resourceVersion as the result."""

    key: NamespacedName
    resource_version: str

    def is_satisfied_by(self, store: Store) -> bool:
        return reached(store.resource_version, self.resource_version)

    def __str__(self) -> str:
        return f"{self.key} at resourceVersion {self.resource_version}"


class Gone(msgspec.Struct, frozen=True):
    """The object with this uid (any, if empty) does not exist any more."""

    key: NamespacedName
    uid: str = ""

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or self.uid not in ("", entry.uid)

    def __str__(self) -> str:
        return f"the removal of {self.key}"


class BeingDeleted(msgspec.Struct, frozen=True):
    """The object with this uid (any, if empty) does not exist any more, or has a deletionTimestamp."""

    key: NamespacedName
    uid: str = ""

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or entry.is_being_deleted or self.uid not in ("", entry.uid)

    def __str__(self) -> str:
        return f"the deletion of {self.key}"


class Superseded(msgspec.Struct, frozen=True):
    """The object no longer has this resourceVersion."""

    key: NamespacedName
    resource_version: str

    def is_satisfied_by(self, store: Store) -> bool:
        entry = store.get(self.key)
        return entry is None or entry.resource_version != self.resource_version

    def __str__(self) -> str:
        return f"{self.key} after resourceVersion {self.resource_version}"


ExpectedState = Written | Gone | BeingDeleted | Superseded


class Expectation:
    """A state of the server that the store has yet to observe."""

    __slots__ = ("_event", "_on_lost", "_timed_out_at", "satisfied", "source", "state")

    def __init__(
        self, source: object, state: ExpectedState, on_lost: Callable[[ExpectedState], object] = lambda _: None
    ) -> None:
        self.source = source
        self.state = state
        self.satisfied = False
        self._on_lost = on_lost
        self._timed_out_at: float | None = None  # when a wait for it first timed out
        self._event: asyncio.Event | None = None  # created by the first `wait`; most have none

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
        """Record that a wait for it timed out; report it as lost after a second timeout `STALL_TIMEOUT` s later."""
        if self._timed_out_at is None:
            self._timed_out_at = now
        elif now - self._timed_out_at >= STALL_TIMEOUT:
            self._on_lost(self.state)


class Expectations:
    """The expectations of one collection."""

    def __init__(
        self, store: Store, source: object, on_lost: Callable[[ExpectedState], object] = lambda _: None
    ) -> None:
        """
        - `source`: the collection, for messages.
        - `on_lost`: called with a state that the store will not observe any more. Defaults to nothing.
        """
        self._store = store
        self._source = source
        self._on_lost = on_lost
        self._pending: dict[NamespacedName, list[Expectation]] = {}  # unsatisfied, by object
        self._writes: list[tuple[tuple[int, str], int, Expectation]] = []  # heap of the comparable `Written`
        self._others: list[Expectation] = []  # the rest: checked after every change
        self._count = 0  # breaks ties in the heap
        self._version = ""  # the store's resourceVersion at the last `observe`

    def expect(self, state: ExpectedState) -> Expectation:
        """Register an expectation; it is satisfied already if the store has observed the state."""
        expectation = Expectation(self._source, state, self._on_lost)
        if state.is_satisfied_by(self._store):
            expectation.satisfy()
        else:
            self._pending.setdefault(state.key, []).append(expectation)
            if isinstance(state, Written) and is_version(state.resource_version):
                self._count += 1
                heappush(self._writes, (sort_key(state.resource_version), self._count, expectation))
            else:
                self._others.append(expectation)
        return expectation

    @property
    def has_pending(self) -> bool:
        """Whether any expectation is unsatisfied."""
        return bool(self._pending)

    def pending(self, key: NamespacedName | None = None, namespace: str = "") -> list[Expectation]:
        """Return the unsatisfied expectations: of one object, of a namespace, or all."""
        if key is not None:
            return list(self._pending.get(key, ()))
        return [
            each
            for known, expectations in self._pending.items()
            if not namespace or known.namespace == namespace
            for each in expectations
        ]

    def observe(self) -> None:
        """Satisfy the expectations that the store, which has changed, now meets."""
        before, self._version = self._version, self._store.resource_version
        if not self._pending:
            return
        if is_version(before) and is_version(self._version) and sort_key(self._version) < sort_key(before):
            self.clear()  # the server was restored: the writes are lost, or have another resourceVersion
            return
        if self._writes and is_version(self._version):
            seen = sort_key(self._version)
            while self._writes and self._writes[0][0] <= seen:
                self._satisfy(heappop(self._writes)[2])
        if self._others:
            met = [each for each in self._others if each.state.is_satisfied_by(self._store)]
            for each in met:
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
        """Satisfy all, so that no read waits any longer."""
        for expectations in self._pending.values():
            for each in expectations:
                each.satisfy()
        self._pending.clear()
        self._writes.clear()
        self._others.clear()


async def wait_for(expectations: Iterable[Expectation], timeout: float, clock: Clock) -> None:  # noqa: ASYNC109
    """Wait until all are satisfied; raise `StaleCache` after `timeout` seconds."""
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
            return  # satisfied in the same step of the event loop as the timeout
        missing.timed_out(clock.monotonic())
        raise StaleCache(f"{missing.source}: the cache has not observed {missing.state} after {timeout:g} s") from None
