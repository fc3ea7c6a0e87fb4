"""History: all rings together, and the reports that fill them."""

from __future__ import annotations

from typing import Final

from ostinato.page.facts import gvk_of, kind_node
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import PastAlarms, Placements, Runs, Samples
from ostinato.page.live.alarms import Alarms
from ostinato.page.live.graph import LiveGraph
from ostinato.page.reporting.reports import Reports
from ostinato.world import Clock

_PACKED_PER_STEP: Final = 32  # changes
_EVENT: Final = "Event"  # not watched
_BUSY: Final = 50  # changes in a step
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
        self._tidied = 0  # number of the last change that `tidy` has seen
        self._expired_at = float("-inf")

    def receive(self, reports: Reports) -> None:
        """Record the reports of a process."""
        now = self._clock.wall()
        self.dropped += reports.dropped
        for watch in reports.watches:
            self.graph.watches(watch)
        for wrote in reports.wrote:
            if wrote.kind != _EVENT:
                self.changes.claim(now, wrote)
        written = dict.fromkeys((each.controller, each.api_version, each.kind) for each in reports.wrote)
        for controller, *kind in written:
            self.graph.writes(controller, kind_node(gvk_of(*kind)))
        for ran in reports.runs:
            self.runs.add(ran)
            if ran.has_failed:
                self.alarms.failed(ran.reconcile())
            else:
                self.alarms.succeeded(ran.controller, ran.key)
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
        if self.changes.needs_packing and added <= _BUSY:  # otherwise they are dropped before they are packed
            self.changes.pack(_PACKED_PER_STEP)
