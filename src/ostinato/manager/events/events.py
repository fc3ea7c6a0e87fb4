"""Events: records Events about objects and writes them in the background.

    recorder = events.recorder("widgets")
    recorder.event(widget, "Scaled", "3 replicas now")
    recorder.event(widget, "Refused", "no such image", kind="Warning", related=deployment)

- Recording never blocks and never raises. Events are written in order, several concurrently. At most 20,000 Events are
  queued, about 30 MB; beyond that, new Events are dropped.
- Repeated Events are correlated: see `series` for Events of events.k8s.io, the default, and `counts` for those of the
  core group.
- If the server cannot be reached, a write is retried up to twelve times, about every ten seconds. Rejected Events are
  dropped.
- `stop` writes the remaining Events, each with one attempt, within a timeout. Later Events are dropped.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ostinato.api.errors import NAMESPACE_TERMINATING, AlreadyExists, APIError
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.manager.events.correlation import Correlator, RecordedEvent
from ostinato.manager.events.counts import CountCorrelator
from ostinato.manager.events.recorders import CoreEventRecorder, EventRecorder
from ostinato.manager.events.series import FINISHED_AFTER, SeriesCorrelator
from ostinato.world import World
from ostinato.world.supervision import supervised

MAX_QUEUED: Final = 20_000
CONCURRENCY: Final = 8  # of writes
MAX_ATTEMPTS: Final = 12
RETRY_PERIOD: Final = 10.0  # seconds, plus up to 25 % jitter
REFRESH: Final = 1800.0  # seconds between writes of the counts of active series
FLUSH_TIMEOUT: Final = 5.0  # seconds

_logger = logging.getLogger("ostinato.manager")


class Events:
    """The Events of one process."""

    def __init__(self, client: Client, world: World) -> None:
        self._client = client
        self._world = world
        self._clock = world.clock
        self._rng = world.rng.fork("events")
        self._waiting: deque[Callable[[], RecordedEvent | None]] = deque()  # to be correlated; appended by any thread
        self._to_write: dict[RecordedEvent, None] = {}  # correlated Events in order, each once
        self._writing: list[RecordedEvent] = []  # current writes
        self._came = asyncio.Event()
        self._series = SeriesCorrelator(world.clock)
        self._counts = CountCorrelator(world.clock)
        self._correlators: tuple[Correlator, ...] = (self._series, self._counts)
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._dropped = 0
        self._moment = 0  # of the last Event
        self._nanoseconds = world.rng.randrange(1000)  # distinguishes processes: the clock has microseconds

    def recorder(self, controller: str) -> EventRecorder:
        """Return a recorder of events.k8s.io Events for a controller."""
        return EventRecorder(self, controller, self._world, self._series)

    def core_recorder(self, controller: str, host: str = "") -> CoreEventRecorder:
        """Return a recorder of core Events for a controller, optionally with a source host."""
        return CoreEventRecorder(self, controller, self._world, self._counts, host)

    def start(self) -> None:
        """Start to write. Events may be recorded before."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(supervised("events", self._run, self._clock), name="events")

    async def stop(self) -> None:
        """Write the remaining Events, within a timeout."""
        self._stopped = True
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            async with self._clock.timeout(FLUSH_TIMEOUT):
                await self._flush()
        except TimeoutError:
            left = len(self._writing) + len(self._to_write)
            _logger.warning("flushing events timed out events=%d", left)
        self._to_write.clear()

    def add(self, note: Callable[[], RecordedEvent | None]) -> None:
        """Queue an Event, or drop it if the queue is full. Never blocks; thread-safe.

        `note`: correlates the Event and returns what to write; called on the loop.
        """
        if self._stopped:
            return
        if len(self._waiting) + len(self._to_write) >= MAX_QUEUED:
            self._dropped += 1
            if self._dropped & (self._dropped - 1) == 0:  # logged for 1, 2, 4, 8, …
                _logger.warning("event queue full, events dropped total=%d", self._dropped)
            return
        self._waiting.append(note)
        if self._loop is None:
            self._came.set()
        elif not self._came.is_set():
            self._loop.call_soon_threadsafe(self._came.set)

    def moment(self) -> int:
        """Return the time in nanoseconds, never the same twice: it is part of Event names."""
        self._moment = max(self._moment + 1, int(self._clock.wall() * 1e6) * 1000 + self._nanoseconds)
        return self._moment

    async def _run(self) -> None:
        sweep = supervised("event series", self._sweep, self._clock)
        sweeping = asyncio.get_running_loop().create_task(sweep, name="events: series")
        try:
            while True:
                await self._came.wait()
                self._came.clear()
                self._note()
                while self._to_write:
                    await self._write_batch(self._write)
                    self._note()
        finally:
            sweeping.cancel()
            await asyncio.wait([sweeping])

    async def _sweep(self) -> None:
        refreshed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(FINISHED_AFTER)
            for known in [known for correlator in self._correlators for known in correlator.finished()]:
                await self._write(known)
            if self._clock.monotonic() - refreshed_at >= REFRESH:
                refreshed_at = self._clock.monotonic()
                for known in self._pending():
                    await self._write(known)

    async def _flush(self) -> None:
        self._to_write = dict.fromkeys(self._writing) | self._to_write
        self._note()
        while self._to_write:
            await self._write_batch(self._try)
        for known in self._pending():
            await self._try(known)

    async def _write_batch(self, write: Callable[[RecordedEvent], Coroutine[Any, Any, object]]) -> None:
        """Write the first Events concurrently."""
        self._writing = list(itertools.islice(self._to_write, CONCURRENCY))
        for known in self._writing:
            del self._to_write[known]
        if len(self._writing) == 1:
            await write(self._writing[0])
        else:
            async with asyncio.TaskGroup() as group:
                for known in self._writing:
                    group.create_task(write(known))
        self._writing = []

    def _note(self) -> None:
        """Correlate the queued Events."""
        while self._waiting:
            if (known := self._waiting.popleft()()) is not None:
                self._to_write[known] = None

    def _pending(self) -> list[RecordedEvent]:
        return [known for correlator in self._correlators for known in correlator.pending()]

    async def _write(self, known: RecordedEvent) -> None:
        for _ in range(MAX_ATTEMPTS):
            if await self._try(known):
                return
            await self._clock.sleep(self._rng.jitter(RETRY_PERIOD, 0.25))
        _logger.error("unable to write event, retry limit exceeded event=%s", known)
        known.forget()

    async def _try(self, known: RecordedEvent) -> bool:
        """Write an Event once. Returns whether it is settled: written or rejected."""
        pending = known.pending
        try:
            await known.write(self._client)
        except AlreadyExists as error:
            _logger.debug("server rejected event event=%s error=%s", known, error)
            return not known.is_series  # a series that exists by now can be patched
        except APIError as error:
            level = logging.DEBUG if error.has_cause(NAMESPACE_TERMINATING) else logging.ERROR
            _logger.log(level, "server rejected event event=%s error=%s", known, error)
            known.forget()
        except TransportError as error:
            _logger.warning("unable to write event, will retry event=%s error=%s", known, error)
            return False
        except Exception:  # must not block the Events behind it
            # Escaped: it may contain characters that cannot be logged.
            _logger.exception("event cannot be encoded, dropped event=%a", str(known))
            known.forget()
        else:
            known.pending -= pending
        return True
