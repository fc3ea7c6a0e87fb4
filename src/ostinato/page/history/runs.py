"""Rings of the runs of controllers, of their statistics, and of the scheduler's decisions; bounded in bytes and age."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from ostinato.page.facts import ControllerStats, Reconcile
from ostinato.page.reporting.reports import Placed

MAX_BYTES: Final = 24 << 20
MAX_AGE: Final = 900.0  # seconds
_MAX_SAMPLES: Final = 900
_MAX_PODS: Final = 5_000  # with decisions of the scheduler
_MAX_ATTEMPTS: Final = 10  # for each
_OVERHEAD: Final = 700  # approximate bytes of a run
_STATE: Final = 300  # of each cause and write


class Runs:
    def __init__(self, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._ring: deque[Reconcile] = deque()
        self._by_id: dict[str, Reconcile] = {}
        self._by_key: dict[tuple[str, str], list[Reconcile]] = {}  # by controller and key, in order
        self._added = 0  # number of runs that were added so far

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def added(self) -> int:
        return self._added

    def add(self, run: Reconcile) -> None:
        self._added += 1
        self._ring.append(run)
        self._by_id[run.id] = run
        self._by_key.setdefault((run.controller, run.key), []).append(run)
        self.size += _size(run)
        while self.size > self._max_bytes:
            self._drop()

    def expire(self, now: float) -> None:
        while self._ring and self._ring[0].at < now - self._max_age:
            self._drop()

    def get(self, run: str) -> Reconcile | None:
        return self._by_id.get(run)

    def before(self, run: Reconcile) -> Reconcile | None:
        """Return the run of the same key before this one."""
        found = self._by_key.get((run.controller, run.key), [])
        earlier = [each for each in found if each.at < run.at]
        return earlier[-1] if earlier else None

    def after(self, added: int) -> list[Reconcile]:
        """Return the runs that were added after the first `added`, oldest first."""
        new = min(self._added - added, len(self._ring))
        return [self._ring[len(self._ring) - new + at] for at in range(new)] if new > 0 else []

    def between(self, since: float, until: float) -> Iterator[Reconcile]:
        return (run for run in self._ring if since <= run.at < until)

    def _drop(self) -> None:
        run = self._ring.popleft()
        self.size -= _size(run)
        self._by_id.pop(run.id, None)
        of_key = self._by_key[run.controller, run.key]
        of_key.remove(run)
        if not of_key:
            del self._by_key[run.controller, run.key]


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


class Placements:
    """The last decisions of the scheduler on each Pod."""

    def __init__(self) -> None:
        self._by_pod: OrderedDict[str, deque[Placed]] = OrderedDict()  # by uid

    def add(self, placed: Placed) -> None:
        uid = placed.placement.uid
        attempts = self._by_pod.setdefault(uid, deque(maxlen=_MAX_ATTEMPTS))
        attempts.append(placed)
        self._by_pod.move_to_end(uid)
        if len(self._by_pod) > _MAX_PODS:
            self._by_pod.popitem(last=False)

    def of(self, uid: str) -> list[Placed]:
        return [*self._by_pod.get(uid, ())]


def _size(run: Reconcile) -> int:
    return _OVERHEAD + len(run.error or "") + _STATE * (len(run.causes) + len(run.writes))
