"""Reflector: lists and watches one collection on a server, and puts every change into a FIFO.

- Initial state: a streaming list (sendInitialEvents) where supported, otherwise a paged list; then a watch.
- A watch that ends, breaks or stalls is resumed from the last resourceVersion, without a relist.
- Relist: only when the server no longer has that resourceVersion (410, as a response or an event), was restored to an
  earlier state (seen in a bookmark, or reported through `suspect_restore`), or rejects the watch. A restored server
  sends nothing on a watch from a resourceVersion that it has not reached yet, so after two watches without any event
  the server's resourceVersion is compared.
- Errors are passed to `on_error` and followed by a backoff; the store keeps its state meanwhile. Runs until cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import Final, NoReturn, Protocol

import msgspec

from ostinato.api.codec import ObjectError
from ostinato.api.errors import APIError, TooManyRequests
from ostinato.api.object import KindInfo
from ostinato.cache.reflector.failures import ServerRestored, VeryShortWatch, is_expired, is_too_large, is_transient
from ostinato.cache.reflector.fifo import Bookmark, Fifo, Put, Remove, ReplacedAll
from ostinato.cache.reflector.paging import Pager
from ostinato.cache.reflector.retry_backoff import RetryBackoff
from ostinato.cache.reflector.streaming import NotStreamed, read_bookmark, read_initial
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.resource_versions import is_version, sort_key
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
SHORTEST_WATCH: Final = 300  # seconds; the timeout of a watch is this to twice as long, at random
_VERY_SHORT: Final = 1.0
_SUSPICIOUS: Final = 2  # consecutive watches without any event, after which the server's resourceVersion is compared
_NOT_OLDER: Final = "NotOlderThan"
_logger = logging.getLogger("ostinato.cache")

OnError = Callable[[Exception], object]


class ReflectorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `streaming`: request the initial state as a stream. Defaults to True; falls back to a list.
    - `page_size`: objects per page of a list. Defaults to 500 where the server would read the whole list from storage.
    - `watch_timeout`: seconds after which a watch ends and is reopened, up to twice as long. At least 300.
    - `backoff`: delays after errors. Defaults to 0.8 s, doubled up to 30 s, with jitter of up to as much again.
    """

    streaming: bool = True
    page_size: int | None = None
    watch_timeout: int = SHORTEST_WATCH
    backoff: Backoff = WATCHES


class Target(Protocol):
    """The store that the reflector fills."""

    def decoder(self, info: KindInfo) -> EntryDecoder:
        """Return the decoder of objects; called once the kind is known."""

    def replacement(self, *, restored: bool) -> Replacement:
        """Begin a new state, which is passed on in a `ReplacedAll`.

        `restored`: the server was restored, so a known resourceVersion may now mean another object.
        """


class _Position(Enum):
    """What is known about `Reflector.resource_version`; decides what the next list asks for."""

    KNOWN = "known"  # ask for a state that is not older
    EXPIRED = "expired"  # the server no longer has it: ask for the latest state
    RESTORED = "restored"  # the server went back to an earlier state: ask for the latest, trust no cached version


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
        self.resource_version = ""  # every change up to it is in the FIFO
        self._position = _Position.KNOWN
        self._suspicion = ""  # why the server may have been restored; ends the current watch
        self._silent = 0  # consecutive watches without any event, bookmarks included
        self._limit: Timeout | None = None  # of the open watch
        self._paged = False  # the server pages lists at resourceVersion 0 too
        self.source = source
        self.fifo = fifo
        self.clock = world.clock
        self._target = target
        self._decoder: EntryDecoder | None = None  # None until the kind is known
        self._rng = world.rng.fork(f"reflector of {source}")
        self._options = options
        self._on_error = on_error
        self._backoff = RetryBackoff(options.backoff, world.clock, self._rng)

    async def run(self) -> NoReturn:
        """List and watch until cancelled."""
        while True:
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - retried, whatever it is
                self._on_error(error)
                await self._pause(error)

    async def _round(self) -> None:
        """List, then watch; returns by the error that makes a relist necessary."""
        if self._decoder is None:
            self._decoder = self._target.decoder(await self.source.info())
        decoder = self._decoder
        events = await self._stream(decoder) if self._options.streaming else None
        if events is None:
            await self._list(decoder)
        await self._watch(decoder, events)

    # The initial state

    async def _stream(self, decoder: EntryDecoder) -> EventStream | None:
        """The watch, positioned after the initial state; None if the server does not support streaming lists."""
        while True:
            try:
                return await self._streamed(decoder)
            except (APIError, TransportError, NotStreamed) as error:
                if not await self._stream_again(error):
                    return None

    async def _streamed(self, decoder: EntryDecoder) -> EventStream:
        replacement = self._begin()
        events = await self.source.watch(
            WatchOptions(
                resource_version=self.resource_version if self._position is _Position.KNOWN else "",
                resource_version_match=_NOT_OLDER,
                send_initial_events=True,
                timeout_seconds=self._watch_seconds(),
            )
        )
        try:
            version = await read_initial(events, replacement, decoder, self.source, self.clock)
        except BaseException:
            events.close()
            raise
        self._replace(replacement, version)
        return events

    async def _stream_again(self, error: Exception) -> bool:
        """Whether to retry the streaming list; waits before a retry where needed."""
        if (is_expired(error) or is_too_large(error)) and self._position is _Position.KNOWN:
            self._position = _Position.EXPIRED
            return True
        if is_transient(error):
            self._on_error(error)
            await self._pause(error)
            return True
        _logger.debug("streaming list not supported, listing collection=%s error=%s", self.source, error)
        return False

    async def _list(self, decoder: EntryDecoder) -> None:
        pager = Pager(self.source, decoder, self._begin, self.clock)
        version = (self.resource_version or "0") if self._position is _Position.KNOWN else ""
        try:
            listed = await pager.list(self._list_options(version))
        except APIError as error:
            if not version or not (is_expired(error) or is_too_large(error)):
                raise
            self._position = _Position.EXPIRED
            version = ""
            listed = await pager.list(self._list_options(version))
        if version == "0" and listed.pages > 1:
            self._paged = True
        self._replace(listed.replacement, listed.resource_version)

    def _list_options(self, version: str) -> ListOptions:
        size = self._options.page_size
        if size is None:  # a list with a limit and a resourceVersion bypasses the server's watch cache
            size = PAGE_SIZE if version in ("", "0") or self._paged else 0
        return ListOptions(limit=size, resource_version=version)

    def _begin(self) -> Replacement:
        return self._target.replacement(restored=self._position is _Position.RESTORED)

    def _replace(self, replacement: Replacement, version: str) -> None:
        self.fifo.put(ReplacedAll(replacement, version, self._position is _Position.RESTORED))
        self.resource_version = version
        self._position = _Position.KNOWN
        self._suspicion = ""

    # The watch

    async def _watch(self, decoder: EntryDecoder, events: EventStream | None) -> NoReturn:
        """Watch, resuming after each watch, until a relist is necessary."""
        while True:
            receiver = _Receiver(self, decoder)
            try:
                if self._silent >= _SUSPICIOUS:
                    await self._check_state()
                await self._follow(receiver, events)
            except (TooManyRequests, TransportError) as error:
                self._silent = self._silent + 1 if isinstance(error, WatchStalled) and not receiver.count else 0
                if isinstance(error, TooManyRequests) or not receiver.lasted():
                    self._on_error(error)
                    await self._pause(error)
                else:
                    _logger.debug("watch interrupted, resuming collection=%s error=%s", self.source, error)
            else:
                if not receiver.lasted():
                    raise VeryShortWatch(f"{self.source}: very short watch: ended within a second without any event")
            events = None

    async def _check_state(self) -> None:
        """Raise `ServerRestored` if the server's resourceVersion is lower than ours, as a list of one object shows.

        The list asks for no minimum resourceVersion: a server behind it would answer 504 and ask for retries. If the
        server rejects the list, the watch goes on.
        """
        self._silent = 0
        try:
            listed = await self.source.list(ListOptions(limit=1))
        except TooManyRequests:
            raise
        except APIError as error:
            _logger.debug("cannot determine the server's resourceVersion collection=%s error=%s", self.source, error)
        else:
            self.check_reached(listed.metadata.resource_version)

    async def _follow(self, receiver: _Receiver, events: EventStream | None) -> None:
        """Receive one watch to its end: the given one, or a new one."""
        if events is None:
            options = WatchOptions(resource_version=self.resource_version, timeout_seconds=self._watch_seconds())
            events = await self.source.watch(options)
        receiver.begin()
        limit = self._limit = self.clock.timeout(0 if self._suspicion else None)
        try:
            async with limit:
                async for event in events:
                    receiver.receive(event)
                    if self.fifo.full:
                        await self.fifo.wait_for_room()
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._restored(self._suspicion) from None
        finally:
            self._limit = None
            events.close()

    def _watch_seconds(self) -> int:
        shortest = max(self._options.watch_timeout, SHORTEST_WATCH)
        return int(self._rng.uniform(shortest, 2 * shortest))

    async def _pause(self, error: Exception) -> None:
        asked = error.retry_after if isinstance(error, APIError) else None
        await self._backoff.wait(asked or 0)

    def suspect_restore(self, why: str) -> None:
        """Relist: a caller has evidence that the server was restored to an earlier state."""
        if is_version(self.resource_version):
            self._suspicion = why
            if self._limit is not None and not self._limit.expired():
                self._limit.reschedule(self.clock.monotonic())

    @property
    def is_watching(self) -> bool:
        """Whether a watch is open."""
        return self._limit is not None

    @property
    def restore_suspected(self) -> bool:
        """Whether the server may have been restored, and no relist has happened since."""
        return self._position is _Position.RESTORED or bool(self._suspicion)

    def check_reached(self, version: str) -> None:
        """Raise `ServerRestored` if the server's resourceVersion is lower than that of the last event."""
        last = self.resource_version
        if is_version(last) and is_version(version) and sort_key(version) < sort_key(last):
            raise self._restored(f"the server is at {version}")

    def _restored(self, why: str) -> ServerRestored:
        self._position = _Position.RESTORED
        return ServerRestored(f"{self.source}: resourceVersion went back from {self.resource_version}: {why}")


class _Receiver:
    """Puts the events of one watch into the FIFO, and advances the reflector's resourceVersion."""

    __slots__ = ("_begun", "_clock", "_decoder", "_fifo", "_reflector", "_unordered", "count")

    def __init__(self, reflector: Reflector, decoder: EntryDecoder) -> None:
        self._reflector = reflector
        self._fifo = reflector.fifo
        self._clock = reflector.clock
        self._decoder = decoder
        self._begun: float | None = None  # when the watch was opened
        self.count = 0  # events so far, bookmarks included
        self._unordered = reflector.resource_version in ("", "0")  # existing objects come first, unordered

    def begin(self) -> None:
        self._begun = self._clock.monotonic()

    def lasted(self) -> bool:
        """Whether it delivered an event or stayed open for a while."""
        if self._begun is None:
            return False
        return self.count > 0 or self._clock.monotonic() - self._begun >= _VERY_SHORT

    def receive(self, event: RawEvent) -> None:
        """Raise the `APIError` of an ERROR event."""
        self.count += 1
        kind = event.type
        if kind == ERROR:
            raise error_of(event)
        try:
            if kind == BOOKMARK:
                self._bookmark(read_bookmark(event)[0])
                return
            entry = self._decoder.decode(event.object)
        except ObjectError as error:
            _logger.error("cannot decode event, skipped collection=%s error=%s", self._reflector.source, error)
            return
        if kind in (ADDED, MODIFIED):
            self._fifo.put(Put(entry))
        elif kind == DELETED:
            self._fifo.put(Remove(entry))
        else:
            _logger.error("unknown event type, skipped collection=%s type=%r", self._reflector.source, kind)
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
