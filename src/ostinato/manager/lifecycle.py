"""The life of a manager: start everything in order, wait for a reason to end, stop everything in order.

The reasons are: somebody asks for it, a part fails, leadership is lost. Each wait ends when there is one, that for a
cache that never fills too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from ostinato.cache.informers import Informers
from ostinato.manager.election.election import Election
from ostinato.manager.election.elector import LeadershipLost
from ostinato.manager.endpoints import Endpoint
from ostinato.manager.groups import Groups
from ostinato.world import Clock, Timeout

_logger = logging.getLogger("ostinato.manager")


class ShutdownTimedOut(TimeoutError):  # noqa: N818 - what happened, in the past tense
    """Some runnables did not end in the time that they had. What they did is cut short."""


class Parts(NamedTuple):
    """What there is to be started and stopped."""

    endpoints: Sequence[Endpoint]
    groups: Groups
    caches: list[Informers]  # may grow while the manager runs
    sync_timeout: float
    election: Election | None


class Lifecycle:
    def __init__(self, parts: Parts, clock: Clock, graceful_shutdown: float, filled: asyncio.Event) -> None:
        """`filled` is set when all caches are."""
        self._parts = parts
        self._clock = clock
        self._grace = graceful_shutdown
        self._filled = filled
        self._reason = asyncio.Event()  # set when there is one to end
        self._failure: Exception | None = None  # the first
        self._limit: Timeout | None = None  # while runnables stop
        self._hurried = False  # nothing has any time left
        self._lost = False  # leadership
        self._resigning = False
        self._watching: asyncio.Task[None] | None = None  # the election
        self._leading: asyncio.Task[None] | None = None  # starts what leaders run
        self.is_stopping = False
        self.elected = asyncio.Event()

    async def live(self) -> None:
        """Start, wait for a reason to end, stop; raise what went wrong. Cancelled again while it stops, it hurries."""
        starting = asyncio.get_running_loop().create_task(self._start(), name="manager: start")
        cancelled = False
        try:
            await self._reason.wait()
        except asyncio.CancelledError:
            cancelled = True
        stopping = asyncio.get_running_loop().create_task(self._stop(starting), name="manager: stop")
        while not stopping.done():
            try:
                await asyncio.wait([stopping])
            except asyncio.CancelledError:
                cancelled = True
                self._hurry()
        errors = [each for each in (self._failure, stopping.exception()) if isinstance(each, Exception)]
        if len(errors) > 1:
            raise ExceptionGroup("the manager failed, and did not stop in time", errors)
        if errors:
            raise errors[0]
        if cancelled:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """Ask for the end. Harmless when it has begun."""
        self._reason.set()

    def failed(self, name: str, error: Exception) -> None:
        """A part has failed: the first such error is the reason to end, later ones are logged."""
        if self._failure is not None or self.is_stopping:
            told = None if isinstance(error, LeadershipLost) else error
            _logger.error("%s failed while the manager stops: %s", name, error, exc_info=told)
            return
        _logger.error("%s failed: %s", name, error)
        error.add_note(f"in {name}, which ended the manager")
        self._failure = error
        self._reason.set()

    def lead(self) -> None:
        """Leadership is won: start what needs it."""
        if self.is_stopping:
            return
        self.elected.set()
        self._leading = asyncio.get_running_loop().create_task(self._parts.groups.leaders.start())

    # Starting

    async def _start(self) -> None:
        try:
            await self._start_in_order()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason to end
            self.failed("the start", error)

    async def _start_in_order(self) -> None:
        parts, groups = self._parts, self._parts.groups
        for endpoint in parts.endpoints:
            await endpoint.start()
        await groups.webhooks.start()
        for cache in parts.caches:
            cache.start()
        for cache in parts.caches:
            await cache.synced(parts.sync_timeout)
        self._filled.set()
        await groups.others.start()
        await groups.warm_up.start()
        await groups.warm_up.wait()
        if parts.election is None:
            self.lead()
        else:
            parts.election.start()
            self._watching = asyncio.get_running_loop().create_task(self._watch(parts.election))

    async def _watch(self, election: Election) -> None:
        """Leadership may be lost at any time; while the manager stops, too, and then there is no time left."""
        try:
            await election.ended()
        except Exception as error:  # noqa: BLE001 - an election that fails is lost, for whatever reason
            self.failed("leader election", error)
            self._lost = True
            self._hurry()

    # Stopping

    async def _stop(self, starting: asyncio.Task[None]) -> None:
        self.is_stopping = True
        in_time = False
        if self._parts.election is not None and not self.elected.is_set():
            self._parts.election.abandon()  # others are to be elected, not a process that is about to end
        try:
            starting.cancel()
            await asyncio.wait([starting])
            in_time = await self._stop_runnables(0.0 if self._hurried else self._grace)
        finally:
            await self._stop_the_rest(release=in_time)
        if not in_time and self._grace > 0 and not self._lost:
            raise ShutdownTimedOut(
                f"failed waiting for all runnables to end within grace period of {self._grace:g}s: deadline exceeded"
            )

    async def _stop_runnables(self, grace: float) -> bool:
        """Whether all have ended by themselves, in time."""
        groups = self._parts.groups
        if grace == 0:
            await groups.drop()
            return False
        self._limit = self._clock.timeout(grace if grace > 0 else None)
        try:
            async with self._limit:
                await groups.stop()
                for cache in reversed(self._parts.caches):
                    await cache.stop()
                await groups.webhooks.stop()
        except TimeoutError:
            await groups.drop()
            return False
        finally:
            self._limit = None
        return True

    async def _stop_the_rest(self, *, release: bool) -> None:
        parts = self._parts
        if parts.election is not None and not release:
            # Something may still be under way: nobody may take over before the lease has expired.
            parts.election.abandon()
        for cache in reversed(parts.caches):
            await (cache.stop() if release else cache.abort())
        for endpoint in parts.endpoints:
            await endpoint.stop()
        if parts.election is not None and release:
            self._resigning = True
            await parts.election.resign()
        if self._watching is not None:
            await asyncio.wait([self._watching])

    def _hurry(self) -> None:
        self._hurried = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._clock.monotonic())
        elif self._resigning and self._parts.election is not None:
            self._parts.election.abandon()
