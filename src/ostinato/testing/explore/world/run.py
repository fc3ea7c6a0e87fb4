"""Run: one world from its start to its last settled state.

Users perform the scenario, step by step; after each step the world has to settle in the state of the reference run.
Faults happen at the points that the plan names. The run records what happens; oracles judge the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.client.client import Client
from ostinato.client.views import Unstructured
from ostinato.server.core import Server
from ostinato.server.faults import Operation, Proceed
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Answer
from ostinato.server.store.records import Write
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Counter, Point, PointKind, Visit
from ostinato.testing.explore.world.collector import collect
from ostinato.testing.explore.world.disk import Disk, Place
from ostinato.testing.explore.world.external import External, state_of_fake
from ostinato.testing.explore.world.leadership import Leadership
from ostinato.testing.explore.world.objects import KnownObjects, Metadata
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.record import COLLECTOR, FAULT, USER, Entry, Record
from ostinato.testing.explore.world.replica import Replica
from ostinato.testing.explore.world.settings import Reference, Subject
from ostinato.testing.explore.world.state import State, state_of
from ostinato.testing.explore.world.view import StateView
from ostinato.testing.snapshot import NAMESPACE
from ostinato.world import Simulation

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind

_QUIET_COLLECTIONS: Final = ("events", "leases.coordination.k8s.io")
_COLLECTION_DELAY: Final = 0.2  # virtual seconds until garbage is collected
_REFERENCE_CALM: Final = 12.0  # times as long as other runs


class NotSettled(Exception):  # noqa: N818
    """The state of the reference run was not reached; the problem is recorded."""


class Run:
    def __init__(
        self, subject: Subject, plan: Plan, catalogue: Callable[[Fault], FaultKind], reference: Reference | None
    ) -> None:
        self.subject = subject
        self.plan = plan
        self.record = Record()
        self.simulation = Simulation(plan.seed, interleave=plan.interleaved, keep=0)
        self.clock = self.simulation.clock
        self.objects = KnownObjects(subject.image.kinds, subject.image.objects)
        self.disk = Disk(subject.image.version, subject.image.objects, self._written)
        self.server = Server(self.simulation, self.disk)
        self.client = self._client()
        self.fakes = {name: make() for name, make in subject.externals.items()}
        self.leadership = Leadership(self)
        self.problems: list[Problem] = []
        self.pending = 0  # faults that have not ended: processes to restart, pauses, lags
        self.step = 0  # the scenario's steps that were performed
        self.lags: dict[str, asyncio.Event] = {}  # by kind: events are held until it is set
        self._reference = reference
        self._faults = {fault.at: [] for fault in plan.faults} if plan.faults else {}
        self._kinds: list[FaultKind] = []
        for fault in plan.faults:
            kind = catalogue(fault)
            self._kinds.append(kind)
            self._faults[fault.at].append((fault, kind))
        self._dealt: list[Fault] = []
        self._visits: list[Visit] = []
        self._counter = Counter()
        self._replicas: list[Replica] = []
        self._started = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._activity = 0  # grows with each change
        self._writing = 0  # writes of the operator under way
        self._requests = 0
        self._writes = 0  # of the operator
        self._states: list[State] = []
        self._external_states: list[str] = []
        self._collecting = False
        self._gone: dict[str, None] = {}  # objects of the image that were deleted
        self._view = StateView(self) if subject.always or subject.eventually else None

    # The run

    def run(self) -> Outcome:
        outcome = Outcome(self.plan, self.record)
        try:
            self.simulation.run(self._main(outcome))
        except NotSettled:
            pass
        except Exception as error:  # noqa: BLE001 - of a task that nothing awaits, or a livelock
            self.problems.append(Problem("errors", f"unhandled error: {type(error).__name__}: {error}"))
        outcome.visits, outcome.dealt, outcome.steps = self._visits, self._dealt, self._states
        outcome.externals, outcome.problems = self._external_states, self.problems
        outcome.trespasses = self.leadership.trespasses
        outcome.trace = self.simulation.trace.digest()
        return outcome

    async def _main(self, outcome: Outcome) -> None:
        try:
            await self.server.start(bootstrapped=True)
            self.start_replica()
            if self.elects:
                self.start_replica()
            await self._settle_start()
            while self.step < len(self.subject.scenario):
                await self.perform()
                await self._settle()
            await self._quiet(outcome)
        finally:
            for replica in self._replicas:
                replica.kill()
            for task in self._tasks:
                task.cancel()
            for replica in self._replicas:
                await replica.ended()
                if replica.error is not None and not self.leadership.explains(replica.error):
                    text = f"{replica.name} ended: {type(replica.error).__name__}: {replica.error}"
                    self.problems.append(Problem("errors", text))
            await self.client.close()
            await self.server.close()

    async def perform(self) -> None:
        """Perform the next step of the scenario."""
        step = self.subject.scenario[self.step]
        self.step += 1
        self.note(USER, "step", str(step))
        await step.perform(self)

    @property
    def elects(self) -> bool:
        """Whether two replicas elect a leader."""
        return any(kind.needs_election for kind in self._kinds)

    # Processes

    def start_replica(self) -> None:
        self._started += 1
        name = f"operator-{self._started}"
        replica = Replica(self, name, self.simulation.machine(name), elects=self.elects)
        self._replicas.append(replica)
        self.note(name, "start", "process starts")
        externals = {name: External(self, name, fake) for name, fake in self.fakes.items()}
        replica.start(self.subject.operator(**externals))

    def crash(self, replica: Replica) -> None:
        """Kill a process; another takes its place after a moment."""
        if replica.dead:
            return
        self.note(replica.name, "end", "process is killed")
        replica.kill()
        self.later(self.subject.timing.restart, self.start_replica)

    def living(self) -> list[Replica]:
        return [each for each in self._replicas if not each.dead]

    def replace_server(self, disk: Disk) -> None:
        """Start another server from a disk; connections to the one before it break."""
        before, self.disk = self.server, disk
        self.server = Server(self.simulation, disk)

        async def change() -> None:
            await self.server.start(bootstrapped=True)
            await before.close()

        self.background(change())

    # Faults

    def arrive(self, kind: PointKind, text: str) -> Point:
        """Register that a point is reached."""
        point = self._counter.next(kind, self._stable_text(text))
        self._visits.append(Visit(point, self.clock.monotonic(), self.disk.version))
        return point

    def due(self, point: Point) -> list[FaultKind]:
        """Return the faults of a point, which are dealt now."""
        found = self._faults.get(point, ())
        for fault, _ in found:
            self._dealt.append(fault)
            self.note(FAULT, "fault", str(fault))
        return [kind for _, kind in found]

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something in `seconds`; the world has not settled before."""
        self.pending += 1

        async def wait() -> None:
            await self.clock.sleep(seconds)
            self.pending -= 1
            self.active()
            result = action()
            if isinstance(result, Awaitable):
                await result

        self.background(wait())

    def background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
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
        return self.clock.monotonic()

    def note(self, actor: str, action: str, what: str, outcome: str = "", reconcile: str = "") -> None:
        self.record.add(
            Entry(self.clock.monotonic(), actor, action, self._stable_text(what), outcome, reconcile, self.disk.version)
        )

    def requested(self, replica: Replica, operation: Operation, status: int, reconcile: str) -> None:
        """Record an answered request of the operator."""
        self._requests += 1
        self.note(replica.name, "request", str(operation), str(status), reconcile)
        if not operation.is_write:
            return
        self._writes += 1
        self.leadership.wrote(replica, operation, status)
        if operation.subresource or status >= 300:
            return
        text = self._stable_text(f"{operation.kind} {operation.key}")
        if operation.verb == "delete":
            self.record.deletes[text] = self.record.deletes.get(text, 0) + 1

    def collected(self, place: Place, metadata: Metadata) -> None:
        self.note(COLLECTOR, "request", f"delete {place[0]} {metadata.namespace}/{metadata.name}", "200")

    def active(self) -> None:
        self._activity += 1

    def begin_write(self) -> None:
        self._writing += 1

    def end_write(self) -> None:
        self._writing -= 1

    def stable(self, key: str) -> str:
        return self.objects.stable(key)

    def _stable_text(self, text: str) -> str:
        head, space, key = text.rpartition(" ")
        return f"{head}{space}{self.objects.stable(key)}"

    def _written(self, write: Write) -> None:
        if write.collection == "leases.coordination.k8s.io":
            self.leadership.written(write)
        if write.collection in _QUIET_COLLECTIONS:
            return
        self._activity += 1
        metadata = self.objects.written(write)
        if metadata is None and (write.collection, write.key) in self.subject.image.objects:
            self._gone[f"{write.collection} {write.key}"] = None
        if write.replaces == 0 and metadata is not None:
            text = self._stable_text(f"{write.collection} {write.key}")
            self.record.creates[text] = self.record.creates.get(text, 0) + 1
        if self._view is not None:
            self._check_always()
        if not self._collecting:
            self._collecting = True
            self.background(self._collect())

    async def _collect(self) -> None:
        await self.clock.sleep(_COLLECTION_DELAY)
        self._collecting = False
        await collect(self)

    # What steps use

    def view(self, gvk: GroupVersionKind) -> Unstructured:
        return Unstructured(gvk, self.subject.image.infos.get(gvk))

    def children(self, namespace: str, name: str) -> list[tuple[GroupVersionKind, str, str]]:
        return self.objects.children(namespace, name)

    def _client(self) -> Client:
        return Client(_Current(self), world=self.simulation, namespace=NAMESPACE, field_manager="kubectl")

    # Settling

    async def _settle_start(self) -> None:
        await self._calm(self.now + self.subject.timing.within)

    async def _settle(self) -> None:
        """Wait until the state is that of the reference run after the same step."""
        index, timing = self.step - 1, self.subject.timing
        end = self.now + timing.within
        while True:
            calm = await self._calm(end)
            state, outside = self.state(), self._external_state()
            wrong = self._differences(index, state, outside)
            if not wrong and calm:
                break
            if self.now >= end:
                kind = "convergence" if calm else "quiet"
                text = "the state differs from that of the run without faults" if calm else "it does not come to rest"
                where = f"after step {index + 1} ({self.subject.scenario[index]})"
                self.problems.append(Problem(kind, f"{text}, {where}", tuple(wrong[:20])))
                raise NotSettled
            await self.clock.sleep(timing.calm)
        self._states.append(state)
        self._external_states.append(outside)
        self._check_eventually(index)
        point = self.arrive(PointKind.SETTLED, f"settled {self.step}")
        self.note(USER, "settled", f"settled after step {self.step}")
        for fault in self.due(point):
            await fault.settled(self)
        if self.pending or self._dealt and self._dealt[-1].at == point:
            await self._settle_again(index)

    async def _settle_again(self, index: int) -> None:
        """Settle after a fault at a settled point: the state has to be the same again."""
        self._states.pop()
        self._external_states.pop()
        self.step = max(self.step, index + 1)
        await self._settle()

    async def _calm(self, end: float) -> bool:
        """Wait until nothing was written for a while; False if that does not happen until `end`."""
        seconds = self.subject.timing.calm * (1.0 if self._reference is not None else _REFERENCE_CALM)
        while True:
            activity = self._activity
            await self.clock.sleep(seconds)
            if activity == self._activity and not self.pending and not self._writing:
                return True
            if self.now >= end:
                return False

    def _differences(self, index: int, state: State, outside: str) -> list[str]:
        if self._reference is None:
            return []
        expected = self._expected(self._reference.steps[index])
        wrong = state.differences(expected) if state.objects != expected.objects else []
        if outside != self._reference.externals[index]:
            wrong.append(f"external systems: {outside}, expected {self._reference.externals[index]}")
        return wrong

    def _expected(self, state: State) -> State:
        for kind in self._kinds:
            state = kind.expected(self, state)
        return state

    def state(self) -> State:
        image = self.subject.image
        return state_of(self.disk.objects, image.kinds, self.subject.freedom, since=image.version, gone=self._gone)

    def _external_state(self) -> str:
        return "; ".join(f"{name}: {state_of_fake(fake)}" for name, fake in self.fakes.items())

    async def _quiet(self, outcome: Outcome) -> None:
        """Count what the operator does although nothing is left to do."""
        if self._reference is None:  # everything is reconciled once more by a new process
            for replica in self.living():
                self.crash(replica)
            await self._calm(self.now + self.subject.timing.within)
        writes, requests = self._writes, self._requests
        await self.clock.sleep(self.subject.timing.quiet)
        outcome.quiet_writes, outcome.quiet_requests = self._writes - writes, self._requests - requests

    # Invariants

    def _check_always(self) -> None:
        for invariant in self.subject.always:
            if self._view is not None and not invariant(self._view):
                name = getattr(invariant, "__name__", repr(invariant))
                if not any(each.oracle == f"always {name}" for each in self.problems):
                    self.problems.append(Problem(f"always {name}", f"does not hold at t+{self.now:.3f} s"))

    def _check_eventually(self, index: int) -> None:
        for invariant in self.subject.eventually:
            if self._view is not None and not invariant(self._view):
                name = getattr(invariant, "__name__", repr(invariant))
                where = f"after step {index + 1} ({self.subject.scenario[index]})"
                self.problems.append(Problem(f"eventually {name}", f"does not hold {where}"))


class _Current:
    """A transport of users to the server that is running now."""

    host = "server"

    def __init__(self, run: Run) -> None:
        self._run = run
        self._inner: tuple[Server, InProcessTransport] | None = None

    async def request(self, request: Any) -> Any:
        server = self._run.server
        if self._inner is None or self._inner[0] is not server:
            self._inner = (server, InProcessTransport(server, user_agent="kubectl"))
        return await self._inner[1].request(request)

    async def websocket(self, request: Any, protocols: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner[1].close()
