"""Counts of matching Pods per node and topology domain, updated incrementally.

All nodes are counted once, then only changed ones. The Pods of a node are looked at if some Pod counts at all: not for
the first Pod of a new template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.cache.snapshot import PodChange, Snapshot

_MAX_SHAPES: Final = 4096  # cached weights

PodWeight = Callable[[Shape], int]
"""Weight of a Pod of a shape; 0 does not count."""


class TopologyCounts:
    def __init__(
        self,
        counts: PodWeight,
        topology_key: str,
        *,
        admits: Callable[[NodeInfo], bool] | None = None,
        terminating: bool = True,
    ) -> None:
        """
        - `counts`: weight of a Pod.
        - `topology_key`: node label whose values are the domains.
        - `admits`: which nodes are counted. Defaults to all with the label.
        - `terminating`: whether terminating Pods are counted. Defaults to True.
        """
        self._counts = counts
        self._key = topology_key
        self._admits = admits
        self._going = terminating
        self._known: dict[Shape, int] = {}
        self._epoch = -1
        self._version = 0
        self.on_node: list[int] = []  # by slot
        self.domain: list[str | None] = []  # by slot; None if the node is not counted
        self.uncounted = 0  # number of these nodes
        self.in_domain: dict[str, int] = {}  # by domain, for domains with counted nodes
        self._nodes_in: dict[str, int] = {}
        self.total = 0

    def update(self, snapshot: Snapshot) -> None:
        """Apply the changes of the snapshot."""
        nodes = snapshot.nodes
        changes = snapshot.pods_since(self._version) if self._epoch == snapshot.epoch else None
        self._version = snapshot.version
        if changes is None:
            self._epoch = snapshot.epoch
            self.on_node = [0] * len(nodes)
            self.domain = [None] * len(nodes)
            self.uncounted = len(nodes)
            self.in_domain.clear()
            self._nodes_in.clear()
            self.total = 0
            is_empty = not any(map(self._weight, snapshot.shapes))
            for node in nodes:
                self._look(node, is_empty=is_empty)
        else:
            for slot in self._take(changes):
                self._look(nodes[slot])
        if len(self._known) > _MAX_SHAPES:
            self._known.clear()

    def _take(self, changes: Iterable[tuple[int, PodChange | None]]) -> set[int]:
        """Apply Pod changes; return the slots that must be recounted."""
        known, terminating = self._known, self._going
        recomputed: set[int] = set()
        for slot, change in changes:
            if change is None:
                recomputed.add(slot)
                continue
            shape, sign, is_going = change
            found = known.get(shape)
            if found is None:
                found = self._weight(shape)
            if found and (terminating or not is_going):
                difference = sign * found
                self.on_node[slot] += difference
                domain = self.domain[slot]
                if domain is not None:
                    self.in_domain[domain] += difference
                    self.total += difference
        return recomputed

    def count(self, node: NodeInfo) -> int:
        """Count the Pods of a node, whether it is counted or not."""
        known, terminating = self._known, self._going
        total = 0
        for pod in node.pods.values():
            found = known.get(pod.shape)
            if found is None:
                found = self._weight(pod.shape)
            if found and (terminating or not pod.is_being_deleted):
                total += found
        return total

    def _weight(self, shape: Shape) -> int:
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = self._counts(shape)
        return found

    def _look(self, node: NodeInfo, *, is_empty: bool = False) -> None:
        """Count a node. `is_empty`: no Pod on it counts."""
        slot = node.slot
        before, there = self.on_node[slot], self.domain[slot]
        domain = node.labels.get(self._key)
        if domain is not None and self._admits is not None and not self._admits(node):
            domain = None
        now = self.count(node) if node.pods and not is_empty else 0
        if domain == there:
            if now != before:
                self.on_node[slot] = now
                if domain is not None:
                    self.in_domain[domain] += now - before
                    self.total += now - before
            return
        self.on_node[slot], self.domain[slot] = now, domain
        self.uncounted += (domain is None) - (there is None)
        if there is not None:
            self._nodes_in[there] -= 1
            self.in_domain[there] -= before
            self.total -= before
            if not self._nodes_in[there]:
                del self._nodes_in[there], self.in_domain[there]
        if domain is not None:
            self._nodes_in[domain] = self._nodes_in.get(domain, 0) + 1
            self.in_domain[domain] = self.in_domain.get(domain, 0) + now
            self.total += now
