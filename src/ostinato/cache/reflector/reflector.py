"""The reflector: tells a FIFO all that happens in one collection on a server, for as long as it runs.

- It begins with what is there, as a stream if the server can do that, else as a list, and goes on with a watch.
- A watch that ends, breaks or falls silent is opened again where it got to; nothing is listed for that.
- It lists again only if the server no longer has what was missed (410, in the answer or in the stream), has gone back
  to an earlier state (a bookmark tells, or somebody who knows), or refuses to be watched. A server that went back says
  nothing in a watch from a version that it has not reached: after two silent ones it is asked whether it has.
- It never gives up: failures are told to `on_error` and followed by a pause. The store stays as it is meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

import msgspec

from ostinato.api.codec import ObjectError
from ostinato.api.errors import APIError, TooManyRequests
from ostinato.api.object import KindInfo
from ostinato.cache.reflector.failures import StateWentBack, VeryShortWatch, is_expired, is_passing, is_too_large
from ostinato.cache.reflector.fifo import Bookmark, Fifo, Put, Remove, ReplacedAll
from ostinato.cache.reflector.paging import Pager
from ostinato.cache.reflector.pauses import Pauses
from ostinato.cache.reflector.streaming import NotStreamed, read_bookmark, read_initial
from ostinato.cache.store.intake import Intake
from ostinato.cache.store.resource_versions import is_version, order
from ostinato.cache.store.store import Replacement
from ostinato.client.list_watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    EventStream,
    ListOptions,
    ListWatch,
    RawEvent,
    WatchOptions,
    WatchStalled,
    error_of,
)
from ostinato.client.transport.backoff import WATCHES, Backoff
from ostinato.client.transport.protocol import TransportError
from ostinato.world import Timeout, World

PAGE_SIZE: Final = 500
SHORTEST_WATCH: Final = 300  # seconds after which a server is asked to end a watch; up to twice as long
_VERY_SHORT: Final = 1.0
_SUSPICIOUS: Final = 2  # silent watches in a row
_NOT_OLDER: Final = "NotOlderThan"
_logger = logging.getLogger("ostinato.cache")

OnError = Callable[[Exception], object]


class ReflectorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `streaming`: ask for the initial state as a stream. Defaults to True; a server that cannot is listed.
    - `page_size`: objects a page. Defaults to 500 where the server would otherwise read all from its disk in one go.
    - `watch_timeout`: seconds after which a watch ends and is opened again, up to twice as long. Not below 300.
    - `backoff`: the pauses after failures. Defaults to 0.8 s, doubled up to 30 s, and up to as much again by chance.
    """

    streaming: bool = True
    page_size: int | None = None
    watch_timeout: int = SHORTEST_WATCH
    backoff: Backoff = WATCHES


class Target(Protocol):
    """What the reflector fills."""

    def intake(self, info: KindInfo) -> Intake:
        """Makes entries of what the server sends, now that the kind is known."""

    def replacement(self, *, anew: bool) -> Replacement:
        """Begin a new state; it comes back in a `ReplacedAll`. `anew`: versions that are known may now be others."""


class Reflector:
    def __init__(
        self,
        source: ListWatch,
        fifo: Fifo,
        target: Target,
        world: World,
        options: ReflectorOptions,
        on_error: OnError,
    ) -> None:
        self.resource_version = ""  # up to which everything was told
        self._unavailable = False  # the server does not have that version: ask for the latest
        self._went_back = False  # it does not know what was told, and gives the same versions anew
        self._doubted = ""  # why somebody thinks so
        self._silent = 0  # watches in a row that were open and told nothing, not even a bookmark
        self._limit: Timeout | None = None  # of the watch that is open
        self._paged = False  # the server divides lists into pages even if any state is good enough
        self.source = source
        self.fifo = fifo
        self.clock = world.clock
        self._target = target
        self._intake: Intake | None = None  # None as long as the kind is not known
        self._rng = world.rng.fork(f"reflector of {source}")
        self._options = options
        self._on_error = on_error
        self._pauses = Pauses(options.backoff, world.clock, self._rng)

    async def run(self) -> NoReturn:
        """Round after round, until it is cancelled."""
        while True:
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may succeed
                self._on_error(error)
                await self._pause(error)

    async def _round(self) -> None:
        """List, then watch until only another list can help: an error says why."""
        if self._intake is None:
            self._intake = self._target.intake(await self.source.info())
        intake = self._intake
        events = await self._stream(intake) if self._options.streaming else None
        if events is None:
            await self._list(intake)
        await self._watch(intake, events)

    # The initial state

    async def _stream(self, intake: Intake) -> EventStream | None:
        """The stream, after all that was there has been told; None if the server has to be listed."""
        while True:
            try:
                return await self._streamed(intake)
            except (APIError, TransportError, NotStreamed) as error:
                if not await self._stream_again(error):
                    return None

    async def _streamed(self, intake: Intake) -> EventStream:
        replacement = self._begin()
        events = await self.source.watch(
            WatchOptions(
                resource_version="" if self._unavailable else self.resource_version,
                resource_version_match=_NOT_OLDER,
                send_initial_events=True,
                timeout_seconds=self._watch_seconds(),
            )
        )
        try:
            version = await read_initial(events, replacement, intake, self.source, self.clock)
        except BaseException:
            events.close()
            raise
        self._replace(replacement, version)
        return events

    async def _stream_again(self, error: Exception) -> bool:
        """Return when another try should be made, or that none should."""
        if (is_expired(error) or is_too_large(error)) and not self._unavailable:
            self._unavailable = True
            return True
        if is_passing(error):
            self._on_error(error)
            await self._pause(error)
            return True
        _logger.debug("%s: no stream of what is there, so it is listed: %s", self.source, error)
        return False

    async def _list(self, intake: Intake) -> None:
        pager = Pager(self.source, intake, self._begin, self.clock)
        version = "" if self._unavailable else self.resource_version or "0"
        try:
            listed = await pager.list(self._list_options(version))
        except APIError as error:
            if not version or not (is_expired(error) or is_too_large(error)):
                raise
            self._unavailable = True
            version = ""
            listed = await pager.list(self._list_options(version))
        if version == "0" and listed.pages > 1:
            self._paged = True
        self._replace(listed.replacement, listed.resource_version)

    def _list_options(self, version: str) -> ListOptions:
        size = self._options.page_size
        if size is None:  # a server answers a list of a given state from memory only if it need not divide it
            size = PAGE_SIZE if version in ("", "0") or self._paged else 0
        return ListOptions(limit=size, resource_version=version)

    def _begin(self) -> Replacement:
        return self._target.replacement(anew=self._went_back)

    def _replace(self, replacement: Replacement, version: str) -> None:
        self.fifo.put(ReplacedAll(replacement, version, self._went_back))
        self.resource_version = version
        self._unavailable = self._went_back = False
        self._doubted = ""

    # The watch

    async def _watch(self, intake: Intake, events: EventStream | None) -> NoReturn:
        """From watch to watch, until only another list can help."""
        while True:
            telling = _Telling(self, intake)
            try:
                if self._silent >= _SUSPICIOUS:
                    await self._check_state()
                await self._follow(telling, events)
            except (TooManyRequests, TransportError) as error:
                self._silent = self._silent + 1 if isinstance(error, WatchStalled) and not telling.count else 0
                if isinstance(error, TooManyRequests) or not telling.lasted():
                    self._on_error(error)
                    await self._pause(error)
                else:
                    _logger.debug("%s: the watch broke off: %s", self.source, error)
            else:
                if not telling.lasted():
                    raise VeryShortWatch(f"{self.source}: the watch ended at once, without an event")
            events = None

    async def _check_state(self) -> None:
        """`StateWentBack` if the server has not reached what was told: a list of one object tells how far it is.

        It is not asked for what it may not have: it would say to come again, ten times. If it refuses to be asked, it
        is watched as before.
        """
        self._silent = 0
        try:
            listed = await self.source.list(ListOptions(limit=1))
        except TooManyRequests:
            raise
        except APIError as error:
            _logger.debug("%s: where the server is is not to be known: %s", self.source, error)
        else:
            self.check_reached(listed.metadata.resource_version)

    async def _follow(self, telling: _Telling, events: EventStream | None) -> None:
        """One watch, to its end: that of a stream which is open, or another."""
        if events is None:
            options = WatchOptions(resource_version=self.resource_version, timeout_seconds=self._watch_seconds())
            events = await self.source.watch(options)
        telling.begin()
        limit = self._limit = self.clock.timeout(0 if self._doubted else None)
        try:
            async with limit:
                async for event in events:
                    telling.tell(event)
                    if self.fifo.full:
                        await self.fifo.room()
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._gone_back(self._doubted) from None
        finally:
            self._limit = None
            events.close()

    def _watch_seconds(self) -> int:
        shortest = max(self._options.watch_timeout, SHORTEST_WATCH)
        return int(self._rng.uniform(shortest, 2 * shortest))

    async def _pause(self, error: Exception) -> None:
        asked = error.retry_after if isinstance(error, APIError) else None
        await self._pauses.wait(asked or 0)

    def doubt(self, why: str) -> None:
        """Somebody knows that the server went back to an earlier state than what was told."""
        if is_version(self.resource_version):
            self._doubted = why
            if self._limit is not None and not self._limit.expired():
                self._limit.reschedule(self.clock.monotonic())

    @property
    def is_watching(self) -> bool:
        """Whether a watch is open."""
        return self._limit is not None

    @property
    def is_in_doubt(self) -> bool:
        """Whether what was told is to be listed anew, and has not been yet."""
        return self._went_back or bool(self._doubted)

    def check_reached(self, version: str) -> None:
        """`StateWentBack` if the server is at this version, which is earlier than the one that was told."""
        told = self.resource_version
        if is_version(told) and is_version(version) and order(version) < order(told):
            raise self._gone_back(f"it is at {version}")

    def _gone_back(self, why: str) -> StateWentBack:
        self._unavailable = self._went_back = True
        return StateWentBack(f"{self.source}: the server went back from version {self.resource_version}: {why}")


class _Telling:
    """Puts the events of one watch into the FIFO, and notes up to which version everything is there."""

    __slots__ = ("_begun", "_clock", "_fifo", "_intake", "_reflector", "_unordered", "count")

    def __init__(self, reflector: Reflector, intake: Intake) -> None:
        self._reflector = reflector
        self._fifo = reflector.fifo
        self._clock = reflector.clock
        self._intake = intake
        self._begun: float | None = None  # when the watch was open
        self.count = 0  # events so far, bookmarks too
        self._unordered = reflector.resource_version in ("", "0")  # what is there comes first, in no order of versions

    def begin(self) -> None:
        self._begun = self._clock.monotonic()

    def lasted(self) -> bool:
        """Whether it told anything, or was open for some time."""
        if self._begun is None:
            return False
        return self.count > 0 or self._clock.monotonic() - self._begun >= _VERY_SHORT

    def tell(self, event: RawEvent) -> None:
        """An `APIError` if that is what the event tells of."""
        self.count += 1
        kind = event.type
        if kind == ERROR:
            raise error_of(event)
        try:
            if kind == BOOKMARK:
                self._bookmark(read_bookmark(event)[0])
                return
            entry = self._intake.entry(event.object)
        except ObjectError as error:
            _logger.error("%s: an event is passed over: %s", self._reflector.source, error)
            return
        if kind in (ADDED, MODIFIED):
            self._fifo.put(Put(entry))
        elif kind == DELETED:
            self._fifo.put(Remove(entry))
        else:
            _logger.error("%s: an event of the unknown type %r is passed over", self._reflector.source, kind)
        if self._unordered and kind == ADDED:
            return
        self._unordered = False
        if entry.resource_version:
            self._reflector.resource_version = entry.resource_version

    def _bookmark(self, version: str) -> None:
        self._reflector.check_reached(version)
        self._unordered = False
        self._reflector.resource_version = version
        self._fifo.put(Bookmark(version))
