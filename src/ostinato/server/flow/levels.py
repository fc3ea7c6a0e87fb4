"""Priority levels: how the server's seats are divided and lent.

- Each level has a number of nominal seats, in proportion to its shares. It may lend some and borrow from others.
- Every `PERIOD` seconds the current limits are computed from the demand of each level.
- The exempt level is never limited; its usage reduces what the others can borrow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from math import ceil, floor
from typing import Any

from ostinato.server.flow.allocation import Item, allocate
from ostinato.server.flow.flow import Count
from ostinato.server.flow.queue_set import QueueSet
from ostinato.world import Clock

Json = dict[str, Any]

PERIOD = 10.0  # seconds between two computations of the current limits
_MOST_SEATS_PART = 0.15  # part of a level's nominal seats that one request may take
_logger = logging.getLogger(__name__)


class Level:
    """One priority level and its queues."""

    def __init__(self, obj: Json, clock: Clock) -> None:
        self.set = QueueSet(clock)
        self.counts: dict[str, Count] = {}  # by FlowSchema
        self.nominal = self.least = self.most = self.current = 0  # seats
        self.most_seats = 0  # limit for one request; 0: the limit of the server
        self.new = True  # it has no current limit yet
        self.read(obj)

    def read(self, obj: Json) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.uid: str = obj["metadata"].get("uid", "")
        self.exempt: bool = spec.get("type") == "Exempt"
        part = (spec.get("exempt") if self.exempt else spec.get("limited")) or {}
        self.shares: int = part.get("nominalConcurrencyShares", 0 if self.exempt else 30)
        self.lendable: int = part.get("lendablePercent") or 0
        self.borrowing: int | None = None if self.exempt else part.get("borrowingLimitPercent")
        queuing = (part.get("limitResponse") or {}).get("queuing") or {}
        self.queues: int = queuing.get("queues", 64) if queuing else 0
        self.hand_size: int = queuing.get("handSize", 8) if queuing else 0
        self.length_limit: int = queuing.get("queueLengthLimit", 50) if queuing else 0
        self.removed = False  # its object was deleted; it is quiescing and ends when idle

    def count(self, schema: str) -> Count:
        found = self.counts.get(schema)
        if found is None:
            found = self.counts[schema] = Count()
        return found

    def divide(self, seats: int, shares: int) -> None:
        """Compute nominal seats and bounds. `seats`: of the server; `shares`: of all levels."""
        self.nominal = ceil(seats * self.shares / shares) if shares else 0
        lendable = _rounded(self.nominal * self.lendable / 100)
        borrowed = seats if self.borrowing is None else _rounded(self.nominal * self.borrowing / 100)
        self.least, self.most = self.nominal - lendable, self.nominal + borrowed
        if self.queues:
            part = min(ceil(self.nominal * _MOST_SEATS_PART), self.nominal // self.hand_size)
            self.most_seats = max(1, part)
        if self.new:
            self.new = False
            self.current = self.nominal - lendable // 2

    def configure(self, queues: int) -> None:
        self.set.configure(exempt=self.exempt, limit=self.current, queues=queues, length_limit=self.length_limit)


class Levels:
    """All priority levels of a server."""

    def __init__(self, clock: Clock, seats: int, *, queues: bool = True) -> None:
        """`queues`: whether requests without a free seat wait. Defaults to True."""
        self._clock = clock
        self._seats = seats
        self._queues = queues
        self.by_name: dict[str, Level] = {}

    def read(self, objects: Iterable[Json], defaults: Mapping[str, Json]) -> None:
        """Read the PriorityLevelConfigurations. `defaults`: the mandatory ones, used where none exists."""
        named = {**defaults, **{obj["metadata"]["name"]: obj for obj in objects}}
        for name, obj in named.items():
            if name in self.by_name:
                self.by_name[name].read(obj)
            else:
                self.by_name[name] = Level(obj, self._clock)
        for name, level in list(self.by_name.items()):
            if name not in named:
                level.removed = True
                if level.set.idle:
                    del self.by_name[name]
        shares = sum(level.shares for level in self.by_name.values())
        for level in self.by_name.values():
            level.divide(self._seats, shares)
        self.borrow()

    def borrow(self) -> None:
        """Compute the current limit of each level from its demand."""
        now = self._clock.monotonic()
        levels = list(self.by_name.values())
        for level in levels:
            level.set.demand.end_period(now)
        nominal = total = sum(level.nominal for level in levels)
        for level in levels:
            if level.exempt:
                level.current = max(level.least, level.set.demand.highest)
                total -= level.current
        limited = [level for level in levels if not level.exempt]
        needs = [max(each.least, min(each.nominal, each.set.demand.highest)) for each in limited]
        least = sum(level.least for level in limited)
        for level, seats in zip(limited, self._divided(limited, needs, (nominal, total), least), strict=True):
            level.current = seats
        for level in levels:
            level.configure(queues=level.queues if self._queues else 0)

    def _divided(self, limited: list[Level], needs: list[int], sums: tuple[int, int], least: int) -> list[int]:
        """`sums`: the nominal seats of all levels, and those that the exempt level leaves."""
        nominal, total = sums
        if total <= least:
            return [level.least for level in limited]
        if total <= sum(needs):
            part = (total - least) / (sum(needs) - least)
            return [level.least + _rounded((n - level.least) * part) for level, n in zip(limited, needs, strict=True)]
        items = [
            Item(need, max(level.most, need), max(need, level.set.demand.smoothed))
            for level, need in zip(limited, needs, strict=True)
        ]
        try:
            given, _ = allocate(nominal, items)  # as in kube-apiserver, the exempt level's seats are not deducted
        except ValueError as error:
            _logger.error("cannot compute seat limits, keeping the current ones error=%s", error)
            return [level.current for level in limited]
        return [_rounded(seats) for seats in given]


def _rounded(value: float) -> int:
    """Round half up, as in Go."""
    return floor(value + 0.5)
