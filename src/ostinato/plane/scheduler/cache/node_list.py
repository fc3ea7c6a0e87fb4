"""Nodes whose slots are known as ranges, so that lists by slot are sliced instead of indexed for each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ostinato.plane.scheduler.cache.node_info import NodeInfo

T = TypeVar("T")


class NodeList(list[NodeInfo]):
    """Nodes of a snapshot in the order of their slots, in ranges."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        super().__init__()
        self._ranges: list[tuple[int, int]] | None = []  # first and last slot (exclusive); None: slots are left out

    def add_range(self, nodes: Sequence[NodeInfo], start: int, end: int) -> None:
        """Add the nodes of all slots from `start` up to `end`. `nodes`: of the snapshot."""
        self += nodes[start:end]
        if self._ranges is not None:
            self._ranges.append((start, end))

    def add_some(self, nodes: Sequence[NodeInfo]) -> None:
        """Add nodes of any slots."""
        self += nodes
        self._ranges = None

    def values(self, by_slot: list[T]) -> list[T]:
        """Return the value of each node."""
        if self._ranges is None:
            return [by_slot[node.slot] for node in self]
        if len(self._ranges) == 1:
            ((start, end),) = self._ranges
            return by_slot[start:end]
        return [value for start, end in self._ranges for value in by_slot[start:end]]


def values_of(nodes: Sequence[NodeInfo], by_slot: list[T]) -> list[T]:
    """Return the value of each node from a list by slot."""
    if isinstance(nodes, NodeList):
        return nodes.values(by_slot)
    return [by_slot[node.slot] for node in nodes]
