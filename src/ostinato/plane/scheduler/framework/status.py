"""Statuses: why a node was refused, and the words in which that is told.

    0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: …

- Equal refusals are one object, so that those of thousands of nodes are counted, and kept, at no cost.
- A refusal is *resolvable* if it could be different without some of the Pods on the node: preemption may help.
- The words are those of kube-scheduler, which people search for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

_REMEMBERED: Final = 4096


class Status(msgspec.Struct, frozen=True, eq=False):
    """A refusal, made by `unschedulable` or `unresolvable`; None stands for success."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool


@lru_cache(_REMEMBERED)
def unschedulable(plugin: str, *reasons: str) -> Status:
    """Not with these Pods on the node."""
    return Status(plugin, reasons, resolvable=True)


@lru_cache(_REMEMBERED)
def unresolvable(plugin: str, *reasons: str) -> Status:
    """Not on this node, whatever runs on it."""
    return Status(plugin, reasons, resolvable=False)


class Diagnosis:
    """What was found out about a Pod that fits nowhere."""

    def __init__(
        self,
        nodes: int,
        statuses: dict[str, Status],
        absent_nodes_status: Status | None = None,
        pre_filter_status: Status | None = None,
    ) -> None:
        """
        - `nodes`: how many there are.
        - `statuses`: of the nodes that were looked at, by name.
        - `absent`: of the others. Defaults to nothing to say.
        - `refused`: of the Pod itself, before any node was looked at.
        """
        self.nodes = nodes
        self.statuses = statuses
        self.absent_nodes_status = absent_nodes_status
        self.pre_filter_status = pre_filter_status

    @property
    def plugins(self) -> frozenset[str]:
        """Those that refused the Pod: what happens in their field may let it fit."""
        found = {status.plugin for status in self.statuses.values()}
        for status in (self.absent_nodes_status, self.pre_filter_status):
            if status is not None:
                found.add(status.plugin)
        return frozenset(found)

    def status_of(self, node: str) -> Status | None:
        return self.statuses.get(node) or self.absent_nodes_status or self.pre_filter_status

    def message(self, after: str = "") -> str:
        """The sentence for people; `after` is what preemption said."""
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
    """How many nodes gave each reason."""
    reasons: Counter[str] = Counter()
    for status, count in Counter(statuses).items():
        for reason in status.reasons:
            reasons[reason] += count
    return reasons


def listed(reasons: Counter[str]) -> str:
    return ", ".join(sorted([f"{count} {reason}" for reason, count in reasons.items() if count]))
