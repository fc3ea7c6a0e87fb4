"""The search for nodes on which a Pod fits.

Pods that were promised room on a node count there for others of no higher priority: a node must do with them, and also
without them, for they may never come.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.interface import Filter
from ostinato.plane.scheduler.framework.local_results import REFUSED, UNKNOWN, Verdicts
from ostinato.plane.scheduler.framework.status import Status


class Search:
    """The search for nodes on which one Pod fits."""

    def __init__(self, verdicts: Verdicts, filters: list[Filter], before: dict[str, list[PodInfo]]) -> None:
        verdicts.update()
        self._verdicts = verdicts
        self._filters = filters
        self._rest = [each.check for each in filters[len(verdicts.filters) :]]
        self._before = before
        self.looked_at = 0
        self.statuses: dict[str, Status] = {}

    def among(self, nodes: Sequence[NodeInfo], start: int, wanted: int) -> list[NodeInfo]:
        """So many that do, from a slot on; fewer if there are no more."""
        if self._rest or self._before:
            return self.in_turn([*nodes[start:], *nodes[:start]], wanted)
        fitting: list[NodeInfo] = []
        verdicts = self._verdicts
        score, at, left = verdicts.score, start, len(nodes)
        while left and len(fitting) < wanted:
            size = min(wanted - len(fitting), left, len(nodes) - at)
            part = score[at : at + size]
            if UNKNOWN in part:
                for slot, known in enumerate(part, at):
                    if known == UNKNOWN:
                        verdicts.look(nodes[slot])
                part = score[at : at + size]
            if REFUSED in part:
                fitting += [nodes[slot] for slot, known in enumerate(part, at) if known >= 0]
            else:
                fitting += nodes[at : at + size]
            left -= size
            at = (at + size) % len(nodes)
        self.looked_at = len(nodes) - left
        if not fitting:
            self.statuses = {node.name: status for node in nodes if (status := verdicts.status[node.slot])}
        return fitting

    def in_turn(self, nodes: Sequence[NodeInfo], wanted: int = 0) -> list[NodeInfo]:
        """The same of these nodes, each asked by itself; all that do unless told."""
        fitting: list[NodeInfo] = []
        for node in nodes:
            self.looked_at += 1
            status = self.refuses(node)
            if status is not None:
                self.statuses[node.name] = status
                continue
            fitting.append(node)
            if len(fitting) == wanted:
                break
        return fitting

    def refuses(self, node: NodeInfo) -> Status | None:
        """Why the Pod does not fit on a node; None if it does."""
        if node.name in self._before:
            return refuses_with(self._filters, node, self._before[node.name])
        verdicts, slot = self._verdicts, node.slot
        if verdicts.score[slot] == UNKNOWN:
            verdicts.look(node)
        status = verdicts.status[slot]
        if status is not None:
            return status
        for check in self._rest:
            status = check(node)
            if status is not None:
                return status
        return None


def refuses(filters: Sequence[Filter], node: NodeInfo) -> Status | None:
    """Why a node will not do; None if it does."""
    for each in filters:
        status = each.check(node)
        if status is not None:
            return status
    return None


def refuses_with(filters: Sequence[Filter], node: NodeInfo, others: Sequence[PodInfo]) -> Status | None:
    """Why a node will not do with these Pods on it, or without them; None if it does both ways."""
    if others:
        fuller, copies = node.copy(), [each.copy() for each in filters]
        for pod in others:
            fuller.add(pod)
            for each in copies:
                each.added(pod, fuller)
        status = refuses(copies, fuller)
        if status is not None:
            return status
    return refuses(filters, node)
