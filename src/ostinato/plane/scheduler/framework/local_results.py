"""Cached results of local plugins for every node, until the node changes.

Results are shared by all Pods that the plugins cannot distinguish. Scheduling further Pods of a template evaluates only
the nodes that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.node_list import values_of
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status

REJECTED: Final = -1
UNKNOWN: Final = -2


class WeightedPlugin(msgspec.Struct, frozen=True):
    """A plugin and the weight of its score."""

    plugin: Plugin
    weight: int = 1


class LocalResults:
    def __init__(self, cycle: Cycle, plugins: Sequence[WeightedPlugin]) -> None:
        """Results of the plugins for the cycle's Pod and others with equal keys."""
        self.filters: list[Filter] = []
        self.pre_filter_status: Status | None = None  # rejects the Pod on all nodes
        self.scored: list[Plugin] = []  # plugins whose scores are included
        self._scorers: list[tuple[Scorer, int]] = []
        self._snapshot: Snapshot = cycle.snapshot
        self._epoch = -1
        self._version = 0
        self.status: list[Status | None] = []  # by slot
        self.score: list[int] = []  # by slot; REJECTED or UNKNOWN
        for weighted in plugins:
            found = weighted.plugin.filter(cycle)
            if isinstance(found, Status):
                self.pre_filter_status = self.pre_filter_status or found
            elif found is not None:
                self.filters.append(found)
            if weighted.plugin.local_score:
                self.scored.append(weighted.plugin)
                scorer = weighted.plugin.score(cycle)
                if scorer is not None:
                    self._scorers.append((scorer, weighted.weight))
        self._checks = [each.check for each in self.filters]

    def update(self) -> None:
        """Invalidate the results of changed nodes."""
        snapshot = self._snapshot
        count = len(snapshot.nodes)
        changed = snapshot.changed_since(self._version) if self._epoch == snapshot.epoch else None
        self._version = snapshot.version
        if changed is None:
            self._epoch = snapshot.epoch
            self.status = [None] * count
            self.score = [UNKNOWN] * count
        else:
            score = self.score
            for slot in changed:
                score[slot] = UNKNOWN

    def evaluate(self, node: NodeInfo) -> int:
        """Evaluate a node and cache the result."""
        slot = node.slot
        for check in self._checks:
            status = check(node)
            if status is not None:
                self.status[slot] = status
                self.score[slot] = REJECTED
                return REJECTED
        score = 0
        for scorer, weight in self._scorers:
            score += weight * scorer.score(node)
        self.status[slot] = None
        self.score[slot] = score
        return score

    def scores(self, nodes: list[NodeInfo]) -> list[int]:
        score = self.score
        if not score:
            return [0] * len(nodes)
        found = values_of(nodes, score)
        if min(found) >= 0:  # as after a search
            return found
        return [known if known >= 0 else max(self.evaluate(node), 0) for known, node in zip(found, nodes, strict=True)]
