"""Sync tracker: waits until a cache has synced, and reports why it has not.

A rejection (no such kind, forbidden) does not pass without an intervention, so the wait ends a few seconds after it.
Transient errors, such as an unreachable server, are retried until the timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ostinato.api.errors import APIError, TooManyRequests
from ostinato.cache.listener import Listener
from ostinato.cache.reflector.failures import is_expired
from ostinato.cache.reflector.feed import Feed
from ostinato.client.list_watch import ListWatch
from ostinato.world import Clock

REJECTION_GRACE: Final = 5.0  # seconds that a wait continues after a rejection


class SyncError(Exception):
    """A cache has not synced. `cause`: the last error of the server or the connection, if any."""

    def __init__(self, message: str, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class SyncTracker:
    def __init__(self, feeds: Sequence[Feed], clock: Clock) -> None:
        self._feeds = feeds
        self._clock = clock
        self._rejected_since: dict[ListWatch, float] = {}  # by source: the first of consecutive rejections
        self._waiters: dict[asyncio.Future[None], None] = {}  # ordered set
        self._state = "not started"
        self._broken: Exception | None = None

    @property
    def has_synced(self) -> bool:
        return all(feed.has_synced for feed in self._feeds)

    # State changes

    def started(self) -> None:
        self._state = "running"

    def stopped(self) -> None:
        self._state = "stopped"
        self._wake()

    def broken(self, error: Exception) -> None:
        self._state = "broken"
        self._broken = error
        self._wake()

    def failed(self, source: ListWatch, error: Exception) -> None:
        if not _is_rejection(error):
            self._rejected_since.pop(source, None)
        elif source not in self._rejected_since:
            self._rejected_since[source] = self._clock.monotonic()
            self._wake()

    def feed_synced(self) -> bool:
        """Record that a feed has synced; return whether all have."""
        self._wake()
        return self.has_synced

    # Waiting

    async def wait(self, timeout: float | None, listener: Listener | None = None) -> None:  # noqa: ASYNC109
        """Wait until all feeds have synced, and then the listener, if given; raises `SyncError`."""
        until = None if timeout is None else self._clock.monotonic() + timeout
        while not self.has_synced:
            if self._state != "running":
                raise self._error(f"the informer is {self._state}", self._broken)
            rejected = min(self._rejected_since.values(), default=None)
            give_up = None if rejected is None else rejected + REJECTION_GRACE
            try:
                async with self._clock.deadline(_earlier(until, give_up)):
                    await self._wait_for_change()
            except TimeoutError:
                if until is not None and self._clock.monotonic() >= until:
                    raise self._error(f"not synced after {timeout:g} s") from None
                if (
                    self._rejected_since
                    and min(self._rejected_since.values()) + REJECTION_GRACE <= self._clock.monotonic()
                ):
                    raise self._error("the server rejects the list") from None
        if listener is not None:
            await self._wait_for_handler(listener, until, timeout)

    async def _wait_for_handler(self, listener: Listener, until: float | None, timeout: float | None) -> None:  # noqa: ASYNC109
        try:
            async with self._clock.deadline(until):
                await listener.wait_synced()
        except TimeoutError:
            raise SyncError(
                f"handler {listener.name}: not synced after {timeout:g} s, {listener.pending} events pending"
            ) from None

    async def _wait_for_change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            del self._waiters[waiter]

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _error(self, problem: str, cause: Exception | None = None) -> SyncError:
        late = [feed for feed in self._feeds if not feed.has_synced]
        cause = cause or next((feed.last_error for feed in late if feed.last_error is not None), None)
        names = "; ".join(f"{feed.source}: {feed.last_error}" if feed.last_error else str(feed.source) for feed in late)
        return SyncError(f"{problem}: {names}", cause)


def _is_rejection(error: Exception) -> bool:
    if not isinstance(error, APIError) or isinstance(error, TooManyRequests) or is_expired(error):
        return False
    return 400 <= error.code < 500


def _earlier(left: float | None, right: float | None) -> float | None:
    times = [each for each in (left, right) if each is not None]
    return min(times) if times else None
