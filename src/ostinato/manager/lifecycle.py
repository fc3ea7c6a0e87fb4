"""Lifecycle of a manager: start all groups in order, wait for a reason to stop, stop all groups in order.

A reason to stop is a request, the failure of a runnable, or the loss of leadership. It interrupts every wait, also that
for a cache that never syncs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from ostinato.cache.informers import Informers
from ostinato.manager.election.election import Election
from ostinato.manager.election.elector import LeadershipLost
from ostinato.manager.groups import Groups
from ostinato.manager.serving.endpoints import Served
from ostinato.manager.sharding.election import ShardElection
from ostinato.world import Clock, Timeout

_logger = logging.getLogger("ostinato.manager")


class ShutdownTimedOut(TimeoutError):  # noqa: N818
    """Runnables did not stop within the grace period and were cancelled."""


class Parts(NamedTuple):
    """The parts to start and stop."""

    endpoints: Sequence[Served]
    groups: Groups
    caches: list[Informers]  # may grow while the manager runs
    sync_timeout: float
    election: Election | None
    sharding: ShardElection | None = None


class Lifecycle:
    def __init__(self, parts: Parts, clock: Clock, graceful_shutdown: float, synced: asyncio.Event) -> None:
        """`synced`: set when all caches have synced."""
        self._parts = parts
        self._clock = clock
        self._grace = graceful_shutdown
        self._synced = synced
        self._reason = asyncio.Event()  # set on the first reason to stop
        self._failure: Exception | None = None  # the first
        self._limit: Timeout | None = None  # of the grace period, while runnables stop
        self._grace_ended = False  # the grace period is over
        self._lost = False  # leadership
        self._resigning = False
        self._watching: asyncio.Task[None] | None = None  # watches the election
        self._sharding: asyncio.Task[None] | None = None  # watches the sharding
        self._leading: asyncio.Task[None] | None = None  # starts the leader group
        self.is_stopping = False
        self.elected = asyncio.Event()

    async def live(self) -> None:
        """Start, wait for a reason to stop, stop, raise errors. A cancellation while it stops ends the grace period."""
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
                self._end_grace()
        errors = [each for each in (self._failure, stopping.exception()) if isinstance(each, Exception)]
        if len(errors) > 1:
            raise ExceptionGroup("the manager failed and exceeded the grace period", errors)
        if errors:
            raise errors[0]
        if cancelled:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """Request the stop. No effect if it has begun."""
        self._reason.set()

    def failed(self, name: str, error: Exception) -> None:
        """Record the failure of a runnable. The first one stops the manager, later ones are logged."""
        if self._failure is not None or self.is_stopping:
            trace = None if isinstance(error, LeadershipLost) else error
            _logger.error("runnable failed during shutdown runnable=%s error=%s", name, error, exc_info=trace)
            return
        _logger.error("runnable failed, stopping runnable=%s error=%s", name, error)
        error.add_note(f"in {name}, which ended the manager")
        self._failure = error
        self._reason.set()

    def lead(self) -> None:
        """Start the leader group: leadership is acquired."""
        if self.is_stopping:
            return
        self.elected.set()
        self._leading = asyncio.get_running_loop().create_task(self._parts.groups.leaders.start())

    # Starting

    async def _start(self) -> None:
        try:
            await self._start_in_order()
        except Exception as error:  # noqa: BLE001 - any error stops the manager
            self.failed("start", error)

    async def _start_in_order(self) -> None:
        parts, groups = self._parts, self._parts.groups
        for endpoint in parts.endpoints:
            await endpoint.start()
        await groups.webhooks.start()
        for cache in parts.caches:
            cache.start()
        for cache in parts.caches:
            await cache.synced(parts.sync_timeout)
        self._synced.set()
        await groups.others.start()
        await groups.warm_up.start()
        await groups.warm_up.wait()
        if parts.sharding is not None:
            parts.sharding.start()
            self._sharding = asyncio.get_running_loop().create_task(self._watch_sharding(parts.sharding))
        if parts.election is None:
            self.lead()
        else:
            parts.election.start()
            self._watching = asyncio.get_running_loop().create_task(self._watch(parts.election))

    async def _watch(self, election: Election) -> None:
        """Stop the manager when leadership is lost; during a shutdown, end the grace period."""
        try:
            await election.ended()
        except Exception as error:  # noqa: BLE001 - any error loses leadership
            self.failed("leader election", error)
            self._lost = True
            self._end_grace()

    async def _watch_sharding(self, sharding: ShardElection) -> None:
        """Stop the manager if sharding fails. The loss of a shard is no failure."""
        try:
            await sharding.ended()
        except Exception as error:  # noqa: BLE001 - without it no shard is renewed
            self.failed("sharding", error)

    # Stopping

    async def _stop(self, starting: asyncio.Task[None]) -> None:
        self.is_stopping = True
        in_time = False
        if self._parts.election is not None and not self.elected.is_set():
            self._parts.election.abandon()  # do not acquire leadership during the shutdown
        try:
            starting.cancel()
            await asyncio.wait([starting])
            in_time = await self._stop_runnables(0.0 if self._grace_ended else self._grace)
        finally:
            await self._stop_remaining(release=in_time)
        if not in_time and self._grace > 0 and not self._lost:
            raise ShutdownTimedOut(
                f"failed waiting for all runnables to end within grace period of {self._grace:g}s: deadline exceeded"
            )

    async def _stop_runnables(self, grace: float) -> bool:
        """Stop the runnables. Returns whether all ended within the grace period."""
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

    async def _stop_remaining(self, *, release: bool) -> None:
        parts = self._parts
        if parts.election is not None and not release:
            # Work may still be running: the lease must expire before another process leads.
            parts.election.abandon()
        if parts.sharding is not None and not release:
            parts.sharding.abandon()
        for cache in reversed(parts.caches):
            await (cache.stop() if release else cache.abort())
        for endpoint in parts.endpoints:
            await endpoint.stop()
        self._resigning = release
        if parts.sharding is not None and release:
            await parts.sharding.resign()
        if parts.election is not None and release:
            await parts.election.resign()
        for watching in (self._watching, self._sharding):
            if watching is not None:
                await asyncio.wait([watching])

    def _end_grace(self) -> None:
        self._grace_ended = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._clock.monotonic())
        elif self._resigning:
            for each in (self._parts.election, self._parts.sharding):
                if each is not None:
                    each.abandon()
