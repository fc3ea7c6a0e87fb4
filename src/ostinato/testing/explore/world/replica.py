"""Replica: one process of the operator in a world. It can be killed at any moment, and paused.

A killed process sends nothing more: neither its running reconciles nor its cleanup reach the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ostinato.api.errors import APIError
from ostinato.cache.own_writes.expectations import StaleCache
from ostinato.client.transport.protocol import ConnectionLost, Request, Response, TransportError, WebSocket
from ostinato.controllers.runnable import Dependencies, Runnable, Span
from ostinato.manager.connecting import Purpose
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.manager import Manager
from ostinato.server.faults import FaultyServer
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.testing.explore.operators import Process
from ostinato.testing.explore.world.director import ReplicaDirector
from ostinato.testing.explore.world.record import Failure
from ostinato.testing.explore.world.webhooks import ServedWebhooks
from ostinato.webhook.webhooks import Webhooks
from ostinato.world import World
from ostinato.world.simulated.clock import SimulatedClock

if TYPE_CHECKING:
    from ostinato.testing.explore.world.run import Run

LEASE = "explored"
_GROUPS = ("system:masters",)
EXPECTED = (APIError, TransportError, StaleCache, TimeoutError, ConnectionError)  # errors that any request may raise

current: ContextVar[Replica | None] = ContextVar("ostinato.testing.replica", default=None)
"""The replica that is running; set in all of its tasks."""


class Replica:
    def __init__(self, run: Run, name: str, process: Process, world: World, lease: str = "") -> None:
        """`lease`: of its leader election. Defaults to none."""
        self.name = name
        self.process = process
        self.lease = lease
        self.dead = False
        self.unauthorized = False  # its certificate has expired
        self._run = run
        self._world = world
        self._resumed: asyncio.Event | None = None  # while it is paused
        self._task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None  # that ended it
        self._failing: set[str] = set()  # keys whose last reconcile failed

    def start(self, externals: Mapping[str, Any]) -> None:
        token = current.set(self)
        self._task = asyncio.get_running_loop().create_task(self._serve(externals), name=self.name)
        current.reset(token)

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def kill(self) -> None:
        self.dead = True
        if self._task is not None:
            self._task.cancel()

    def crash(self) -> None:
        """Kill it; its failures are forgotten with it: the next process reconciles what exists then."""
        self.kill()
        for key in self._failing:
            self._run.record.unresolved.pop(key, None)

    def pause(self) -> None:
        self._resumed = asyncio.Event()

    def renew_certificate(self) -> None:
        self.unauthorized = False

    def resume(self) -> None:
        if self._resumed is not None:
            self._resumed.set()
            self._resumed = None

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def gate(self) -> None:
        """Wait while the process is paused; raise if it is dead."""
        while self._resumed is not None:
            await self._resumed.wait()
        if self.dead:
            raise ConnectionLost("the process was killed")

    async def _serve(self, externals: Mapping[str, Any]) -> None:
        election = None
        if self.lease:
            election = LeaderElection(
                name=self.lease, namespace="default", identity=self.name, own_thread=False, trust_absence=True
            )
        manager = _Manager(self, self._world, election)
        self.process.add(manager, **externals)
        try:
            await manager.serve()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - judged by an oracle
            self.error = error

    # For its manager

    def in_world(self, runnable: Any) -> Any:  # Any: as for `Manager.add`
        """Return what takes the place of a runnable: webhooks have no sockets."""
        return ServedWebhooks(runnable, self, self._run.calls) if isinstance(runnable, Webhooks) else runnable

    def connect(self, purpose: Purpose) -> _Transport:
        stage = FaultyServer(lambda: self._run.server, ReplicaDirector(self._run, self, purpose.deadline))
        return _Transport(self, InProcessTransport(stage, user=(self.name, _GROUPS), deadline=purpose.deadline))

    def jump(self, seconds: float) -> None:
        """Set the wall clock of its machine."""
        clock = self._world.clock
        assert isinstance(clock, SimulatedClock)
        clock.jump(seconds)

    def wall(self) -> float:
        return self._world.clock.wall()

    def monotonic(self) -> float:
        return self._world.clock.monotonic()

    def reconciled(self, key: str, error: Exception | None) -> None:
        run = self._run
        if self.dead:
            return
        if error is None:
            self._failing.discard(key)
            run.record.unresolved.pop(key, None)
            run.note(self.name, "reconciled", key, "", key)
            return
        failure = Failure(run.now, key, f"{type(error).__name__}: {error}", _is_expected(error))
        self._failing.add(key)
        run.record.failures.append(failure)
        run.record.unresolved[key] = failure
        run.note(self.name, "failed", key, failure.error, key)


def _is_expected(error: BaseException | None) -> bool:
    """Whether an error is one that any request may raise, or was raised from one."""
    while error is not None and not isinstance(error, EXPECTED):
        error = error.__cause__
    return error is not None


class _Manager(Manager):
    def __init__(self, replica: Replica, world: World, election: LeaderElection | None) -> None:
        self._replica = replica
        super().__init__(
            connect=replica.connect,
            world=world,
            leader_election=election,
            graceful_shutdown=0.0,
            **replica.process.manager,
        )

    def add(self, *runnables: Any) -> Self:  # Any: see the method that it extends
        return super().add(*map(self._replica.in_world, runnables))

    def _dependencies(self, runnable: Runnable) -> Dependencies:
        found = super()._dependencies(runnable)
        return replace(found, span=self._observing(found.span))

    def _observing(self, inner: Span) -> Span:
        replica = self._replica

        @contextmanager
        def span(name: str, attributes: Mapping[str, str]) -> Iterator[object]:
            key = f"{attributes['controller']} {attributes['request']}"
            try:
                with inner(name, attributes) as made:
                    yield made
            except Exception as error:
                replica.reconciled(key, error)
                raise
            replica.reconciled(key, None)

        return span


class _Transport:
    """The network card of a replica: nothing passes while it is paused, nothing after its death."""

    def __init__(self, replica: Replica, inner: InProcessTransport) -> None:
        self.host = inner.host
        self._replica = replica
        self._inner = inner

    async def request(self, request: Request) -> Response:
        await self._replica.gate()
        return await self._inner.request(request)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        await self._replica.gate()
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()
