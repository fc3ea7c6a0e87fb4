"""Scoring of PodTopologySpread: the fewer matching Pods in its domains, the better a node.

Nodes with equal counts have equal scores; each distinct combination is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import floor, log

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.topology_counts import TopologyCounts
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Scorer

Column = tuple[TopologyCounts, bool, int]
"""(counts, whether domains are single nodes, maxSkew)."""


class SpreadScorer(Scorer):
    def __init__(self, columns: Sequence[Column], *, require_all_labels: bool) -> None:
        """`require_all_labels`: nodes without a topology label get the lowest score; otherwise the constraint is
        skipped.
        """
        self._columns = [column for column in columns if require_all_labels or column[0].in_domain]
        self._needs_all = require_all_labels

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        if not self._columns:
            return [MAX_NODE_SCORE] * len(nodes)
        slots = [node.slot for node in nodes]
        # Key of a node: per constraint its count, its domain, or None.
        views: list[list[Hashable]] = []
        for counts, by_node, _ in self._columns:
            domain, on_node = counts.domain, counts.on_node
            if by_node:
                views.append([on_node[slot] if domain[slot] is not None else None for slot in slots])
            else:
                views.append([domain[slot] for slot in slots])
        keys: list[tuple[Hashable, ...]] = list(zip(*views, strict=True))
        table = self._table(keys)
        return [table[key] for key in keys]

    def _table(self, keys: list[tuple[Hashable, ...]]) -> dict[tuple[Hashable, ...], int]:
        """Return the score per distinct key."""
        different = set(keys)
        ignored = {key for key in different if self._needs_all and None in key}
        counted = [key for key in different if key not in ignored]
        in_all = sum([key not in ignored for key in keys]) if ignored else len(keys)
        weights = []
        for at, (_, by_node, _) in enumerate(self._columns):
            size = in_all if by_node else len({key[at] for key in counted})
            weights.append(log(size + 2))
        raw = {key: self._raw(key, weights) for key in counted}
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        scores = {
            key: MAX_NODE_SCORE * (most + least - value) // most if most else MAX_NODE_SCORE
            for key, value in raw.items()
        }
        return {**scores, **dict.fromkeys(ignored, 0)}

    def _raw(self, key: tuple[Hashable, ...], weights: list[float]) -> int:
        """Return the raw score; lower is better."""
        total = 0.0
        for part, weight, (counts, by_node, max_skew) in zip(key, weights, self._columns, strict=True):
            if part is not None:
                count = part if by_node else counts.in_domain.get(str(part), 0)
                assert isinstance(count, int)
                total += count * weight + (max_skew - 1)
        return floor(total + 0.5)

    def score(self, node: NodeInfo) -> int:
        return self.scores([node])[0]
