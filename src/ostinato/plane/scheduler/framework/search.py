"""Search for feasible nodes.

A node must be feasible both with and without the Pods that are nominated to it with equal or higher priority: they may
never be scheduled there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.node_list import NodeList
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.interface import Filter
from ostinato.plane.scheduler.framework.local_results import REJECTED, UNKNOWN, LocalResults
from ostinato.plane.scheduler.framework.status import Status


class Search:
    """Search for feasible nodes of one Pod."""

    def __init__(self, results: LocalResults, filters: list[Filter], nominated: dict[str, list[PodInfo]]) -> None:
        results.update()
        self._results = results
        self._filters = filters
        self._non_local_checks = [each.check for each in filters[len(results.filters) :]]
        self._nominated = nominated
        self.checked = 0
        self.statuses: dict[str, Status] = {}

    def find(self, nodes: Sequence[NodeInfo], start: int, wanted: int) -> list[NodeInfo]:
        """Return up to `wanted` feasible nodes, starting at a slot."""
        if self._non_local_checks or self._nominated:
            return self.find_among([*nodes[start:], *nodes[:start]], wanted)
        feasible = NodeList()
        results = self._results
        score, at, left = results.score, start, len(nodes)
        while left and len(feasible) < wanted:
            size = min(wanted - len(feasible), left, len(nodes) - at)
            part = score[at : at + size]
            if UNKNOWN in part:
                for slot, known in enumerate(part, at):
                    if known == UNKNOWN:
                        results.evaluate(nodes[slot])
                part = score[at : at + size]
            if REJECTED in part:
                feasible.add_some([nodes[slot] for slot, known in enumerate(part, at) if known >= 0])
            else:
                feasible.add_range(nodes, at, at + size)
            left -= size
            at = (at + size) % len(nodes)
        self.checked = len(nodes) - left
        if not feasible:
            self.statuses = {node.name: status for node in nodes if (status := results.status[node.slot])}
        return feasible

    def find_among(self, nodes: Sequence[NodeInfo], wanted: int = 0) -> list[NodeInfo]:
        """Check the given nodes one by one; `wanted` 0 returns all feasible ones."""
        feasible: list[NodeInfo] = []
        for node in nodes:
            self.checked += 1
            status = self.filter_status(node)
            if status is not None:
                self.statuses[node.name] = status
                continue
            feasible.append(node)
            if len(feasible) == wanted:
                break
        return feasible

    def filter_status(self, node: NodeInfo) -> Status | None:
        """Return why the Pod does not fit on a node; None if it does."""
        if node.name in self._nominated:
            return run_filters_with_nominated_pods(self._filters, node, self._nominated[node.name])
        results, slot = self._results, node.slot
        if results.score[slot] == UNKNOWN:
            results.evaluate(node)
        status = results.status[slot]
        if status is not None:
            return status
        for check in self._non_local_checks:
            status = check(node)
            if status is not None:
                return status
        return None


def run_filters(filters: Sequence[Filter], node: NodeInfo) -> Status | None:
    """Run filters for a node; return the first rejection."""
    for each in filters:
        status = each.check(node)
        if status is not None:
            return status
    return None


def run_filters_with_nominated_pods(
    filters: Sequence[Filter], node: NodeInfo, others: Sequence[PodInfo]
) -> Status | None:
    """Run filters with the nominated Pods on the node, then without them; return the first rejection."""
    if others:
        fuller, copies = node.copy(), [each.copy() for each in filters]
        for pod in others:
            fuller.add(pod)
            for each in copies:
                each.add_pod(pod, fuller)
        status = run_filters(copies, fuller)
        if status is not None:
            return status
    return run_filters(filters, node)
