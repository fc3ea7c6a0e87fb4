"""Priority order: keys by priority, the highest first; first in, first out within a priority.

Each operation is O(1) in the number of keys and O(p) in the number of distinct priorities in use, which is small.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class PriorityOrder(Generic[K]):
    def __init__(self) -> None:
        self.length = 0
        self._bands: dict[int, OrderedDict[K, None]] = {}  # keys of each priority, in order; no band is empty
        self._priorities: list[int] = []  # of the bands, ascending

    def push(self, key: K, priority: int) -> None:
        """Append a key, which must not be present, to those of its priority."""
        band = self._bands.get(priority)
        if band is None:
            band = self._bands[priority] = OrderedDict()
            insort(self._priorities, priority)
        band[key] = None
        self.length += 1

    def pop(self) -> K:
        """Remove and return the first key. There must be one."""
        priority = self._priorities[-1]
        band = self._bands[priority]
        key, _ = band.popitem(last=False)
        if not band:
            del self._bands[priority]
            self._priorities.pop()
        self.length -= 1
        return key

    def move(self, key: K, before: int, after: int) -> None:
        """Change the priority of a key: it becomes the last of the new priority."""
        band = self._bands[before]
        del band[key]
        if not band:
            del self._bands[before]
            del self._priorities[bisect_left(self._priorities, before)]
        self.length -= 1
        self.push(key, after)
