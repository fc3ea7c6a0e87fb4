"""Sharding: exclusive and even shares, hand-over and membership, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.stage.client import Stage as ClientStage
from tests.stage.server import on_a_server
from tests.stage.transport import RecordingTransport
from tests.unit.manager.sharding.replicas import Stage, unsettled

from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request
from ostinato.controllers import BlockingContext, Context, controller, daemon
from ostinato.crd.program import access_of_managers
from ostinato.crd.rbac import shard_access
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager, Purpose, Sharding
from ostinato.server.in_process.transport import InProcessTransport

NAMES = [f"object-{number}" for number in range(12)]


@pytest.mark.parametrize("seed", [4])
def test_no_object_is_written_by_two_replicas_at_once_whatever_happens(seed: int) -> None:
    """Replicas die, stop, lose the network and come back; Leases are deleted. `replicas` runs more seeds."""
    stage = Stage(seed).run(mishaps=40.0)
    assert stage.overlaps() == []
    assert unsettled(stage) == []


def staged(test: Callable[[Rigs], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return on_a_server(lambda world, server: test(Rigs(ClientStage(world, server))), test.__name__)


class Rigs:
    """Managers that share ConfigMaps; `ran` has the objects that each has reconciled, in order."""

    def __init__(self, stage: ClientStage) -> None:
        self.stage = stage
        self.clock = stage.clock
        self.ran: dict[str, list[str]] = {}
        self.serving: dict[str, asyncio.Task[None]] = {}
        self.cut_off: set[str] = set()  # replicas that cannot renew their own Lease

    def connect(self, name: str, purpose: Purpose) -> Any:
        def check(request: Request) -> None:
            if name in self.cut_off and "-member-" in request.path:
                raise ConnectionLost("cut off")

        transport = RecordingTransport(InProcessTransport(self.stage.server, deadline=purpose.deadline))
        transport.before = check
        return transport

    async def start(self, name: str, work: Any = None, **options: Any) -> Manager:
        async def reconcile(config: ConfigMap, ctx: Context) -> None:
            self.ran[name].append(config.metadata.name)
            if work is not None:
                await work(config, ctx)

        self.ran[name] = []
        settings = {"name": "work", "namespace": "default", "identity": name, "shards": 4, "trust_absence": True}
        manager = Manager(
            connect=lambda purpose: self.connect(name, purpose),
            world=self.stage.world,
            sharding=Sharding(**{**settings, **options}),
        )
        manager.add(controller(ConfigMap, name="work")(reconcile))
        self.serving[name] = asyncio.create_task(manager.serve())
        return manager

    async def objects(self) -> None:
        for name in NAMES:
            await self.stage.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))

    async def stop(self, name: str, manager: Manager) -> None:
        manager.stop()
        await self.serving[name]


@staged
async def test_a_single_replica_has_all_shards_and_releases_them(rigs: Rigs) -> None:
    await rigs.objects()
    manager = await rigs.start("a")
    await rigs.clock.sleep(10)
    assert sorted(rigs.ran["a"]) == sorted(NAMES)
    assert manager.shards == frozenset(range(4))
    assert 'ostinato_shards_held{name="work"} 4' in manager.metrics.text()
    await rigs.stop("a", manager)
    leases = {lease.metadata.name: lease.spec.holder_identity for lease in await rigs.stage.client.list(Lease)}
    assert leases == {f"work-{number}": "" for number in range(4)}, "released, and the member's is gone"


@staged
async def test_a_second_replica_takes_half_of_the_shards_and_gives_them_back(rigs: Rigs) -> None:
    await rigs.objects()
    first = await rigs.start("a")
    await rigs.clock.sleep(10)
    second = await rigs.start("b")
    await rigs.clock.sleep(15)
    assert (len(first.shards), len(second.shards)) == (2, 2)
    assert first.shards | second.shards == frozenset(range(4))
    options = Sharding(name="work", shards=4)
    theirs = [name for name in NAMES if options.shard_of(NamespacedName("default", name)) in second.shards]
    assert sorted(rigs.ran["b"]) == sorted(theirs), "each object of a gained shard is reconciled"
    rigs.ran["a"].clear()
    await rigs.stop("b", second)
    await rigs.clock.sleep(6)
    assert first.shards == frozenset(range(4)), "a graceful end does not wait for the leases to expire"
    assert sorted(rigs.ran["a"]) == sorted(theirs)
    await rigs.stop("a", first)


@staged
async def test_a_shard_is_handed_over_after_its_reconciles_have_finished(rigs: Rigs) -> None:
    await rigs.objects()
    going = asyncio.Event()

    async def slow(config: ConfigMap, ctx: Context) -> None:
        await going.wait()
        config.data = {"by": "a"}
        await ctx.client.update(config)

    first = await rigs.start("a", slow)
    await rigs.clock.sleep(10)
    (running,) = rigs.ran["a"]
    second = await rigs.start("b")
    await rigs.clock.sleep(60)
    options = Sharding(name="work", shards=4)
    shard = options.shard_of(NamespacedName("default", running))
    assert running not in rigs.ran["b"], "a runs it still, for longer than a lease lasts"
    going.set()
    await rigs.clock.sleep(10)
    assert (await rigs.stage.client.get(ConfigMap, running)).data == {"by": "a"}, "it may write until the hand-over"
    assert shard in first.shards | second.shards
    for name, manager in (("a", first), ("b", second)):
        await rigs.stop(name, manager)


@staged
async def test_replicas_with_another_number_of_shards_wait(rigs: Rigs) -> None:
    await rigs.objects()
    first = await rigs.start("a")
    await rigs.clock.sleep(10)
    second = await rigs.start("b", shards=3)
    await rigs.clock.sleep(60)
    assert (len(first.shards), len(second.shards)) == (4, 0)
    assert rigs.ran["b"] == []
    await rigs.stop("a", first)
    await rigs.clock.sleep(20)
    assert second.shards == frozenset(range(3))
    await rigs.stop("b", second)


@staged
async def test_a_replica_that_the_others_no_longer_count_gives_up_its_shards(rigs: Rigs) -> None:
    await rigs.objects()
    first = await rigs.start("a")
    await rigs.clock.sleep(10)
    assert len(first.shards) == 4
    rigs.cut_off.add("a")
    await rigs.clock.sleep(13)
    assert first.shards == frozenset(), "before others, with another number of shards perhaps, count it as dead"
    rigs.cut_off.clear()
    await rigs.clock.sleep(10)
    assert len(first.shards) == 4
    await rigs.stop("a", first)


@staged
async def test_writes_outside_of_reconciles_are_rejected(rigs: Rigs) -> None:
    manager = await rigs.start("a")
    await rigs.clock.sleep(5)
    client = manager._connections.sharded_client("")
    with pytest.raises(DeadlinePassed, match="not in a reconcile; write from a runnable with needs_leader"):
        await client.create(ConfigMap(metadata=ObjectMeta(name="x", namespace="default")))
    await rigs.stop("a", manager)


@staged
async def test_plain_functions_write_in_their_shard(rigs: Rigs) -> None:
    await rigs.objects()

    def write(config: ConfigMap, ctx: BlockingContext) -> None:
        ctx.client.patch(ConfigMap, config.metadata.name, MergePatch({"data": {"by": "a thread"}}))

    manager = Manager(
        connect=lambda purpose: rigs.connect("a", purpose),
        world=rigs.stage.world,
        sharding=Sharding(name="work", namespace="default", identity="a", trust_absence=True),
    )
    manager.add(controller(ConfigMap, name="work")(write))
    rigs.serving["a"] = asyncio.create_task(manager.serve())
    await rigs.clock.sleep(10)
    assert {each.data["by"] for each in await rigs.stage.client.list(ConfigMap)} == {"a thread"}
    await rigs.stop("a", manager)


@staged
async def test_daemons_move_with_their_shard(rigs: Rigs) -> None:
    await rigs.objects()
    alive: dict[str, set[str]] = {"a": set(), "b": set()}

    async def start(name: str) -> Manager:
        @daemon(ConfigMap, name="watch")
        async def watch(config: ConfigMap, ctx: Context) -> None:
            assert not any(config.metadata.name in each for each in alive.values()), "two at once"
            alive[name].add(config.metadata.name)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                alive[name].discard(config.metadata.name)

        manager = Manager(
            connect=lambda purpose: InProcessTransport(rigs.stage.server, deadline=purpose.deadline),
            world=rigs.stage.world,
            sharding=Sharding(name="work", namespace="default", identity=name, shards=4, trust_absence=True),
        )
        manager.add(watch)
        rigs.serving[name] = asyncio.create_task(manager.serve())
        await rigs.clock.sleep(15)
        return manager

    first = await start("a")
    assert sorted(alive["a"]) == sorted(NAMES)
    second = await start("b")
    assert alive["b"]
    assert sorted(alive["a"] | alive["b"]) == sorted(NAMES)
    await rigs.stop("b", second)
    await rigs.clock.sleep(6)
    assert sorted(alive["a"]) == sorted(NAMES)
    await rigs.stop("a", first)


def test_a_key_has_the_same_shard_in_every_process() -> None:
    options = Sharding(name="work", shards=16)
    keys = [NamespacedName("default", name) for name in NAMES]
    assert [options.shard_of(key) for key in keys][:4] == [10, 12, 6, 0]
    by_namespace = Sharding(name="work", by=lambda key: key.namespace)  # type: ignore[attr-defined]
    assert len({by_namespace.shard_of(key) for key in keys}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "Bad Name"}, "sharding 'Bad Name' is not a valid name"),
        ({"name": "a", "shards": 0}, "sharding a: shards must be between 1 and 256"),
        ({"name": "a", "lease_duration": 5}, "lease_duration must be greater than renew_deadline"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sharding(**options)


def test_roles_allow_the_leases() -> None:
    manager = Manager(sharding="work")
    rules = access_of_managers([manager], namespace="widgets")
    assert [rule for rule in shard_access("widgets") if rule not in rules] == []
