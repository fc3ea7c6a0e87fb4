"""Our controllers against any API server: over HTTP, in one process with it, or against a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from ostinato import AlreadyExists, CustomResource, ObjectMeta, Struct
from ostinato.api.conditions import find_condition
from ostinato.api.markers import ListMap
from ostinato.api.meta import Condition
from ostinato.api.owners import is_controlled_by
from ostinato.cache import CachedClient, Informers
from ostinato.client import Client, exists
from ostinato.controllers import Context, Dependencies, controller
from ostinato.crd import crd_of
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import ConfigMap
from tests.cluster.conftest import Play


class ThingSpec(Struct):
    text: str = ""


class ThingStatus(Struct):
    copies: int = 0
    observed_generation: int | None = None
    conditions: Annotated[list[Condition], ListMap("type")] = []


class Thing(CustomResource, group="controllers.example.dev", version="v1"):
    spec: ThingSpec
    status: ThingStatus | None = None


CLEANED: list[str] = []


@controller(Thing, owns=[ConfigMap], max_concurrent=4)
async def things(thing: Thing, ctx: Context) -> None:
    async with ctx.finalizer(thing, "controllers.example.dev/cleanup") as deleting:
        if deleting:
            CLEANED.append(thing.metadata.name)
            return
        name = thing.metadata.name
        wanted = [ConfigMap(metadata=ObjectMeta(name=f"{name}-{word}")) for word in thing.spec.text.split()]
        made = await ctx.apply_set(wanted, owner=thing)
        ready = Condition(type="Ready", status="True" if made else "False", reason="Counted")
        await ctx.status(copies=len(made), conditions=[ready])


@asynccontextmanager
async def controlling(client: Client, runnable: Any) -> AsyncIterator[Dependencies]:
    with suppress(AlreadyExists):
        await client.create(crd_of(Thing))
    await client.wait_for(CustomResourceDefinition, "things.controllers.example.dev", "Established", timeout=30)
    informers = Informers(client)
    dependencies = Dependencies(client=CachedClient(client, informers), informers=informers, world=client.world)
    task = asyncio.create_task(runnable.run(dependencies))
    try:
        yield dependencies
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await informers.stop()


def settled(copies: int) -> Callable[[Thing | None], bool]:
    def is_settled(thing: Thing | None) -> bool:
        if thing is None or thing.status is None:
            return False
        return thing.status.copies == copies and thing.status.observed_generation == thing.metadata.generation

    return is_settled


def test_a_controller_makes_follows_prunes_and_cleans_up(run: Callable[[Play], None]) -> None:
    async def body(client: Client) -> None:
        async with controlling(client, things):
            thing = await client.create(Thing(metadata=ObjectMeta(name="a"), spec=ThingSpec(text="one two")))
            found = await client.wait_for(Thing, "a", settled(2), timeout=30)
            assert found is not None
            made = await client.get(ConfigMap, "a-one")
            assert is_controlled_by(made, thing)
            condition = find_condition(found, "Ready")
            assert condition is not None
            assert (condition.status, condition.observed_generation) == ("True", 1)

            await client.delete(ConfigMap, "a-two")
            await client.wait_for(ConfigMap, "a-two", lambda each: each is not None and each.metadata.uid, timeout=30)

            async def change() -> None:
                current = await client.get(Thing, "a")
                current.spec.text = "two three"
                await client.update(current)

            await client.retry_on_conflict(change)
            await client.wait_for(Thing, "a", settled(2), timeout=30)
            await client.wait_for(ConfigMap, "a-one", lambda each: each is None, timeout=30)
            await client.wait_for(ConfigMap, "a-three", exists, timeout=30)

            await client.delete(Thing, "a")
            await client.wait_for(Thing, "a", lambda each: each is None, timeout=30)
            assert "a" in CLEANED

    run(body)


def test_many_objects_converge_and_a_second_look_sends_nothing(run: Callable[[Play], None]) -> None:
    async def body(client: Client) -> None:
        async with controlling(client, things) as dependencies:
            names = [f"n{number}" for number in range(30)]
            for name in names:
                await client.create(Thing(metadata=ObjectMeta(name=name), spec=ThingSpec(text="x")))
            for name in names:
                await client.wait_for(Thing, name, settled(1), timeout=30)
            before = {each.metadata.name: each.metadata.resource_version for each in await client.list(Thing)}
            informer = dependencies.informers.of(Thing)
            for registration in list(informer._listeners):
                informer._listeners[registration].enqueue_resync(informer.store.entries())
            await client.world.clock.sleep(1)
            after = {each.metadata.name: each.metadata.resource_version for each in await client.list(Thing)}
            assert after == before
            for name in names:
                await client.delete(Thing, name)
            for name in names:
                await client.wait_for(Thing, name, lambda each: each is None, timeout=30)

    run(body)
