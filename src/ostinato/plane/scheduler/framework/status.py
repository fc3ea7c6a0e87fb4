"""Rejections of nodes and their messages.

    0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: …

- Equal rejections are one object, so that thousands of them are counted cheaply.
- A rejection is *resolvable* if removing Pods from the node could help: preemption is tried.
- Messages equal those of kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

_REMEMBERED: Final = 4096


class Status(msgspec.Struct, frozen=True, eq=False):
    """Rejection, created by `unschedulable` or `unresolvable`; None is success."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool


@lru_cache(_REMEMBERED)
def unschedulable(plugin: str, *reasons: str) -> Status:
    """Reject a node because of its Pods; preemption may help."""
    return Status(plugin, reasons, resolvable=True)


@lru_cache(_REMEMBERED)
def unresolvable(plugin: str, *reasons: str) -> Status:
    """Reject a node regardless of its Pods."""
    return Status(plugin, reasons, resolvable=False)


class Diagnosis:
    """Why a Pod is unschedulable."""

    def __init__(
        self,
        nodes: int,
        statuses: dict[str, Status],
        absent_nodes_status: Status | None = None,
        pre_filter_status: Status | None = None,
    ) -> None:
        """
        - `nodes`: number of nodes.
        - `statuses`: rejections by node name.
        - `absent_nodes_status`: rejection of nodes that were not checked. Defaults to None.
        - `pre_filter_status`: rejection of the Pod before nodes were checked. Defaults to None.
        """
        self.nodes = nodes
        self.statuses = statuses
        self.absent_nodes_status = absent_nodes_status
        self.pre_filter_status = pre_filter_status

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the Pod."""
        found = {status.plugin for status in self.statuses.values()}
        for status in (self.absent_nodes_status, self.pre_filter_status):
            if status is not None:
                found.add(status.plugin)
        return frozenset(found)

    def status_of(self, node: str) -> Status | None:
        return self.statuses.get(node) or self.absent_nodes_status or self.pre_filter_status

    def message(self, after: str = "") -> str:
        """Return the message for condition and event; `after`: message of the preemption."""
        if self.pre_filter_status is not None:
            text = f" {', '.join(self.pre_filter_status.reasons)}."
        else:
            reasons = histogram(self.statuses.values())
            if self.absent_nodes_status is not None:
                for reason in self.absent_nodes_status.reasons:
                    reasons[reason] += self.nodes - len(self.statuses)
            text = f" {listed(reasons)}." if reasons else ""
        return f"0/{self.nodes} nodes are available:{text}{' ' + after if after else ''}"


def histogram(statuses: Iterable[Status]) -> Counter[str]:
    """Count nodes per reason."""
    reasons: Counter[str] = Counter()
    for status, count in Counter(statuses).items():
        for reason in status.reasons:
            reasons[reason] += count
    return reasons


def listed(reasons: Counter[str]) -> str:
    return ", ".join(sorted([f"{count} {reason}" for reason, count in reasons.items() if count]))
