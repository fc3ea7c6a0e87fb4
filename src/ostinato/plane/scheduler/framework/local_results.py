"""Verdicts: what local plugins say of every node, remembered until the node changes.

They hold for all Pods that the plugins cannot tell apart. Pods of one template so cost the look at a few nodes each,
however many nodes there are; and so do those of a hundred templates that ask for the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status

REJECTED: Final = -1
UNKNOWN: Final = -2


class WeightedPlugin(msgspec.Struct, frozen=True):
    """A plugin, and what its score counts."""

    plugin: Plugin
    weight: int = 1


class LocalResults:
    def __init__(self, cycle: Cycle, plugins: Sequence[WeightedPlugin]) -> None:
        """Of these plugins, on the Pod of the cycle, and on others that they cannot tell from it."""
        self.filters: list[Filter] = []
        self.pre_filter_status: Status | None = None  # of the Pods themselves, whatever the node
        self.scored: list[Plugin] = []  # whose score is part of the verdict
        self._scorers: list[tuple[Scorer, int]] = []
        self._snapshot: Snapshot = cycle.snapshot
        self._epoch = -1
        self._version = 0
        self.status: list[Status | None] = []  # by slot
        self.score: list[int] = []  # by slot; or REFUSED, or UNKNOWN
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
        """Forget what may have changed."""
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
        """Ask about a node, and remember."""
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
        return [score[node.slot] if score[node.slot] >= 0 else max(self.evaluate(node), 0) for node in nodes]
