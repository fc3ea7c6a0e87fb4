"""Election: a candidate that runs where nothing can hold it up, and tells the event loop how it stands.

Renewal has a thread and an event loop of its own: a reconciler that blocks the main loop does not cost the lease. The
main loop hears of three things: a leader was seen, this process leads, this process leads no longer.

    election = Election(options, connect, world, fence, listener)
    election.start()                  # the listener is told when this process leads
    await election.ended()            # LeadershipLost when it does no longer
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
    """Who is told how an election goes. Called on the loop on which the election was started."""

    def leader_seen(self, identity: str, /) -> None: ...

    def elected(self, lease: Lease, /) -> None: ...


class Election:
    def __init__(
        self, options: LeaderElection, connect: Callable[[], Client], world: World, fence: Fence, listener: Listener
    ) -> None:
        """`connect` makes a client for the lease alone; it is called, and used, in the election's thread."""
        self.options = options
        self._connect = connect
        self._world = world
        self._fence = fence
        self._listener = listener
        self._elector: Elector | None = None
        self._thread: Thread[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None  # where the listener lives
        self._resigned = asyncio.Event()  # of the thread's loop
        self._leads = False

    @property
    def is_leader(self) -> bool:
        """Whether this process leads: it was elected, has not resigned and may write."""
        return self._leads and self._fence.is_open

    def start(self) -> None:
        """Stand for election."""
        self._home = asyncio.get_running_loop()
        thread = self._world.executor.thread if self.options.own_thread else LoopTask
        self._thread = thread(f"leader election {self.options.name}", self._campaign)

    async def ended(self) -> None:
        """Return when the candidate has left the election; `LeadershipLost` if it did not want to."""
        assert self._thread is not None, "an election is started before its end is awaited"
        await self._thread.join()

    async def resign(self) -> None:
        """Leave the election: give the lease back, if the options say so, or stop trying to get it."""
        self._leads = False
        thread = self._thread
        if thread is None:
            return
        if self._elector is not None and self._fence.is_open:
            with suppress(RuntimeError):  # it has ended
                thread.call_soon(self._resigned.set)
        else:
            thread.stop()
        with suppress(LeadershipLost):
            await thread.join()

    def abandon(self) -> None:
        """Leave the election at once. The lease is left to expire: work may still be under way."""
        self._leads = False
        self._fence.close()
        if self._thread is not None:
            self._thread.stop()

    def check(self, tolerance: float = 0.0) -> None:
        """For health: an error if renewals have failed for longer than the lease and `tolerance` seconds more."""
        if self._elector is not None:
            self._elector.check(tolerance)

    def families(self) -> Iterator[Family]:
        labels = {"name": self.options.name}
        yield gauge(MASTER_STATUS, "Whether this process leads: 1, or 0 if it stands by.", int(self.is_leader), labels)
        slow = 0 if self._elector is None else self._elector.slow_paths
        yield counter(SLOW_PATHS, "Renewals for which the lease had to be read again.", slow, labels)

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
            self._tell(self._listener.elected, lock.reference)
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
        if self._fence.was_left_open(within=self.options.lease_duration):
            _logger.info(
                "lease %s is left to expire: nobody knows yet what became of one of the last writes", elector.lock
            )
            return
        await elector.release()

    def _leader_seen(self, identity: str) -> None:
        self._tell(self._listener.leader_seen, identity)

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        assert self._home is not None
        with suppress(RuntimeError):  # the main loop is closed: nobody is left to be told
            self._home.call_soon_threadsafe(callback, *args)
