"""History: all rings together, and the reports that fill them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ostinato.page.facts import gvk_of, kind_node
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import PastAlarms, Placements, ReceivedRuns, Runs, Samples
from ostinato.page.live.alarms import Alarms
from ostinato.page.live.graph import LiveGraph
from ostinato.page.reporting.reports import Ran, Wrote, decode, decode_runs, decode_writes
from ostinato.world import Clock

_PACKED_PER_STEP: Final = 32  # changes
_EVENT: Final = "Event"  # not watched
_BUSY: Final = 50  # changes in a step
_CALM: Final = 5.0  # seconds after a busy step
_EXPIRE: Final = 1.0  # seconds between two searches for what is too old


class History:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.changes = Changes()
        self.runs = Runs()
        self.samples = Samples()
        self.placements = Placements()
        self.graph = LiveGraph()
        self.alarms = Alarms()
        self.past_alarms = PastAlarms()
        self.dropped = 0  # reports that were lost so far
        self._edges: set[tuple[str, str, str]] = set()  # that the graph has: controller, apiVersion, kind
        self._tidied = 0  # number of the last change that `tidy` has seen
        self._expired_at = float("-inf")
        self._busy_at = float("-inf")

    def receive(self, body: bytes) -> None:
        """Record the reports of a process. Raises msgspec.MsgspecError if they are invalid."""
        reports = decode(body)
        now = self._clock.wall()
        self.dropped += reports.dropped
        for watch in reports.watches:
            self.graph.watches(watch)
        self._claim(now, reports.wrote)
        written = decode_writes(reports.runs)
        self._claim(now, [wrote for run in written for wrote in run.writes])
        self.runs.add(ReceivedRuns(reports.runs, len(written), reports.failed, now, len(body)))
        if reports.failed or self.alarms.has_failing:
            self._judge(decode_runs(reports.runs))
        for stats in reports.controllers:
            self.samples.add(now, reports.process, stats)
            self.alarms.sampled(now, stats)
        for controller in reports.ended:
            self.samples.ended(reports.process, controller)
        for loop in reports.hot_loops:
            self.alarms.looped(now, loop)
        for placed in reports.placed:
            self.placements.add(placed)
        for client, count in reports.throttled.items():
            self.alarms.throttled(now, client, count)

    def _judge(self, runs: Iterable[Ran]) -> None:
        """Record which keys have failed, and which of those that had failed have succeeded."""
        for run in runs:
            if run.has_failed:
                self.alarms.failed(run.reconcile())
            elif self.alarms.has_failing:
                self.alarms.succeeded(run.reconcile())

    def _claim(self, now: float, writes: Iterable[Wrote]) -> None:
        """Record that runs made writes."""
        for wrote in writes:
            edge = wrote.controller, wrote.api_version, wrote.kind
            if edge not in self._edges:
                self._edges.add(edge)
                self.graph.writes(wrote.controller, kind_node(gvk_of(wrote.api_version, wrote.kind)))
            if wrote.kind != _EVENT:
                self.changes.claim(now, wrote)

    def tidy(self) -> None:
        """Record the alarms, drop what is too old, and pack a few changes if there are many."""
        now = self._clock.wall()
        self.past_alarms.record(now, self.alarms)
        if now - self._expired_at >= _EXPIRE:
            self._expired_at = now
            self.changes.expire(now)
            self.runs.expire(now)
            self.past_alarms.expire(now)
        added, self._tidied = self.changes.last - self._tidied, self.changes.last
        if added > _BUSY:
            self._busy_at = now
        elif self.changes.needs_packing and now - self._busy_at >= _CALM:  # others may be dropped before
            self.changes.pack(_PACKED_PER_STEP)
