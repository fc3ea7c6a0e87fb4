"""Reporter: the observer of a process. Collects what its controllers do, and hands it over in batches.

- Collecting is a few appends. What is collected between two batches is bounded; what exceeds the bound is counted.
- Statistics of controllers are sampled once a second.
- After a page has connected anew, the watched kinds of all controllers are reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.own_writes.recorder import OwnDeletion, OwnWrite
from ostinato.controllers.current import Reconcile as Run
from ostinato.controllers.guards.hot_loop import Loop
from ostinato.controllers.reasons import Cause
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.reports.observing import Placement, RunOutcome
from ostinato.page.facts import ControllerStats, Ref
from ostinato.page.reporting.reports import HotLoop, Placed, Ran, Reports, Watches, Written, Wrote
from ostinato.world import Clock

INTERVAL: Final = 0.15  # seconds between two batches
_SAMPLE: Final = 1.0  # seconds between two samples of the statistics
_MAX_REPORTS: Final = 4_000  # collected between two batches
_MAX_WRITES: Final = 50  # listed with a run
_RECENT: Final = 256  # durations from which percentiles are computed
_POD: Final = GroupVersionKind("", "v1", "Pod")

Deliver = Callable[[Reports], Awaitable[bool]]
"""Hands reports over; returns whether the receiver is a new one, which knows nothing of this process.

Raises `Undelivered` if there is none.
"""


class Undelivered(Exception):  # noqa: N818 - named after the condition
    """The reports were not delivered, and are lost."""


class Reporter:
    """An `Observer`. Run `run` while the controllers run."""

    def __init__(self, process: str, clock: Clock) -> None:
        """`process`: the name of this process in the page."""
        self._process = process
        self._clock = clock
        self._runs: list[Ran] = []
        self._wrote: list[Wrote] = []
        self._hot_loops: list[HotLoop] = []
        self._placed: list[Placed] = []
        self._throttled: dict[str, int] = {}  # requests by controller
        self._dropped = 0
        self._writes_of: dict[str, list[Written]] = {}  # writes of the runs that have not ended
        self._controllers: dict[str, _Sampled] = {}
        self._ended: list[str] = []
        self._watches: dict[Watches, bool] = {}  # and whether it was reported
        self._written: set[GroupVersionKind] = set()
        self._sampled_at = clock.monotonic()

    # Observer

    def started(self, controller: str, statistics: ControllerStatistics) -> None:
        self._controllers[controller] = _Sampled(controller, statistics)

    def ended(self, controller: str) -> None:
        if self._controllers.pop(controller, None) is not None:
            self._ended.append(controller)

    def watches(self, controller: str, kind: GroupVersionKind, *, primary: bool) -> None:
        self._watches.setdefault(Watches(controller, kind.api_version, kind.kind, primary), False)

    def wrote(self, run: Run, write: OwnWrite) -> None:
        self._written.add(write.gvk)
        is_removal = _is_removed(write)
        version = "" if is_removal else write.resource_version
        written = Written.of(write.gvk, write.key, access.uid(write.instance), version)
        if is_removal or Cause(write.gvk, write.key, version) not in run.why.known_causes:
            self._add_write(run, written, is_removal=is_removal)
        # Otherwise the object had that resourceVersion when the run began: the write changed nothing.

    def deleted(self, run: Run, deletion: OwnDeletion) -> None:
        version = deletion.resource_version
        written = Written.of(deletion.gvk, deletion.key, deletion.uid, version)
        if not version or Cause(deletion.gvk, deletion.key, version) not in run.why.known_causes:
            self._add_write(run, written, is_removal=not version)
        # Otherwise it was being deleted already: the request changed nothing.

    def finished(self, run: Run, outcome: RunOutcome) -> None:
        writes = self._writes_of.pop(run.id, ())
        sampled = self._controllers.get(run.controller)
        if sampled is not None:
            sampled.recent.append(outcome.seconds)
        if self._is_full(self._runs):
            return
        self._runs.append(Ran.of(self._clock.wall(), run, outcome, writes))

    def hot_loop(self, run: Run, loop: Loop) -> None:
        if not self._is_full(self._hot_loops):
            gvk, key = loop.write.target
            ref = Ref.of(gvk, key, access.uid(loop.write.after))
            self._hot_loops.append(HotLoop(run.id, run.controller, ref, str(loop), loop.write.fields()))

    def throttled(self, controller: str) -> None:
        name = controller or self._process
        self._throttled[name] = self._throttled.get(name, 0) + 1

    def placed(self, run: Run, placement: Placement) -> None:
        if not self._is_full(self._placed):
            self._placed.append(Placed(self._clock.wall(), run.id, placement))
        if placement.node:
            self._add_write(run, Written.of(_POD, placement.pod, placement.uid, ""))

    @property
    def kinds(self) -> set[GroupVersionKind]:
        """The kinds that the controllers of this process watch and write."""
        return {GroupVersionKind.of(each.api_version, each.kind) for each in self._watches} | self._written

    # Batches

    async def run(self, deliver: Deliver) -> None:
        """Deliver batches until cancelled."""
        while True:
            await self._clock.sleep(INTERVAL)
            reports = self.take()
            if reports is None:
                continue
            try:
                is_new = await deliver(reports)
            except Undelivered:
                self._dropped += reports.dropped + len(reports.runs) + len(reports.wrote) + len(reports.placed)
                is_new = True
            if is_new:
                self._watches = dict.fromkeys(self._watches, False)

    def take(self) -> Reports | None:
        """Return the reports since the last call; None if there are none."""
        now = self._clock.monotonic()
        since = now - self._sampled_at
        controllers: list[ControllerStats] = []
        if since >= _SAMPLE:
            self._sampled_at = now
            controllers = [each.sample(since) for each in self._controllers.values()]
        unreported = [each for each, reported in self._watches.items() if not reported]
        collected = self._runs or self._wrote or self._ended or self._placed or self._throttled
        if not (controllers or unreported or collected):
            return None
        reports = Reports(
            process=self._process,
            runs=self._runs,
            wrote=self._wrote,
            controllers=controllers,
            ended=self._ended,
            watches=unreported,
            hot_loops=self._hot_loops,
            placed=self._placed,
            throttled=self._throttled,
            dropped=self._dropped,
        )
        self._runs, self._wrote, self._ended, self._hot_loops, self._placed = [], [], [], [], []
        self._throttled = {}
        self._watches.update(dict.fromkeys(unreported, True))
        self._dropped = 0
        return reports

    def _add_write(self, run: Run, written: Written, *, is_removal: bool = False) -> None:
        if self._is_full(self._wrote):
            return
        self._wrote.append(Wrote.by(run, written, self._clock.wall(), is_removal=is_removal))
        writes = self._writes_of.setdefault(run.id, [])
        if len(writes) < _MAX_WRITES:
            writes.append(written)

    def _is_full(self, collected: Sequence[object]) -> bool:
        """Return whether a report must be dropped, and count it."""
        is_full = len(collected) >= _MAX_REPORTS
        self._dropped += is_full
        return is_full


class _Sampled:
    """The statistics of a controller, with what the last sample has seen of them."""

    def __init__(self, name: str, statistics: ControllerStatistics) -> None:
        self._name = name
        self._statistics = statistics
        self._counts = _Counts.of(statistics)
        self.recent: deque[float] = deque(maxlen=_RECENT)

    def sample(self, seconds: float) -> ControllerStats:
        statistics, before = self._statistics, self._counts
        counts = self._counts = _Counts.of(statistics)
        durations = sorted(self.recent)
        oldest = statistics.queue.oldest
        stats = ControllerStats(
            name=self._name,
            depth=statistics.queue.depth,
            workers=statistics.workers,
            busy=statistics.active_workers,
            rate=(counts.runs - before.runs) / seconds,
            p50=_percentile(durations, 0.5),
            p99=_percentile(durations, 0.99),
            errors=(counts.errors - before.errors) / seconds,
            retries=(counts.retries - before.retries) / seconds,
            oldest=0.0 if oldest is None else oldest[1],
        )
        return msgspec.structs.replace(stats, reason=_reason(stats, "" if oldest is None else str(oldest[0])))


class _Counts(msgspec.Struct, frozen=True):
    runs: int
    errors: int
    retries: int

    @classmethod
    def of(cls, statistics: ControllerStatistics) -> _Counts:
        runs = sum(statistics.outcomes.values())
        return cls(runs, statistics.errors + statistics.conflicts, statistics.queue.retries)


_BEHIND: Final = 2.0  # seconds for which the oldest key waits
_SLOW: Final = 0.5  # seconds of a run


def _reason(stats: ControllerStats, oldest: str) -> str:
    """Return why a controller is behind; "" if it is not."""
    if stats.oldest < _BEHIND:
        return ""
    begin = f"{stats.depth} keys wait, {oldest} for {stats.oldest:.0f} s: "
    if stats.errors > 0 and stats.errors >= stats.rate / 2:
        return f"{begin}most reconciles fail and are retried"
    if stats.busy >= stats.workers:
        if stats.p50 >= _SLOW:
            many = "all workers are" if stats.workers > 1 else "its one worker is"
            return f"{begin}{many} busy, and a reconcile takes {stats.p50:.1f} s"
        return f"{begin}{stats.workers} workers are too few for the rate of changes"
    return f"{begin}the process is busy"


def _percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def _is_removed(write: OwnWrite) -> bool:
    """Whether a write removed the last finalizer. Its response has the resourceVersion from before the removal."""
    if not access.is_being_deleted(write.instance) or access.finalizers(write.instance):
        return False
    instance = write.instance if isinstance(write.instance, dict) else to_dict(write.instance)
    waits = instance["metadata"].get("deletionGracePeriodSeconds")
    return not waits and not (instance.get("spec") or {}).get("finalizers")
