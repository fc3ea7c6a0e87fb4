"""Stream: batches of facts to every open page, about four a second, encoded once.

- Without an open page nothing is decoded or encoded.
- A change is sent a moment after it was seen, when the report of the run that made it has arrived too.
- A batch has a limited number of writes and runs; further ones are counted by edge of the graph. Of many writes only
  those that no run reported, such as users', are decoded; the others are outlined. An open page that does not keep up
  loses batches, and is told how many writes these had.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import msgspec

from ostinato.page.facts import Alarm, Batch, ControllerStats, Count, Write, kind_node
from ostinato.page.history.authors import COMPONENTS
from ostinato.page.history.change import Change
from ostinato.page.history.history import History
from ostinato.page.reporting.reporter import LOADED_INTERVAL
from ostinato.world import Clock

TICK: Final = 0.25  # seconds between two batches
MAX_WRITES: Final = 40  # in a batch
MAX_DECODED: Final = 25  # of them: decoding takes time that a busy plane needs
MAX_RUNS: Final = 20  # in a batch
MAX_SUBSCRIBERS: Final = 16
SETTLED: Final = LOADED_INTERVAL  # seconds until the report of a run has arrived
_BEHIND: Final = 20  # batches that a page may be behind
_HEARTBEAT: Final = 15.0  # seconds without a batch
_VIEWED: Final = 30.0  # seconds for which a command is taken to ask again
_RETRY: Final = b"retry: 1000\n\n"  # milliseconds until the browser connects again
_encode = msgspec.json.Encoder().encode


class TooManyPages(Exception):  # noqa: N818 - named after the condition
    """As many pages are open as are served."""


class _Subscriber:
    def __init__(self) -> None:
        self.batches: deque[tuple[bytes, int]] = deque()  # with the number of their writes
        self.lost = 0  # writes of batches that were dropped
        self.wakes = asyncio.Event()

    def put(self, batch: bytes, writes: int) -> None:
        if len(self.batches) >= _BEHIND:
            self.lost += self.batches.popleft()[1]
        self.batches.append((batch, writes))
        self.wakes.set()


class Stream:
    def __init__(self, clock: Clock, history: History) -> None:
        self._clock = clock
        self._history = history
        self._subscribers: set[_Subscriber] = set()
        self._last_change = 0  # number of the last change that was sent
        self._runs_sent = 0
        self._graph_sent = 0
        self._alarms_sent = 0
        self._sampled_at = 0.0
        self._asked_at = float("-inf")
        self.opened = asyncio.Event()  # set with the first open page

    @property
    def is_viewed(self) -> bool:
        """Whether a page is open, or a command has asked a moment ago."""
        return bool(self._subscribers) or self._clock.monotonic() - self._asked_at <= _VIEWED

    def asked(self) -> None:
        """Record that a command, which has no stream, asks for the current state."""
        self._asked_at = self._clock.monotonic()

    def tick(self) -> None:
        """Send a batch to all open pages, if something happened."""
        if not self._subscribers:
            self._skip()
            return
        batch = self._next()
        if batch is not None:
            data = _event(batch)
            for subscriber in self._subscribers:
                subscriber.put(data, len(batch.writes))

    async def subscribe(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events until closed. Raises `TooManyPages` before the first."""
        if len(self._subscribers) >= MAX_SUBSCRIBERS:
            raise TooManyPages
        if not self._subscribers:
            self._skip()
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        self.opened.set()
        try:
            yield _RETRY + _event(self._first())
            while True:
                subscriber.wakes.clear()
                while subscriber.batches:
                    data, _ = subscriber.batches.popleft()
                    if subscriber.lost:
                        lost, subscriber.lost = subscriber.lost, 0
                        yield _event(Batch(at=self._clock.wall(), dropped=lost))
                    yield data
                try:
                    async with self._clock.timeout(_HEARTBEAT):
                        await subscriber.wakes.wait()
                except TimeoutError:
                    yield b":\n\n"
        finally:
            self._subscribers.discard(subscriber)

    def _skip(self) -> None:
        """Forget what happened while no page was open."""
        self._last_change, self._runs_sent = self._history.changes.last, self._history.runs.added

    def _first(self) -> Batch:
        history = self._history
        return Batch(
            at=self._clock.wall(),
            controllers=[*history.samples.latest.values()],
            alarms=history.alarms.current(),
            graph=history.graph.graph(),
        )

    def _next(self) -> Batch | None:
        history, now = self._history, self._clock.wall()
        changes = [each for each in history.changes.after(self._last_change) if each.at <= now - SETTLED]
        runs = history.runs.newest(self._runs_sent, MAX_RUNS)
        self._runs_sent = history.runs.added
        if changes:
            self._last_change = changes[-1].number
        controllers: list[ControllerStats] = []
        if now - self._sampled_at >= 1.0:
            self._sampled_at = now
            controllers = [*history.samples.latest.values()]
        alarms: list[Alarm] | None = None
        if history.alarms.version != self._alarms_sent:
            self._alarms_sent = history.alarms.version
            alarms = history.alarms.current()
        writes, counts = _sent(changes, history)
        for write in writes:
            if not write.reconcile:  # of a component that does not report, or of a user
                history.graph.writes(write.author if write.author in COMPONENTS else "", kind_node(write.ref.gvk))
        grown = history.graph.version != self._graph_sent
        if not (changes or runs or controllers or grown or alarms is not None):
            return None
        self._graph_sent = history.graph.version
        return Batch(
            at=now,
            writes=writes,
            reconciles=[each.reconcile() for each in runs],
            controllers=controllers,
            alarms=alarms,
            dropped=len(changes) - len(writes),
            counts=counts or msgspec.UNSET,
            graph=history.graph.graph() if grown else msgspec.UNSET,
        )


def shown(changes: Sequence[Change], most: int, history: History) -> tuple[list[Write], list[Count]]:
    """Return the newest changes as facts, and the number of the others by edge of the graph."""
    writes = [each.shown() for each in changes[-most:]] if most else []
    return writes, _counts(changes[: max(0, len(changes) - most)], history)


def _sent(changes: Sequence[Change], history: History) -> tuple[list[Write], list[Count]]:
    """Return the changes of a batch as facts, and the number of those that are left out."""
    left_out, sent = changes[:-MAX_WRITES], changes[-MAX_WRITES:]
    if len(changes) <= MAX_DECODED:
        return [each.shown() for each in sent], []
    decoded = {each.number for each in [each for each in sent if not each.run][-MAX_DECODED:]}
    return [each.shown() if each.number in decoded else each.outlined() for each in sent], _counts(left_out, history)


def _counts(changes: Sequence[Change], history: History) -> list[Count]:
    counted = Counter([(each.controller, each.gvk) for each in changes])
    edges = Counter[tuple[str, str]]()
    for (controller, gvk), n in counted.items():
        edges[history.graph.author(controller), kind_node(gvk)] += n
    return [Count(source, target, n) for (source, target), n in edges.items()]


def _event(batch: Batch) -> bytes:
    return b"event: batch\ndata: " + _encode(batch) + b"\n\n"
