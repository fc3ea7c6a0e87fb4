"""Rings of the runs of controllers, statistics, alarms and decisions of the scheduler; bounded in bytes and age."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.page.facts import Alarm, ControllerStats, Reconcile
from ostinato.page.live.alarms import Alarms
from ostinato.page.reporting.reports import Attempt, Placed, Ran, RunName, decode_runs

MAX_BYTES: Final = 24 << 20
MAX_AGE: Final = 900.0  # seconds
_MAX_SAMPLES: Final = 900
_MAX_ALARM_CHANGES: Final = 500
_MAX_PODS: Final = 5_000  # with decisions of the scheduler
_MAX_ATTEMPTS: Final = 10  # for each
_OVERHEAD: Final = 400  # approximate bytes of a run beside the message, with the index


class ReceivedRuns(msgspec.Struct, frozen=True, gc=False):
    """Runs that were received together.

    - `at`: when. `count`: of the runs. `failed`: how many of them failed.
    - `size`: bytes of the message, all of which they keep in memory.
    """

    runs: msgspec.Raw
    count: int
    failed: int
    at: float
    size: int


class Runs:
    """Runs are kept as they were received: in batches, which are dropped as a whole, and decoded when they are shown.

    They are indexed when one is asked for.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE) -> None:
        self.size = 0
        self.added = 0  # number of runs that were added so far
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._ring: deque[ReceivedRuns] = deque()
        self._dropped = 0  # number of runs that were dropped so far
        self._indexed = 0  # number of the first runs that the index has seen
        self._by_id: dict[str, tuple[Ran, str]] = {}  # with the id of the run of the same key before it, or ""
        self._latest: dict[tuple[str, NamespacedName | str], str] = {}  # by controller and key: the id of its last run

    def __len__(self) -> int:
        return self.added - self._dropped

    def add(self, batch: ReceivedRuns) -> None:
        if not batch.count:
            return
        self._ring.append(batch)
        self.added += batch.count
        self.size += _size(batch)
        while self.size > self._max_bytes and len(self._ring) > 1:
            self._drop()

    def expire(self, now: float) -> None:
        while self._ring and self._ring[0].at < now - self._max_age:
            self._drop()

    def get(self, run: str) -> Reconcile | None:
        self._index()
        found = self._by_id.get(run)
        return None if found is None else found[0].reconcile()

    def before(self, run: Reconcile) -> Reconcile | None:
        """Return the run of the same key before this one."""
        self._index()
        _, before = self._by_id.get(run.id, (None, ""))
        while (found := self._by_id.get(before)) is not None:
            earlier, before = found
            if earlier.at < run.at:  # reports of several processes may arrive in another order
                return earlier.reconcile()
        return None

    def after(self, added: int) -> list[Ran]:
        """Return the runs that were added after the first `added`, oldest first."""
        new, batches = self.added - added, deque[ReceivedRuns]()
        for batch in reversed(self._ring):
            if new <= 0:
                break
            batches.appendleft(batch)
            new -= batch.count
        found = [run for batch in batches for run in decode_runs(batch.runs)]
        return found[-new:] if new < 0 else found

    def newest(self, added: int, most: int) -> list[Ran]:
        """Of the runs that were added after the first `added`, return the newest, those that failed before others."""
        new, failed, others = self.added - added, list[Ran](), list[Ran]()
        for batch in reversed(self._ring):
            if new <= 0:
                break
            if batch.failed or len(others) < most:  # under load, most batches are not decoded
                runs = decode_runs(batch.runs)[-new:]
                failed += [run for run in reversed(runs) if run.has_failed]
                others += [run for run in reversed(runs) if not run.has_failed]
            new -= batch.count
        chosen = failed[:most]
        return sorted([*chosen, *others[: most - len(chosen)]], key=lambda each: each.at)

    def between(self, since: float, until: float) -> Iterator[Ran]:
        return (run for batch in self._ring for run in decode_runs(batch.runs) if since <= run.at < until)

    def _index(self) -> None:
        """Add the new runs to the index."""
        for run in self.after(self._indexed):
            name = run.name()
            key = (name.controller, name.key)
            self._by_id[name.id] = run, self._latest.get(key, "")
            self._latest[key] = name.id
        self._indexed = self.added

    def _drop(self) -> None:
        batch = self._ring.popleft()
        self.size -= _size(batch)
        if self._dropped < self._indexed:
            for run in decode_runs(batch.runs):
                self._forget(run.name())
        self._dropped += batch.count

    def _forget(self, run: RunName) -> None:
        """Remove a run from the index."""
        self._by_id.pop(run.id, None)
        if self._latest.get((run.controller, run.key)) == run.id:
            del self._latest[run.controller, run.key]


class Samples:
    """The statistics of all controllers, once a second."""

    def __init__(self) -> None:
        self.latest: dict[str, ControllerStats] = {}
        self._owner: dict[str, str] = {}  # the process of each controller
        self._ring: deque[tuple[float, ControllerStats]] = deque()

    def add(self, at: float, process: str, stats: ControllerStats) -> None:
        self.latest[stats.name] = stats
        self._owner[stats.name] = process
        self._ring.append((at, stats))
        while len(self._ring) > _MAX_SAMPLES * max(1, len(self.latest)):
            self._ring.popleft()

    def ended(self, process: str, controller: str) -> None:
        if self._owner.get(controller) == process:
            self.latest.pop(controller, None)
            del self._owner[controller]

    def between(self, since: float, until: float) -> Iterator[tuple[float, ControllerStats]]:
        return ((at, stats) for at, stats in self._ring if since <= at < until)


class PastAlarms:
    """Which alarms were active when, for as long as the other rings. A text that changes is not recorded again."""

    def __init__(self) -> None:
        self._ring: deque[tuple[float, list[Alarm]]] = deque(maxlen=_MAX_ALARM_CHANGES)
        self._version = 0
        self._ids: list[str] = []

    def record(self, at: float, alarms: Alarms) -> None:
        """Record the active alarms, if others than before are active."""
        if alarms.version == self._version:
            return
        self._version = alarms.version
        current = alarms.current()
        ids = [each.id for each in current]
        if ids != self._ids:
            self._ids = ids
            self._ring.append((at, current))

    def expire(self, now: float) -> None:
        while len(self._ring) > 1 and self._ring[1][0] < now - MAX_AGE:  # the first may still be active
            self._ring.popleft()

    def between(self, since: float, until: float) -> list[tuple[float, list[Alarm]]]:
        """Return the changes of a period, the first of them the alarms at its begin, if there were any."""
        before = [alarms for at, alarms in self._ring if at < since]
        found = [(at, alarms) for at, alarms in self._ring if since <= at < until]
        return [(since, before[-1]), *found] if before and before[-1] else found


class Placements:
    """The last decisions of the scheduler on each Pod."""

    def __init__(self) -> None:
        self._by_pod: OrderedDict[str, list[Placed]] = OrderedDict()  # by uid

    def add(self, placed: Placed) -> None:
        attempts = self._by_pod.pop(placed.uid, None)
        if attempts is None:
            attempts = []
        attempts.append(placed.detached())
        del attempts[:-_MAX_ATTEMPTS]
        self._by_pod[placed.uid] = attempts
        if len(self._by_pod) > _MAX_PODS:
            self._by_pod.popitem(last=False)

    def of(self, uid: str) -> list[Attempt]:
        return [each.attempt() for each in self._by_pod.get(uid, ())]


def _size(batch: ReceivedRuns) -> int:
    return batch.size + _OVERHEAD * batch.count
