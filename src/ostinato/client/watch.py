"""Watch: the changes of the objects of a kind, resumed after interruptions.

    async for event in client.watch(Pod, namespace="default"):
        print(event.type, event.object.metadata.name)

- `since`: begin after this resourceVersion. Without it, begin with an ADDED event for each existing object.
- Transient errors are retried with backoff: the end of a watch (servers end each after some minutes), a lost or stalled
  connection, a server that restarts or is overloaded. It resumes from the last resourceVersion: no event is repeated.
- Other errors are raised and end the watch: `Expired` or `Gone` if the server no longer has the missed events (relist,
  and watch from there), `Forbidden`, `NoSuchKind`.
- Objects that cannot be decoded are skipped and reported (`unreadable`), unless the watch is strict.
- `resource_version`: all events up to it were delivered. Bookmarks advance it, and are not delivered.

Close a watch that is no longer needed: `async with client.watch(…) as events:`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Generic, Literal, Self, TypeVar, cast

import msgspec

from ostinato.api.accessors import AnyObject, resource_version
from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.errors import (
    APIError,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from ostinato.api.serializer.header import read_header
from ostinato.client.collection import Collection
from ostinato.client.list_watch import (
    ADDED,
    DELETED,
    ERROR,
    MODIFIED,
    EventStream,
    ListOptions,
    RawEvent,
    WatchOptions,
    WatchStalled,
    error_of,
)
from ostinato.client.listing import PAGE_SIZE
from ostinato.client.transport.backoff import WATCHES
from ostinato.client.transport.closable import Closable
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut, TransportError
from ostinato.client.unreadable import UnreadableObjects, read_page
from ostinato.client.views import View
from ostinato.world import World

T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

MIN_WATCH_SECONDS: Final = 300  # the requested timeout of a watch is this to twice as long, at random
_VERY_SHORT: Final = 1.0  # a watch that ends within a second without any event is a failure
_DELIVERED: Final[dict[str, EventType]] = {ADDED: ADDED, MODIFIED: MODIFIED, DELETED: DELETED}
_TRANSIENT: Final = (TooManyRequests, InternalError, ServerTimeout, ServiceUnavailable, Timeout)
_DISCONNECTED: Final = (ConnectionLost, RequestTimedOut, WatchStalled)
_logger = logging.getLogger("ostinato.client")


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """Change of an object. A deleted object is in its last state, with the resourceVersion of the deletion."""

    type: EventType
    object: T


class Watch(Closable, Generic[T]):
    """Result of `client.watch`. Can be iterated once."""

    def __init__(
        self,
        collection: Collection,
        view: View[T],
        world: World,
        *,
        since: str | None,
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        """`unreadable`: receives objects that cannot be decoded. Defaults to None: they raise `ObjectError`."""
        self.resource_version = since or ""
        self._collection = collection
        self._view = view
        self._world = world
        self._unreadable = unreadable
        self._backoff = WATCHES.start(world.rng)
        self._next_page = ListOptions(limit=PAGE_SIZE) if since is None else None  # of the initial list
        self._page: Iterator[T] = iter(())  # its objects that were not delivered yet
        self._stream: EventStream | None = None  # the open watch
        self._opened = 0.0
        self._received = False  # an event was received on the stream
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        while not self._closed:
            for item in self._page:
                return WatchEvent(ADDED, item)
            try:
                event = await self._step()
            except (APIError, TransportError) as error:
                self._end_stream()
                await self._handle_error(error)
            else:
                if event is not None:
                    return event
        raise StopAsyncIteration

    def close(self) -> None:
        """End the watch, also for a task that waits for an event. Idempotent."""
        self._closed = True
        self._page = iter(())
        self._end_stream()

    async def _step(self) -> WatchEvent[T] | None:
        """Take the next step: read a page, open a watch, or receive an event."""
        if self._next_page is not None:
            await self._read_page(self._next_page)
            return None
        if self._stream is None:
            await self._open_stream()
            return None
        try:
            raw = await anext(self._stream)
        except StopAsyncIteration:
            await self._resume()
            return None
        return await self._event(raw)

    async def _read_page(self, options: ListOptions) -> None:
        data = await self._collection.read(options)
        self._backoff.reset()
        metadata, items = read_page(self._view, data, await self._collection.info(), self._unreadable)
        self.resource_version = self.resource_version or metadata.resource_version
        self._page = iter(items)
        following = ListOptions(limit=PAGE_SIZE, continue_token=metadata.continue_)
        self._next_page = following if metadata.continue_ else None

    async def _open_stream(self) -> None:
        clock, rng = self._world.clock, self._world.rng
        options = WatchOptions(
            resource_version=self.resource_version,
            timeout_seconds=int(rng.uniform(MIN_WATCH_SECONDS, 2 * MIN_WATCH_SECONDS)),
        )
        self._stream = await self._collection.watch(options)
        self._opened, self._received = clock.monotonic(), False
        if self._closed:  # meanwhile
            self._end_stream()

    async def _event(self, raw: RawEvent) -> WatchEvent[T] | None:
        if raw.type == ERROR:
            raise error_of(raw)
        self._received = True
        self._backoff.reset()
        kind = _DELIVERED.get(raw.type)
        if kind is None:
            self._advance(read_header(raw.object).resource_version)
            return None
        info = await self._collection.info()
        try:
            found = self._view.read(raw.object, info)
        except ObjectError as error:
            if self._unreadable is None or isinstance(error, WrongKind):
                raise
            self._advance(self._unreadable.report_json(info.gvk, raw.object, error))
            return None
        self._advance(resource_version(cast("AnyObject", found)))
        return WatchEvent(kind, found)

    def _advance(self, version: str) -> None:
        self.resource_version = version or self.resource_version

    async def _resume(self) -> None:
        """Prepare to watch again after the server ended the watch."""
        self._end_stream()
        if not self._received and self._world.clock.monotonic() - self._opened < _VERY_SHORT:
            await self._wait(self._backoff.next(), "very short watch: ended within a second without any event")

    async def _handle_error(self, error: APIError | TransportError) -> None:
        """Wait before a retry after a transient error; raise others."""
        if self._closed:  # which caused the error
            return
        if not isinstance(error, (*_TRANSIENT, *_DISCONNECTED)):
            self.close()
            raise error
        wait = self._backoff.next()
        if isinstance(error, APIError) and error.retry_after:
            wait = max(wait, error.retry_after)
        await self._wait(wait, str(error))

    async def _wait(self, seconds: float, why: str) -> None:
        _logger.warning(
            "watch interrupted, retrying collection=%s delay=%.1fs error=%s", self._collection, seconds, why
        )
        await self._world.clock.sleep(seconds)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
