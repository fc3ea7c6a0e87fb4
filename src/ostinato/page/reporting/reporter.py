"""Reporter: the observer of a process. Collects what its controllers do, and hands it over in batches.

- Runs and decisions of the scheduler are encoded at once: objects that wait for the next batch would push those of the
  controllers out of the processor's caches.
- What is collected between two batches is bounded; what exceeds the bound is counted.
- A write is sent with its run; if that has not ended when the next batch is sent, with this batch.
- Statistics of controllers are sampled once a second.
- After a page has connected anew, the watched kinds of all controllers are reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.recorder import OwnDeletion, OwnWrite
from ostinato.controllers.current import Reconcile as Run
from ostinato.controllers.guards.hot_loop import Loop
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.reports.observing import Placement, RunOutcome
from ostinato.page.facts import ControllerStats, Ref, api_version_of
from ostinato.page.reporting.reports import (
    FAILED,
    MAX_WRITES,
    Attempt,
    Collected,
    Details,
    EncodedItems,
    Ended,
    HotLoop,
    Watches,
    Wrote,
    encode,
)
from ostinato.world import Clock

INTERVAL: Final = 0.15  # seconds between two batches
LOADED_INTERVAL: Final = 0.35  # seconds after a batch of many: the receiver takes less time for larger batches
_MANY: Final = 200  # reports in a batch
_SAMPLE: Final = 1.0  # seconds between two samples of the statistics
_MAX_REPORTS: Final = 4_000  # of a kind, collected between two batches
_MAX_ERROR: Final = 1_000  # characters
_RECENT: Final = 256  # durations from which percentiles are computed
_POD: Final = GroupVersionKind("", "v1", "Pod")
_NONE: Final[Sequence[Wrote]] = ()

Deliver = Callable[[bytes], Awaitable[bool]]
"""Hands encoded reports over; returns whether the receiver is a new one, which knows nothing of this process.

Raises `Undelivered` if there is none.
"""


class Undelivered(Exception):  # noqa: N818 - named after the condition
    """The reports were not delivered, and are lost."""


class EncodedReports(msgspec.Struct, frozen=True):
    """Encoded reports. `count`: how many are lost if it is not delivered."""

    body: bytes
    count: int


class Reporter:
    """An `Observer`. Run `run` while the controllers run."""

    def __init__(self, process: str, clock: Clock) -> None:
        """`process`: the name of this process in the page."""
        self._process = process
        self._clock = clock
        self._runs = EncodedItems()
        self._failed = 0  # of the runs
        self._wrote: dict[str, list[Wrote]] = {}  # by run, those that were not sent
        self._writes = 0  # collected since the last batch
        self._earlier: dict[str, list[Wrote]] = {}  # by run that has not ended, those that were sent
        self._hot_loops: list[HotLoop] = []
        self._placed = EncodedItems()
        self._throttled: dict[str, int] = {}  # requests by controller
        self._dropped = 0
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
        gvk, key = write.gvk, write.key
        self._written.add(gvk)
        is_removal = access.is_being_deleted(write.instance) and _is_removed(write.instance)
        version = "" if is_removal else write.resource_version
        if is_removal or not _is_cause(run, gvk, key, version):
            self._add_write(run, gvk, key, access.uid(write.instance), version, is_removal)
        # Otherwise the object had that resourceVersion when the run began: the write changed nothing.

    def deleted(self, run: Run, deletion: OwnDeletion) -> None:
        gvk, key, version = deletion.gvk, deletion.key, deletion.resource_version
        if not version or not _is_cause(run, gvk, key, version):
            self._add_write(run, gvk, key, deletion.uid, version, not version)
        # Otherwise it was being deleted already: the request changed nothing.

    def finished(self, run: Run, outcome: RunOutcome) -> None:
        sampled = self._controllers.get(run.controller)
        if sampled is not None:
            sampled.recent.append(outcome.seconds)
        earlier = self._earlier.pop(run.id, _NONE) if self._earlier else _NONE
        if self._is_full(self._runs.count):
            return  # its writes are sent without it
        if outcome.error:
            outcome = _bounded(outcome)
        key = run.request if type(run.request) is NamespacedName else str(run.request)
        details = Details(run.id, run.controller, key, run.why, run.explanations)
        writes = self._wrote.pop(run.id, _NONE)
        if self._runs.add(Ended(writes, self._clock.wall(), outcome, earlier, details)):
            self._failed += outcome.result in FAILED
        else:
            self._dropped += 1 + len(writes)

    def hot_loop(self, run: Run, loop: Loop) -> None:
        if not self._is_full(len(self._hot_loops)):
            gvk, key = loop.write.target
            ref = Ref.of(gvk, key, access.uid(loop.write.after))
            self._hot_loops.append(HotLoop(run.id, run.controller, ref, str(loop), loop.write.fields()))

    def throttled(self, controller: str) -> None:
        name = controller or self._process
        self._throttled[name] = self._throttled.get(name, 0) + 1

    def placed(self, run: Run, placement: Placement) -> None:
        if not self._is_full(self._placed.count):
            self._dropped += not self._placed.add(Attempt(self._clock.wall(), placement.uid, placement))
        if placement.node:
            self._add_write(run, _POD, placement.pod, placement.uid, "", is_removal=False)

    @property
    def kinds(self) -> set[GroupVersionKind]:
        """The kinds that the controllers of this process watch and write."""
        return {GroupVersionKind.of(each.api_version, each.kind) for each in self._watches} | self._written

    # Batches

    async def run(self, deliver: Deliver) -> None:
        """Deliver batches until cancelled."""
        count = 0
        while True:
            await self._clock.sleep(LOADED_INTERVAL if count > _MANY else INTERVAL)
            batch = self.take()
            count = 0 if batch is None else batch.count
            if batch is None:
                continue
            try:
                is_new = await deliver(batch.body)
            except Undelivered:
                self._dropped += batch.count
                is_new = True
            if is_new:
                self._watches = dict.fromkeys(self._watches, False)

    def take(self) -> EncodedReports | None:
        """Return the reports since the last call; None if there are none."""
        controllers = self._sample()
        unreported = [each for each, reported in self._watches.items() if not reported]
        happened = self._runs.count or self._wrote or self._ended or self._placed.count or self._throttled
        if not (controllers or unreported or happened):
            return None
        count = self._dropped + self._runs.count + self._writes + self._placed.count
        reports = Collected(
            process=self._process,
            runs=self._runs.take(),
            failed=self._failed,
            wrote=[*chain.from_iterable(self._wrote.values())],
            controllers=controllers,
            ended=self._ended,
            watches=unreported,
            hot_loops=self._hot_loops,
            placed=self._placed.take(),
            throttled=self._throttled,
            dropped=self._dropped,
        )
        self._keep_writes()
        self._ended, self._hot_loops = [], []
        self._throttled = {}
        self._watches.update(dict.fromkeys(unreported, True))
        self._writes = self._failed = self._dropped = 0
        return EncodedReports(_encoded(reports), count)

    def _sample(self) -> list[ControllerStats]:
        """Return the statistics of the controllers, once a second."""
        now = self._clock.monotonic()
        since = now - self._sampled_at
        if since < _SAMPLE:
            return []
        self._sampled_at = now
        return [each.sample(since) for each in self._controllers.values()]

    def _keep_writes(self) -> None:
        """Remember which writes of runs that have not ended were sent, to list them with the run."""
        for run, writes in self._wrote.items():
            earlier = self._earlier.setdefault(run, [])
            earlier += writes[: MAX_WRITES - len(earlier)]
        self._wrote = {}
        while len(self._earlier) > _MAX_REPORTS:  # of runs that were cancelled, or wrote after they had ended
            del self._earlier[next(iter(self._earlier))]

    def _add_write(
        self,
        run: Run,
        gvk: GroupVersionKind,
        key: NamespacedName,
        uid: str,
        resource_version: str,
        is_removal: bool,
    ) -> None:
        # Called for each write: keywords, or an object for the parameters, would take as long as the rest.
        if self._writes >= _MAX_REPORTS:
            self._dropped += 1
            return
        self._writes += 1
        wrote = Wrote(
            api_version_of(gvk),
            gvk.kind,
            key.namespace,
            key.name,
            uid,
            resource_version,
            self._clock.wall(),
            run.id,
            run.controller,
            is_removal,
        )
        known = self._wrote.get(run.id)
        if known is None:
            self._wrote[run.id] = [wrote]
        else:
            known.append(wrote)

    def _is_full(self, collected: int) -> bool:
        """Return whether a report must be dropped, and count it."""
        is_full = collected >= _MAX_REPORTS
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


def _encoded(reports: Collected) -> bytes:
    """Encode reports; without writes of runs that have not ended, and hot loops, if one has text that is not valid."""
    try:
        return encode(reports)
    except (TypeError, ValueError):
        lost = reports.dropped + len(reports.wrote) + len(reports.hot_loops)
        return encode(msgspec.structs.replace(reports, wrote=[], hot_loops=[], dropped=lost))


def _bounded(outcome: RunOutcome) -> RunOutcome:
    """Return an outcome whose error can be encoded, and is not too long."""
    error = outcome.error[:_MAX_ERROR].encode("utf-8", "replace").decode()
    return msgspec.structs.replace(outcome, error=error)


def _is_cause(run: Run, gvk: GroupVersionKind, key: NamespacedName, version: str) -> bool:
    """Whether the run was caused by the object at that resourceVersion."""
    for each in run.why.known_causes:  # a loop: it is called for each write
        if each.resource_version == version and each.key == key and each.gvk == gvk:
            return True
    return False


def _is_removed(written: AnyObject) -> bool:
    """Whether the write of an object that is being deleted removed the last finalizer.

    Its response has the resourceVersion from before the removal.
    """
    if access.finalizers(written):
        return False
    instance = written if isinstance(written, dict) else to_dict(written)
    waits = instance["metadata"].get("deletionGracePeriodSeconds")
    return not waits and not (instance.get("spec") or {}).get("finalizers")
