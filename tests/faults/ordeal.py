"""An ordeal for operators, in virtual time: two replicas behind networks that lose, delay and cut, a leader that
reaches all but its lease, a server that starts anew, now and then from a copy of an earlier state, and people
who create, change, delete and create anew, always the same few names.

When the faults have stopped, all must soon be as it is wanted, and stay so. Nothing may be written by two replicas at
once; and nothing that went wrong on the way may be told with a traceback.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from ostinato.api.errors import AlreadyExists, APIError, Conflict, NotFound
from ostinato.api.markers import ListMap
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.owners import controller_of, set_controller_reference
from ostinato.api.struct import Struct
from ostinato.cache.own_writes.expectations import StaleCache
from ostinato.cache.store.indexes import OWNER
from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, Deadline, Request, TransportError, Unreachable
from ostinato.controllers import BlockingContext, Context, Result, WatchKind, controller
from ostinato.controllers import Request as Key
from ostinato.crd import crd_of
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import LeaderElection, LeadershipLost, Manager, Purpose, ShutdownTimedOut
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Write
from ostinato.world import Rng, Simulation, World

NAMES = 6
CLEANUP = "ordeal.dev/cleanup"
_ENDS = LeadershipLost | ShutdownTimedOut  # of a replica, that the faults explain
SETTLED_WITHIN = 240.0  # seconds: a lease that expires, a watch that falls silent, a write that a restored server lost
TOLD_WITHIN = (
    150.0  # seconds in which a bookmark tells that the server went back: a silent watch is opened again before
)
MUCH = 250  # versions that are not written again in that time, by renewals of the lease for example
LONGEST_DELAY = 2.0  # seconds of a request: less than the gap that the times of an election leave


class RackSpec(Struct):
    size: int = 0
    text: str = ""


class RackStatus(Struct):
    copies: int = 0
    text: str = ""
    observed_generation: int | None = None
    conditions: Annotated[list[Condition], ListMap("type")] = []


class Rack(CustomResource, group="ordeal.dev", version="v1"):
    """Has ConfigMaps of certain names, and one that is outside, for its finalizer to remove."""

    spec: RackSpec = msgspec.field(default_factory=RackSpec)
    status: RackStatus | None = None


class Pool(CustomResource, group="ordeal.dev", version="v1"):
    """Has as many ConfigMaps as all Racks of its namespace together say, of any names."""

    spec: RackSpec = msgspec.field(default_factory=RackSpec)
    status: RackStatus | None = None


def outside(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=f"outside-{name}", namespace="default"))


@controller(Rack, owns=[ConfigMap], max_concurrent=3)
async def racks(rack: Rack, ctx: Context) -> Result:
    name = rack.metadata.name
    async with ctx.finalizer(rack, CLEANUP) as deleting:
        if deleting:
            await ctx.client.delete(outside(name), missing_ok=True)
            await ctx.status(conditions=[Condition(type="Ready", status="False", reason="Going")])
            return Result()
        await ctx.apply(outside(name))
        wanted = [
            ConfigMap(metadata=ObjectMeta(name=f"{name}-{number}"), data={"text": rack.spec.text})
            for number in range(rack.spec.size)
        ]
        made = await ctx.apply_set(wanted, owner=rack)
        ready = Condition(type="Ready", status="True", reason="Made", message=rack.spec.text)
        await ctx.status(copies=len(made), text=rack.spec.text, conditions=[ready])
    return Result(requeue_after=5) if rack.spec.size == 1 else Result()


def pool_of(rack: Rack) -> Key:
    return Key(rack.metadata.namespace, "pool")


@controller(Pool, owns=[ConfigMap], watches=[WatchKind(Rack, map_to=pool_of)])
def pools(pool: Pool, ctx: BlockingContext) -> None:
    found = ctx.client.list(Rack, namespace=pool.metadata.namespace)
    wanted = sum(rack.spec.size for rack in found if not rack.metadata.deletion_timestamp)
    have = list(ctx.client.list(ConfigMap, index=(OWNER, pool.metadata.uid)))
    for _ in range(wanted - len(have)):
        made = ConfigMap(metadata=ObjectMeta(generate_name="pool-", namespace=pool.metadata.namespace))
        set_controller_reference(pool, made)
        ctx.client.create(made)
    for extra in have[wanted:]:
        ctx.client.delete(extra, missing_ok=True)
    ctx.status(copies=wanted)


class Disk(MemoryLog):
    """A log that a server can start from, or from a copy of it."""

    def __init__(self, version: int = 0, objects: Mapping[tuple[str, str], tuple[int, bytes]] = {}) -> None:
        self.version = version
        self._objects = dict(objects)

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self.version, iter([(*place, *state) for place, state in self._objects.items()])

    async def append(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self.version = write.version
            self._objects.pop((write.collection, write.key), None)
            if write.data is not None:
                self._objects[write.collection, write.key] = (write.version, write.data)

    def copy(self) -> Disk:
        return Disk(self.version, self._objects)


class Way:
    """To the server that there is now."""

    host = "server"

    def __init__(self, ordeal: Ordeal, deadline: Deadline | None = None) -> None:
        self._ordeal = ordeal
        self._deadline = deadline
        self._inner: tuple[Server, InProcessTransport] | None = None

    async def request(self, request: Request) -> Any:
        server = self._ordeal.server
        if self._inner is None or self._inner[0] is not server:
            self._inner = (server, InProcessTransport(server, deadline=self._deadline))
        return await self._inner[1].request(request)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner[1].close()


class Network(Way):
    """What lies between one replica and the server. Faults have the probability of the ordeal's `trouble`."""

    def __init__(self, ordeal: Ordeal, who: str, deadline: Deadline | None, *, contends: bool) -> None:
        super().__init__(ordeal, deadline)
        self._who = who if deadline is not None else ""
        self._contends = contends
        self._replica = who
        self._rng = ordeal.rng.fork(f"network of {who} {ordeal.numbers()}")
        self._clock = ordeal.simulation.clock

    async def request(self, request: Request) -> Any:
        if self._happens() or (self._contends and self._ordeal.cannot_renew == self._replica):
            raise Unreachable("refused")
        if self._happens() and not request.stream:
            await self._clock.sleep(self._rng.uniform(0.0, LONGEST_DELAY))
        if self._who and request.method != "GET":
            self._ordeal.wrote(self._who)
        answer = await super().request(request)
        if request.stream:
            return _Cut(answer, self)
        if self._happens():
            raise ConnectionLost("the answer was lost")
        if self._happens():
            await self._clock.sleep(self._rng.uniform(0.0, 1.0))
        return answer

    def _happens(self) -> bool:
        return self._rng.random() < self._ordeal.trouble

    async def through(self) -> None:
        """A piece of a stream comes through, late or not at all."""
        if self._happens():
            raise ConnectionLost("the watch was cut")
        if self._happens():
            await self._clock.sleep(self._rng.uniform(0.0, 3.0))


class _Cut:
    """A stream that does not come through as it should."""

    def __init__(self, inner: Any, network: Network) -> None:
        self._inner = inner
        self._network = network

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await self._network.through()
            yield chunk


class Ordeal:
    def __init__(self, seed: int, *, seconds: float = 60.0, trouble: float = 0.08) -> None:
        self.simulation = Simulation(seed, interleave=True)
        self.rng: Rng = self.simulation.rng.fork("ordeal")
        self.trouble = 0.0
        self.cannot_renew = ""  # the replica whose way to its lease is cut, while all others of its ways are open
        self._trouble = trouble
        self._seconds = seconds
        self._number = 0
        self._restored = False
        self._living: dict[str, asyncio.Task[None]] = {}
        self.log: list[tuple[float, str]] = []  # of the leaders' writes: when, and whose
        self.unexpected: list[str] = []  # errors with which replicas ended
        self.settled_after = 0.0

    def run(self) -> Ordeal:
        self.simulation.run(self._main())
        return self

    def numbers(self) -> int:
        self._number += 1
        return self._number

    def wrote(self, who: str) -> None:
        self.log.append((self.simulation.clock.monotonic(), who))

    def overlaps(self) -> list[str]:
        """Replicas that wrote while another had not done with it."""
        spans: dict[str, list[float]] = {}
        for at, who in self.log:
            spans.setdefault(who, []).append(at)
        ordered = sorted((times[0], times[-1], who) for who, times in spans.items())
        return [
            f"{other} wrote at {begin:.2f}, {who} until {end:.2f}"
            for (_, end, who), (begin, _, other) in itertools.pairwise(ordered)
            if begin <= end
        ]

    async def _main(self) -> None:
        clock = self.simulation.clock
        self._disk = Disk()
        self.server = Server(self.simulation, self._disk)
        await self.server.start()
        self.people = Client(Way(self), world=self.simulation, namespace="default")
        for kind in (Rack, Pool):
            await self.people.create(crd_of(kind))
        await clock.sleep(1)
        await self.people.create(Pool(metadata=ObjectMeta(name="pool")))
        background = [asyncio.create_task(self._collect_garbage())]
        background += [asyncio.create_task(self._replicas(number)) for number in range(2)]
        await clock.sleep(20)
        self.trouble = self._trouble
        copy = self._disk.copy()
        until = clock.monotonic() + self._seconds
        while clock.monotonic() < until:
            await clock.sleep(self.rng.uniform(0.0, 0.6))
            await self._act()
            if self.rng.random() < 0.02:
                self._end_one()
            if self.rng.random() < 0.02 and self.cannot_renew not in self._living:
                self.cannot_renew = self.log[-1][1] if self.log else ""  # who leads
            if self.rng.random() < 0.02:
                await self._start_anew(self._disk)
            elif self.rng.random() < 0.02 and self._disk.version > copy.version + MUCH:
                await self._start_anew(copy.copy())
                self._restored = True
                await clock.sleep(TOLD_WITHIN)
        self.trouble, self.cannot_renew = 0.0, ""
        began = clock.monotonic()
        while (wrong := await self._wrong()) and clock.monotonic() < began + SETTLED_WITHIN:
            await clock.sleep(1)
        self.settled_after = clock.monotonic() - began
        assert not wrong, wrong
        await clock.sleep(30)
        wrong = await self._wrong()
        assert not wrong, f"it did not stay so: {wrong}"
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        await self.server.close()

    async def _start_anew(self, disk: Disk) -> None:
        """Another server, from what the last one has written, or from an earlier state of that."""
        before, self._disk = self.server, disk
        self.server = Server(self.simulation, disk)
        await self.server.start()
        await before.close()

    # The operator

    async def _replicas(self, place: int) -> None:
        """A replica, and another whenever it ends: as a Deployment would."""
        while True:
            who = f"replica-{place}-{self.numbers()}"
            serving = self._living[who] = asyncio.create_task(self._manager(who).serve())
            try:
                await asyncio.wait([serving])
            except asyncio.CancelledError:
                serving.cancel()
                await asyncio.wait([serving])
                raise
            del self._living[who]
            error = None if serving.cancelled() else serving.exception()
            if not isinstance(error, _ENDS | None):
                self.unexpected.append(repr(error))
            await self.simulation.clock.sleep(self.rng.uniform(0.0, 3.0))

    def _manager(self, who: str) -> Manager:
        world: World = self.simulation.machine(who)

        def connect(purpose: Purpose) -> Any:
            return Network(self, who, purpose.deadline, contends=purpose.name == "leader-election")

        election = LeaderElection(name="ordeal", namespace="default", identity=who, own_thread=False)
        manager = Manager(connect=connect, world=world, leader_election=election, graceful_shutdown=5)
        return manager.add(racks, pools)

    def _end_one(self) -> None:
        if self._living:
            self.rng.choice(list(self._living.values())).cancel()

    # The people, and what cleans up behind them

    async def _act(self) -> None:
        name = f"r{self.rng.randrange(NAMES)}"
        spec = RackSpec(size=self.rng.randrange(4), text=f"text {self.numbers()}")
        what = self.rng.choice(["create", "create", "update", "update", "delete", "again", "spoil", "drop"])
        with suppress(NotFound, AlreadyExists, Conflict):
            if what == "create":
                await self.people.create(Rack(metadata=ObjectMeta(name=name), spec=spec))
            elif what == "update":
                rack = await self.people.get(Rack, name)
                rack.spec = spec
                await self.people.update(rack)
            elif what in ("delete", "again"):
                await self.people.delete(Rack, name)
                if what == "again":
                    await self.people.create(Rack(metadata=ObjectMeta(name=name), spec=spec))
            elif what == "spoil":
                child = await self.people.get(ConfigMap, f"{name}-0")
                child.data = {"text": "spoiled"}
                await self.people.update(child)
            else:
                await self.people.delete(ConfigMap, f"{name}-0")

    async def _collect_garbage(self) -> None:
        while True:
            await self.simulation.clock.sleep(1.5)
            with suppress(APIError, ConnectionLost):
                await self._delete_orphans()

    async def _delete_orphans(self) -> None:
        alive = {each.metadata.uid for kind in (Rack, Pool) for each in await self.people.list(kind)}
        for child in await self.people.list(ConfigMap, namespace="default"):
            owner = controller_of(child)
            if owner is not None and owner.uid not in alive:
                await self.people.delete(child, missing_ok=True)

    # What is to be the case

    async def _wrong(self) -> list[str]:
        maps = list(await self.people.list(ConfigMap, namespace="default"))
        found = list(await self.people.list(Rack))
        wrong: list[str] = []
        if not self._restored:  # what was made for an object that never was is nobody's
            kept = {f"outside-{rack.metadata.name}" for rack in found}
            names = (each.metadata.name for each in maps)
            wrong += [name for name in names if name.startswith("outside-") and name not in kept]
        owned: dict[str, dict[str, str]] = {}
        for each in maps:
            owner = controller_of(each)
            if owner is not None:
                owned.setdefault(owner.uid, {})[each.metadata.name] = each.data.get("text", "")
        for rack in found:
            name, spec, status = rack.metadata.name, rack.spec, rack.status or RackStatus()
            children = owned.pop(rack.metadata.uid, {})
            ready = status.conditions[0] if status.conditions else Condition(type="", status="", reason="")
            said = (status.copies, status.text, status.observed_generation, ready.status, ready.observed_generation)
            generation = rack.metadata.generation
            if rack.metadata.deletion_timestamp:
                wrong.append(f"{name} is being deleted")
            elif children != {f"{name}-{number}": spec.text for number in range(spec.size)}:
                wrong.append(f"{name} has {children}, and wants {spec}")
            elif said != (spec.size, spec.text, generation, "True", generation):
                wrong.append(f"{name} says {said}, and wants {spec}, generation {generation}")
            elif rack.metadata.finalizers != [CLEANUP] or f"outside-{name}" not in {m.metadata.name for m in maps}:
                wrong.append(f"{name} has nothing outside")
        pool = await self.people.get(Pool, "pool")
        total = sum(rack.spec.size for rack in found)
        if len(owned.pop(pool.metadata.uid, {})) != total or pool.status is None or pool.status.copies != total:
            wrong.append(f"the pool says {pool.status}, and wants {total}")
        return wrong + [f"{uid} is gone, and has {children}" for uid, children in owned.items()]


class Tracebacks(logging.Handler):
    """Logged tracebacks of other errors than the injected faults and what follows from them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and not isinstance(record.exc_info[1], APIError | TransportError | StaleCache):
            self.found.append(record.getMessage())
