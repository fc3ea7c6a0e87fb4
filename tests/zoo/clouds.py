"""Bugs with systems outside of the cluster: things that leak, exist twice, or cannot be deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ostinato import Context, controller
from ostinato.client.patching import MergePatch
from ostinato.testing.explore import Step, create, delete
from tests.zoo.animals import CLOUD, LEO, LIVES, Animal, Beast, Cloud

FINALIZER = "zoo.dev/cloud"
Body = Callable[[Beast, Context, Cloud], Awaitable[None]]


def operator(name: str, body: Body) -> Any:
    """Return a factory of an operator with a cloud."""

    def make(cloud: Cloud) -> Any:
        @controller(Beast, name=name)
        async def clouded(leo: Beast, ctx: Context) -> None:
            await body(leo, ctx, cloud)

        return clouded

    return make


async def _finalizers(ctx: Context, leo: Beast, names: list[str]) -> None:
    await ctx.client.patch(Beast, leo.metadata, MergePatch({"metadata": {"finalizers": names}}))


async def careful(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        else:
            await cloud.put(leo.metadata.name, leo.spec.size)


async def finalizer_late(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    name = leo.metadata.name
    if leo.metadata.deletion_timestamp:
        if FINALIZER in leo.metadata.finalizers:
            await cloud.drop(name)
            await _finalizers(ctx, leo, [])
        return
    await cloud.put(name, leo.spec.size)
    if FINALIZER not in leo.metadata.finalizers:
        await _finalizers(ctx, leo, [FINALIZER])


async def finalizer_first(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    if leo.metadata.deletion_timestamp:
        if FINALIZER in leo.metadata.finalizers:
            await _finalizers(ctx, leo, [])
            await cloud.drop(leo.metadata.name)
        return
    if FINALIZER not in leo.metadata.finalizers:
        await _finalizers(ctx, leo, [FINALIZER])
    await cloud.put(leo.metadata.name, leo.spec.size)


async def must_exist(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.remove(leo.metadata.name)
        else:
            await cloud.put(leo.metadata.name, leo.spec.size)


async def ignores_failure(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            try:
                await cloud.drop(leo.metadata.name)
            except ConnectionError:
                return
        else:
            await cloud.put(leo.metadata.name, leo.spec.size)


async def creates_once(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        elif leo.status is None or leo.status.phase != "made":
            await cloud.add(leo.metadata.name)
            await ctx.status(phase="made")


async def creates_or_finds(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        else:
            await cloud.put(leo.metadata.name, 1)
            await ctx.status(phase="made")


async def id_in_status(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        elif leo.status is None or not leo.status.id:
            await ctx.status(id=await cloud.new(leo.metadata.name))


async def id_by_label(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        else:
            found = await cloud.find(leo.metadata.name)
            await ctx.status(id=found or await cloud.new(leo.metadata.name))


async def grows_by_difference(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    """Adds what is missing according to a status that is written afterwards."""
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
            return
        have = leo.status.size if leo.status is not None else 0
        for _ in range(leo.spec.size - have):
            await cloud.new(leo.metadata.name)
        await ctx.status(size=leo.spec.size)


async def grows_by_counting(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
            return
        for _ in range(leo.spec.size - await cloud.count(leo.metadata.name)):
            await cloud.new(leo.metadata.name)
        await ctx.status(size=leo.spec.size)


async def sets_size_once(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    """Writes the status before the cloud; a failed call is believed to be done."""
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        elif leo.status is None or leo.status.size != leo.spec.size:
            await ctx.status(size=leo.spec.size)
            await cloud.put(leo.metadata.name, leo.spec.size)


async def sets_size_first(leo: Beast, ctx: Context, cloud: Cloud) -> None:
    async with ctx.finalizer(leo, FINALIZER) as deleting:
        if deleting:
            await cloud.drop(leo.metadata.name)
        else:
            await cloud.put(leo.metadata.name, leo.spec.size)
            await ctx.status(size=leo.spec.size)


def clouded(
    name: str, source: str, bug: str, buggy: Body, repaired: Body = careful, *, scenario: Sequence[Step] = LIVES
) -> Animal:
    return Animal(
        name=name,
        source=source,
        bug=bug,
        buggy=operator(name, buggy),
        repaired=operator(f"{name}-repaired", repaired),
        scenario=scenario,
        external=CLOUD,
    )


ANIMALS = (
    clouded(
        "finalizer-late",
        "infinispan/infinispan-operator#334, outscale/cluster-api-provider-outscale#917",
        "the finalizer is added after the thing was made",
        finalizer_late,
        scenario=(create(LEO), delete(LEO), create(LEO)),
    ),
    clouded(
        "finalizer-first",
        "zalando/postgres-operator#450",
        "the finalizer is removed before the thing is",
        finalizer_first,
    ),
    clouded(
        "must-exist",
        "aclerici38/pocket-id-operator#545",
        "a thing that is gone already cannot be deleted, for ever",
        must_exist,
    ),
    clouded(
        "ignores-failure",
        "libopenstorage/stork#275",
        "a deletion that failed is taken as done, and the finalizer is removed",
        ignores_failure,
    ),
    clouded(
        "creates-once",
        "Kong/kong-operator#733",
        "a thing that was made, but not noted, cannot be made again",
        creates_once,
        creates_or_finds,
    ),
    clouded(
        "id-in-status",
        "Kong/kong-operator#733",
        "the id of a thing is lost between its creation and the status",
        id_in_status,
        id_by_label,
    ),
    clouded(
        "grows-by-difference",
        "Kong/kong-operator#733 (the status is behind the external system)",
        "what is missing is computed from a status that is written afterwards",
        grows_by_difference,
        grows_by_counting,
    ),
    clouded(
        "status-before-cloud",
        "theia-cloud#221; Sieve (OSDI '22), intermediate states",
        "the status tells what is only wanted",
        sets_size_once,
        sets_size_first,
    ),
)
