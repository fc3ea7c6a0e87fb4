"""Events: what happened to objects, told to people by `kubectl describe`.

    recorder = events.recorder("widgets")
    recorder.event(widget, "Scaled", "3 replicas now")
    recorder.event(widget, "Refused", "no such image", kind="Warning", related=deployment)

- Recording never waits and never raises. What came first is told first, several at once. Twenty thousand events wait at
  most, some thirty megabytes; of more, the newest are dropped.
- Events that say the same become one, with a count; see `event_series` for those of events.k8s.io, which is what is
  written unless asked otherwise, and `event_counts` for those of the core group.
- A server that cannot be reached is asked again, every ten seconds and a bit, twelve times; what it refuses is dropped,
  and so is what cannot be sent at all.
- `stop` tells what is left, once each, and within a time. What is recorded after it is dropped.
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
from ostinato.manager.events.books import Book, Known
from ostinato.manager.events.counts import CountBook
from ostinato.manager.events.recorders import CoreEventRecorder, EventRecorder
from ostinato.manager.events.series import FINISHED_AFTER, SeriesBook
from ostinato.world import World

MOST_WAITING: Final = 20_000
AT_ONCE: Final = 8  # that the server is told of at the same time
TRIES: Final = 12
BETWEEN_TRIES: Final = 10.0  # seconds, and up to a quarter more
REFRESH: Final = 1800.0  # seconds after which the counts of living series are told
FLUSH: Final = 5.0  # seconds for what is left at the end

_logger = logging.getLogger("ostinato.manager")


class Events:
    """All events of one process, on their way to the server."""

    def __init__(self, client: Client, world: World) -> None:
        self._client = client
        self._world = world
        self._clock = world.clock
        self._rng = world.rng.fork("events")
        self._waiting: deque[Callable[[], Known | None]] = deque()  # to be noted; threads put them here, too
        self._to_tell: dict[Known, None] = {}  # noted, in order; each once, and told as it stands then
        self._under_way: list[Known] = []  # what the server is being told; none of them twice at once
        self._came = asyncio.Event()
        self._series = SeriesBook(world.clock)
        self._counts = CountBook(world.clock)
        self._books: tuple[Book, ...] = (self._series, self._counts)
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._dropped = 0
        self._moment = 0  # that was given to an event last
        self._nanoseconds = world.rng.randrange(1000)  # a clock tells microseconds: other processes have other ones

    def recorder(self, controller: str) -> EventRecorder:
        """A recorder for what is done by `controller`, of Events of events.k8s.io."""
        return EventRecorder(self, controller, self._world, self._series)

    def core_recorder(self, controller: str, host: str = "") -> CoreEventRecorder:
        """One of Events of the core group, which may say on which host things happen."""
        return CoreEventRecorder(self, controller, self._world, self._counts, host)

    def start(self) -> None:
        """Begin to tell. Events may be recorded before."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(), name="events")

    async def stop(self) -> None:
        """Tell what is left, for some seconds at most."""
        self._stopped = True
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            async with self._clock.timeout(FLUSH):
                await self._flush()
        except TimeoutError:
            left = len(self._under_way) + len(self._to_tell)
            _logger.warning("%d events were not told: the server was too slow", left)
        self._to_tell.clear()

    def add(self, note: Callable[[], Known | None]) -> None:
        """Take an event, or drop it if there are too many. Never waits, and may be called in any thread.

        `note` puts it into a book, and gives what is to be told; it is called on the loop.
        """
        if self._stopped:
            return
        if len(self._waiting) + len(self._to_tell) >= MOST_WAITING:
            self._dropped += 1
            if self._dropped & (self._dropped - 1) == 0:  # 1, 2, 4, 8: loud, but not for long
                _logger.warning("%d events dropped: too many wait for the server", self._dropped)
            return
        self._waiting.append(note)
        if self._loop is None:
            self._came.set()
        elif not self._came.is_set():
            self._loop.call_soon_threadsafe(self._came.set)

    def moment(self) -> int:
        """Now, in nanoseconds; of two events of the same moment the second is a bit later, so that both have a name."""
        self._moment = max(self._moment + 1, int(self._clock.wall() * 1e6) * 1000 + self._nanoseconds)
        return self._moment

    async def _run(self) -> None:
        sweeping = asyncio.get_running_loop().create_task(self._sweep(), name="events: series")
        try:
            while True:
                await self._came.wait()
                self._came.clear()
                self._note()
                while self._to_tell:
                    await self._tell_some(self._tell)
                    self._note()
        finally:
            sweeping.cancel()
            await asyncio.wait([sweeping])

    async def _sweep(self) -> None:
        refreshed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(FINISHED_AFTER)
            for known in [known for book in self._books for known in book.finished()]:
                await self._tell(known)
            if self._clock.monotonic() - refreshed_at >= REFRESH:
                refreshed_at = self._clock.monotonic()
                for known in self._untold():
                    await self._tell(known)

    async def _flush(self) -> None:
        self._to_tell = dict.fromkeys(self._under_way) | self._to_tell
        self._note()
        while self._to_tell:
            await self._tell_some(self._try)
        for known in self._untold():
            await self._try(known)

    async def _tell_some(self, tell: Callable[[Known], Coroutine[Any, Any, object]]) -> None:
        """The first ones, at once."""
        self._under_way = list(itertools.islice(self._to_tell, AT_ONCE))
        for known in self._under_way:
            del self._to_tell[known]
        if len(self._under_way) == 1:
            await tell(self._under_way[0])
        else:
            async with asyncio.TaskGroup() as group:
                for known in self._under_way:
                    group.create_task(tell(known))
        self._under_way = []

    def _note(self) -> None:
        """Put what has come into the books: what is only counted, or too much, waits for nobody."""
        while self._waiting:
            if (known := self._waiting.popleft()()) is not None:
                self._to_tell[known] = None

    def _untold(self) -> list[Known]:
        return [known for book in self._books for known in book.untold()]

    async def _tell(self, known: Known) -> None:
        for _ in range(TRIES):
            if await self._try(known):
                return
            await self._clock.sleep(self._rng.jitter(BETWEEN_TRIES, 0.25))
        _logger.error("unable to write event %s (retry limit exceeded)", known)
        known.forget()

    async def _try(self, known: Known) -> bool:
        """Whether that is settled: told, or refused."""
        untold = known.untold
        try:
            await known.write(self._client)
        except AlreadyExists as error:
            _logger.debug("the server rejected event %s: %s", known, error)
            return not known.is_series  # of a series: it has been made in the meantime, and can be patched
        except APIError as error:
            level = logging.DEBUG if error.has_cause(NAMESPACE_TERMINATING) else logging.ERROR
            _logger.log(level, "the server rejected event %s: %s", known, error)
            known.forget()
        except TransportError as error:
            _logger.warning("unable to write event %s (may be tried again): %s", known, error)
            return False
        except Exception:  # whatever is wrong with it: others wait behind it
            # Escaped, or the log could not be written either.
            _logger.exception("event %a cannot be written", str(known))
            known.forget()
        else:
            known.untold -= untold
        return True
