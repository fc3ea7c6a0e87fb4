"""Run: one world from its start to its last settled state.

Users perform the scenario, step by step; after each step the world has to settle in the state of the reference run.
Faults happen at the points that the plan names. The run records what happens; oracles judge the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.client.client import Client
from ostinato.client.views import Unstructured
from ostinato.server.core import Server
from ostinato.server.faults import Operation, Proceed
from ostinato.server.flow.control import FlowSettings
from ostinato.server.request import Answer
from ostinato.server.store.records import Write
from ostinato.testing.explore.operators import Process
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Counter, Point, PointKind, Visit
from ostinato.testing.explore.world.collector import collect, has_garbage
from ostinato.testing.explore.world.disk import Disk, DiskIndex, Place
from ostinato.testing.explore.world.external import External
from ostinato.testing.explore.world.image import KnownKinds
from ostinato.testing.explore.world.leadership import Leadership
from ostinato.testing.explore.world.objects import KnownObjects, Metadata
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.record import COLLECTOR, FAULT, USER, Entry, Record
from ostinato.testing.explore.world.replica import LEASE, Replica
from ostinato.testing.explore.world.settings import Reference, Subject
from ostinato.testing.explore.world.settling import NotSettled, Settling
from ostinato.testing.explore.world.users import UserTransport
from ostinato.testing.explore.world.webhooks import WebhookCalls
from ostinato.testing.snapshot import NAMESPACE
from ostinato.world import Simulation, World
from ostinato.world.simulated.errors import BackgroundError

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LATER: Final = timedelta(seconds=17)
_QUIET_COLLECTIONS: Final = ("events", "leases.coordination.k8s.io")
_COLLECTION_DELAY: Final = 1.0  # virtual seconds until garbage is collected
_ELECTED: Final = 25.0  # seconds until another replica leads; a lease lasts 15
_MOMENT: Final = 0.01  # seconds in which a request is answered
_NEWER: Final = 1000  # resourceVersions by which a restored store is ahead


class Run:
    """
    - `abandons`: its tasks are left as they are at the end, as when the process is about to end. Defaults to False.
    """

    abandons = False

    def __init__(
        self, subject: Subject, plan: Plan, catalogue: Callable[[Fault], FaultKind], reference: Reference | None
    ) -> None:
        self.subject = subject
        self.plan = plan
        self.record = Record()
        self.world = self._make_world()
        self.clock = self.world.clock
        self._zero = self.clock.monotonic()
        self.objects = KnownObjects(subject.image.kinds, subject.image.uids)
        self.calls = WebhookCalls(self)
        self.disk = Disk(subject.image.version, subject.image.objects, self._written)
        self.server = self._new_server(self.disk)
        self.client = self._client()
        self.fakes = {name: make() for name, make in subject.externals.items()}
        self.leadership = Leadership(self)
        self.kinds = [catalogue(fault) for fault in plan.faults]
        self.problems: list[Problem] = []
        self.pending = 0  # faults that have not ended: processes to restart, pauses, lags
        self.step = 0  # the scenario's steps that were performed
        self.performing = 0  # those of them that have not ended
        self._performed = 0.0  # when the last one ended
        self.lags: dict[str, asyncio.Event] = {}  # by kind: events are held until it is set
        self.expired: set[str] = set()  # kinds whose next watch cannot be resumed
        self.reads_stale = False  # the next read at any version is answered by a server that is behind
        self.activity = 0  # grows with each change
        self.writing = 0  # writes of the operator under way
        self.is_restored = False  # the store, and the world has not settled since
        self.requests = 0  # of the operator, and
        self.writes = 0  # the writes among them
        self.made: set[str] = set()  # objects that the operator has created
        self.gone: dict[str, None] = {}  # objects of the image that were deleted
        self._faults: dict[Point, list[FaultKind]] = {}
        for kind in self.kinds:
            self._faults.setdefault(kind.fault.at, []).append(kind)
        self._deleting: dict[str, Callable[[], object]] = {}  # by uid: called when its deletion begins
        self._dealt: list[Fault] = []
        self._visits: list[Visit] = []
        self._counter = Counter()
        self._replicas: list[Replica] = []
        self._started: dict[str, int] = {}  # by process: how many were started
        self._tasks: set[asyncio.Task[None]] = set()
        self._collecting = False
        self._servers_behind: list[Server] = []
        self._ended = False  # what happens now is no part of the world
        self._settling = Settling(self, reference)

    # The run

    def run(self) -> Outcome:
        outcome = Outcome(self.plan, self.record)
        try:
            self._execute(outcome)
        except NotSettled:
            pass
        except BackgroundError as error:  # those before the end are known; a killed process cleans nothing up
            if not self._ended:
                self._unhandled(error)
        except Exception as error:  # noqa: BLE001 - such as a livelock
            self._unhandled(error)
        outcome.visits, outcome.dealt, outcome.steps = self._visits, self._dealt, self._settling.states
        outcome.externals, outcome.problems = self._settling.externals, self.problems
        outcome.trespasses = self.leadership.trespasses
        outcome.signature = self.record.signature()
        return outcome

    def _make_world(self) -> World:
        return Simulation(self.plan.seed, interleave=self.plan.interleaved, keep=0, start=START)

    def _execute(self, outcome: Outcome) -> None:
        assert isinstance(self.world, Simulation)
        try:
            self.world.run(self._main(outcome), wind_down=not self.abandons)
        finally:
            if self.abandons:
                self.world.abandon()
            if not outcome.trace:
                outcome.trace, outcome.duration = self.world.trace.digest(), self.world.trace.count

    def _make_replica(self, name: str, process: Process) -> Replica:
        assert isinstance(self.world, Simulation)
        lease = f"{LEASE}-{process.name}" if self.elects and process.elects else ""
        return Replica(self, name, process, self.world.machine(name), lease)

    async def _main(self, outcome: Outcome) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self.server.start(bootstrapped=True)
            for process in self.subject.processes:
                self.start_replica(process)
                if self.elects and process.elects:
                    self.start_replica(process)
            await self.started()
            await self._settling.start()
            while self.step < len(self.subject.scenario):
                await self.perform()
                await self._settling.settle()
            await self._settling.quiet(outcome)
        finally:
            self._conclude(outcome)
            if not self.abandons:
                await self._end()

    def _conclude(self, outcome: Outcome) -> None:
        """Record what is known at the end, before anything is cleaned up."""
        self._ended = True
        for replica in self._replicas:
            if replica.error is not None and not self.leadership.explains(replica.error):
                text = f"{replica.name} ended: {type(replica.error).__name__}: {replica.error}"
                self.problems.append(Problem("errors", text))
        if isinstance(self.world, Simulation):
            for error in self.world.failures()[:1]:
                self._unhandled(error)
            outcome.trace, outcome.duration = self.world.trace.digest(), self.world.trace.count

    def _unhandled(self, error: Exception) -> None:
        """Record the error of a task that nothing awaits."""
        self.problems.append(Problem("errors", f"unhandled error: {type(error).__name__}: {error}"))

    async def _end(self) -> None:
        for replica in self._replicas:
            replica.kill()
        for task in self._tasks:
            task.cancel()
        for replica in self._replicas:
            await replica.ended()
        await self.client.close()
        for server in (self.server, *self._servers_behind):
            await server.close()

    async def started(self) -> None:
        """Wait until the first process has begun to work."""

    async def perform(self) -> None:
        """Perform the next step of the scenario, unless one that was to be early has been the last."""
        if self.step == len(self.subject.scenario):
            return
        step = self.subject.scenario[self.step]
        self.step += 1
        self.note(USER, "step", str(step))
        self.performing += 1
        try:
            await step.perform(self)
        finally:
            self.performing -= 1
            self._performed = self.now

    @property
    def performed(self) -> float:
        """When the last step of users ended; now, if one has not ended."""
        return self.now if self.performing else self._performed

    async def perform_early(self) -> None:
        """Perform the next step, if there is one, before the world has settled.

        A step that has to wait, as for the name of an object that is being deleted, goes on in the background.
        """
        if self._has_early_step:
            self.later(0.0, self.perform)
            await self.clock.sleep(_MOMENT)

    def soon(self) -> None:
        """Perform the next step in a moment."""
        if self._has_early_step:
            self.later(0.0, self.perform)

    @property
    def _has_early_step(self) -> bool:
        """Whether there is a next step that may be early.

        Not after a restore: finalizers are lost with their objects, so that nothing cleans up what is outside of the
        cluster if these are deleted before the operator has seen them again.
        """
        return self.step < len(self.subject.scenario) and not self.is_restored

    @property
    def elects(self) -> bool:
        """Whether two replicas elect a leader."""
        return any(kind.needs_election for kind in self.kinds)

    # Processes and servers

    def start_replica(self, process: Process) -> None:
        number = self._started[process.name] = self._started.get(process.name, 0) + 1
        name = f"{process.name}-{number}"
        replica = self._make_replica(name, process)
        self._replicas.append(replica)
        self.note(name, "start", "process starts")
        externals = {name: External(self, name, fake) for name, fake in self.fakes.items()}
        replica.start(externals)

    def crash(self, replica: Replica) -> None:
        """Kill a process; another takes its place after a moment."""
        if replica.dead:
            return
        self.note(replica.name, "end", "process is killed")
        replica.crash()
        self.later(self.subject.timing.restart, partial(self.start_replica, replica.process))
        if replica.lease:  # nothing has settled before another leads, and has reconciled everything once
            self.later(_ELECTED, self.active)

    def living(self) -> list[Replica]:
        return [each for each in self._replicas if not each.dead]

    async def replace_server(self, disk: Disk) -> None:
        """Stop the server and start another from a disk; all connections break."""
        await self.server.close()  # first: nothing may be written to a disk that another server has read
        self.disk = disk
        server = self._new_server(disk)
        await server.start(bootstrapped=True)
        self.server = server

    async def restore(self) -> None:
        """Restore the store to its state before the last step, and let users repeat it."""
        past = self.disk.at(self._settling.version_before(self.step))
        disk = Disk(self.disk.version + _NEWER, past.objects, self._written, past.recent)
        self.objects = KnownObjects(self.subject.image.kinds, self.subject.image.uids)
        for (collection, key), (version, data) in disk.recent.items():
            self.objects.written(Write(collection, key, version, data))
        await self.replace_server(disk)
        self.step -= 1
        self.is_restored = True
        await self.perform()

    async def server_behind(self) -> Server:
        """Return a server that has not seen the writes since the last step."""
        server = self._new_server(self.disk.at(self._settling.version_before(self.step)))
        await server.start(bootstrapped=True)
        self._servers_behind.append(server)
        return server

    # Faults

    def arrive(self, kind: PointKind, text: str) -> Point:
        """Register that a point is reached."""
        point = self._counter.next(kind, self.stable_text(text))
        self._visits.append(Visit(point, self.now, self._state()))
        return point

    def _state(self) -> int:
        outside = self._settling.external_state() if self.fakes else ""
        return hash((self.step, self.objects.state, outside))

    def due(self, point: Point) -> list[FaultKind]:
        """Return the faults of a point, which are dealt now."""
        found = self._faults.get(point, [])
        self._dealt += [kind.fault for kind in found]
        for kind in found:
            if not kind.late:
                self.show(kind)
        return found

    def show(self, kind: FaultKind) -> None:
        """Record that a fault happens."""
        self.note(FAULT, "fault", str(kind.fault))

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something in `seconds`; the world has not settled before."""
        self.pending += 1

        async def wait() -> None:
            try:
                await self.clock.sleep(seconds)
                self.active()
                result = action()
                if isinstance(result, Awaitable):
                    await result
            finally:
                self.pending -= 1

        self.background(wait())

    def when_deleting(self, uid: str, action: Callable[[], object]) -> None:
        """Do something when the deletion of an object begins."""
        self._deleting[uid] = action

    def background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; also called by plain functions of the operator, in whose threads no loop is running."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def lagging(self, operation: Operation) -> None:
        """Wait while events of this kind are held back."""
        while (released := self.lags.get(operation.kind)) is not None:
            await released.wait()

    async def renewing(self, replica: Replica, proceed: Proceed) -> Answer:
        await replica.gate()
        return await proceed()

    # The record

    @property
    def now(self) -> float:
        """Seconds since the start of the world."""
        return self.clock.monotonic() - self._zero

    def note(self, actor: str, action: str, what: str, outcome: str = "", reconcile: str = "") -> None:
        text = self.stable_text(what)
        self.record.add(Entry(self.now, actor, action, text, outcome, reconcile, self.disk.version))

    def requested(self, replica: Replica, operation: Operation, status: int, reconcile: str) -> None:
        """Record an answered request of the operator."""
        self.requests += 1
        self.note(replica.name, "request", str(operation), str(status), reconcile)
        if not operation.is_write:
            return
        self.writes += 1
        self.leadership.wrote(replica, operation, status)
        if operation.subresource or self._is_free(operation.kind):
            return
        text = self.stable_text(f"{operation.kind} {operation.key}")
        if operation.verb == "delete" and status < 300:
            self.record.deletes[text] = self.record.deletes.get(text, 0) + 1
        elif status == 201 and not self.objects.is_garbage((operation.kind, operation.key)):
            self.made.add(f"{operation.kind} {operation.key}")
            self.record.creates[text] = self.record.creates.get(text, 0) + 1

    def _is_free(self, collection: str) -> bool:
        """Whether objects of a kind are not compared, nor how often they are made."""
        kind = self.subject.image.kinds.get(collection)
        return kind is not None and self.subject.freedom.has(kind.kind)

    def collected(self, place: Place, metadata: Metadata) -> None:
        self.note(COLLECTOR, "request", f"delete {place[0]} {metadata.namespace}/{metadata.name}", "200")

    def object_to(self, problem: Problem) -> None:
        """Record what is wrong, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def active(self) -> None:
        """Register a change other than a write."""
        self.activity += 1

    def stable_text(self, text: str) -> str:
        if not self.objects.has_generated_names:
            return text
        head, space, key = text.rpartition(" ")
        return f"{head}{space}{self.objects.stable(key)}"

    def _written(self, write: Write) -> None:
        if write.collection == "leases.coordination.k8s.io":
            self.leadership.written(write)
        if write.collection in _QUIET_COLLECTIONS:
            return
        self.activity += 1
        if write.data is None:
            text = self.stable_text(f"{write.collection} {write.key}")
            self.record.removals[text] = self.record.removals.get(text, 0) + 1
        metadata = self.objects.written(write)
        if metadata is None and (write.collection, write.key) in self.subject.image.objects:
            self.gone[f"{write.collection} {write.key}"] = None
        if metadata is not None and metadata.deletion_timestamp and metadata.uid in self._deleting:
            self._deleting.pop(metadata.uid)()
        self._settling.written()
        if not self._collecting and self.subject.collects:
            self._collecting = True
            self.clock.timer(_COLLECTION_DELAY, self._collect)

    def _collect(self) -> None:
        self._collecting = False
        if not self._ended and has_garbage(self.objects):
            self.background(collect(self))

    # What steps and faults use

    def view(self, gvk: GroupVersionKind) -> Unstructured:
        return Unstructured(gvk, self.subject.image.infos.get(gvk))

    def children(self, namespace: str, name: str) -> list[tuple[GroupVersionKind, str, str]]:
        return self.objects.children(namespace, name)

    def _new_server(self, disk: Disk) -> Server:
        index = DiskIndex(disk, self.world.clock, self.subject.image.entries)
        server = Server(self.world, index, flow=FlowSettings(enabled=False), applies=self.subject.image.applies)
        if isinstance(self.world, Simulation):
            server.webhooks.override = self.calls.post
        return server

    def _client(self) -> Client:
        scheme = KnownKinds(self.subject.image.infos)
        transport = UserTransport(lambda: self.server, self.calls, self.world.clock)
        return Client(transport, world=self.world, scheme=scheme, namespace=NAMESPACE, field_manager="kubectl")


class LaterRun(Run):
    """A run that begins some seconds later: fields that depend on the time differ."""

    def _make_world(self) -> World:
        return Simulation(self.plan.seed, interleave=self.plan.interleaved, keep=0, start=START + _LATER)
