"""Election: runs the elector in a thread of its own, and reports to the main event loop.

The lease is renewed in a thread with an event loop of its own, so that a reconciler that blocks the main loop does not
lose the lease. The listener is called on the main loop.

    election = Election(options, connect, world, fence, listener)
    election.start()                  # the listener is called when this process leads
    await election.ended()            # raises LeadershipLost
    await election.resign()           # after the work has stopped
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from ostinato.client.client import Client
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.elector import Elector, LeadershipLost
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock
from ostinato.manager.election.settings import LeaderElection
from ostinato.metrics import Family, counter, gauge
from ostinato.world import Thread, World
from ostinato.world.loop_task import LoopTask

MASTER_STATUS: Final = "leader_election_master_status"
SLOW_PATHS: Final = "leader_election_slowpath_total"

_logger = logging.getLogger("ostinato.manager")


class Listener(Protocol):
    """Receives the progress of an election, on the loop that started it."""

    def leader_seen(self, identity: str, /) -> None: ...

    def elected(self, lease: Lease, /) -> None: ...


class Election:
    def __init__(
        self, options: LeaderElection, connect: Callable[[], Client], world: World, fence: Fence, listener: Listener
    ) -> None:
        """`connect`: creates a client for the lease; called and used in the election's thread."""
        self.options = options
        self._connect = connect
        self._world = world
        self._fence = fence
        self._listener = listener
        self._elector: Elector | None = None
        self._thread: Thread[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None  # of the listener
        self._resigned = asyncio.Event()  # of the thread's loop
        self._leads = False

    @property
    def is_leader(self) -> bool:
        """Whether this process leads: it has acquired the lease, has not resigned, and may write."""
        return self._leads and self._fence.is_open

    def start(self) -> None:
        """Start to acquire the lease."""
        self._home = asyncio.get_running_loop()
        thread = self._world.executor.thread if self.options.own_thread else LoopTask
        self._thread = thread(f"leader election {self.options.name}", self._campaign)

    async def ended(self) -> None:
        """Wait until the candidate has left the election. Raises `LeadershipLost` if it lost the lease."""
        assert self._thread is not None, "an election is started before its end is awaited"
        await self._thread.join()

    async def resign(self) -> None:
        """Leave the election: release the lease, if the options say so, or stop trying to acquire it."""
        self._leads = False
        thread = self._thread
        if thread is None:
            return
        if self._elector is not None and self._fence.is_open:
            with suppress(RuntimeError):  # the thread has ended
                thread.call_soon(self._resigned.set)
        else:
            thread.stop()
        with suppress(LeadershipLost):
            await thread.join()

    def abandon(self) -> None:
        """Leave the election immediately. The lease expires by itself: work may still be running."""
        self._leads = False
        self._fence.close()
        if self._thread is not None:
            self._thread.stop()

    def check(self, tolerance: float = 0.0) -> None:
        """Health check: raises if renewals have failed for longer than the lease plus `tolerance` seconds."""
        if self._elector is not None:
            self._elector.check(tolerance)

    def families(self) -> Iterator[Family]:
        labels = {"name": self.options.name}
        yield gauge(
            MASTER_STATUS,
            "Gauge of if the reporting system is the leader: 1 leader, 0 standby.",
            int(self.is_leader),
            labels,
        )
        slow = 0 if self._elector is None else self._elector.slow_paths
        yield counter(SLOW_PATHS, "Total number of slow path exercised in renewing leader leases.", slow, labels)

    # In the thread

    async def _campaign(self) -> None:
        options = self.options
        async with self._connect() as client:
            namespace = options.namespace or client.namespace
            lock = LeaseLock(client, namespace, options.name, labels=options.labels, timeout=options.request_timeout)
            elector = Elector(lock, options, self._fence, self._world, new_leader=self._leader_seen)
            self._elector = elector
            await elector.acquire()
            self._leads = True
            self._notify(self._listener.elected, lock.reference)
            try:
                await self._lead(elector)
            finally:
                self._fence.close()

    async def _lead(self, elector: Elector) -> None:
        renewing = asyncio.create_task(elector.renew())
        resigning = asyncio.create_task(self._resigned.wait())
        try:
            await asyncio.wait({renewing, resigning}, return_when=asyncio.FIRST_COMPLETED)
            if renewing.done():
                self._leads = False
                await renewing
        finally:
            resigning.cancel()
            renewing.cancel()
            await asyncio.wait({renewing, resigning})
            with suppress(asyncio.CancelledError, LeadershipLost):
                renewing.exception()
        if not self.options.release:
            return
        if self._fence.had_unconfirmed_write(within=self.options.lease_duration):
            _logger.info(
                "not releasing the lease, it expires: the result of a recent write is unknown lease=%s", elector.lock
            )
            return
        await elector.release()

    def _leader_seen(self, identity: str) -> None:
        self._notify(self._listener.leader_seen, identity)

    def _notify(self, callback: Callable[..., None], *args: object) -> None:
        assert self._home is not None
        with suppress(RuntimeError):  # the main loop is closed
            self._home.call_soon_threadsafe(callback, *args)
