"""Bugs of intermediate states: what a process that dies half-way leaves behind."""

from __future__ import annotations

from ostinato import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing.explore import create, delete, edit
from tests.zoo.animals import Animal, Beast, beast, exists, owned, part


@controller(Beast, owns=[ConfigMap], name="half-made")
async def half_made(leo: Beast, ctx: Context) -> None:
    if not await exists(ctx, leo.metadata.name):
        await ctx.client.create(owned(leo))
        await ctx.client.create(owned(leo, "tail", fixed="yes"))
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="whole")
async def whole(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)
    await ctx.apply(part(leo, "tail", fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="marked-early")
async def marked_early(leo: Beast, ctx: Context) -> None:
    if leo.status is not None and leo.status.size == leo.spec.size:
        return
    await ctx.status(size=leo.spec.size)
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="marked-late")
async def marked_late(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)
    await ctx.status(size=leo.spec.size)


@controller(Beast, owns=[ConfigMap], name="creates-or-fails")
async def creates_or_fails(leo: Beast, ctx: Context) -> None:
    if leo.status is None or leo.status.phase != "made":
        await ctx.client.create(owned(leo, fixed="yes"))
        await ctx.status(phase="made")
    elif not await exists(ctx, leo.metadata.name):
        await ctx.client.create(owned(leo, fixed="yes"))


@controller(Beast, owns=[ConfigMap], name="creates-or-finds")
async def creates_or_finds(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo, fixed="yes"), owner=leo)
    await ctx.status(phase="made")


@controller(Beast, owns=[ConfigMap], name="resizes-in-between")
async def resizes_in_between(leo: Beast, ctx: Context) -> None:
    """The size of the store is only changed while the body is replaced."""
    name, size = leo.metadata.name, str(leo.spec.size)
    body = await ctx.client.get(ConfigMap, name, missing=None)
    if body is None:
        if not await exists(ctx, f"{name}-store"):
            await ctx.apply(part(leo, "store"), owner=leo)
        await ctx.apply(part(leo), owner=leo)
    elif body.data["size"] != size:
        await ctx.client.delete(body)
        await ctx.apply(part(leo, "store"), owner=leo)
        await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="resizes-anyway")
async def resizes_anyway(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo, "store"), owner=leo)
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="shrinks-by-status")
async def shrinks_by_status(leo: Beast, ctx: Context) -> None:
    """What was removed is known only from the status of the last run."""
    name, size = leo.metadata.name, leo.spec.size
    before = leo.status.size if leo.status is not None else 0
    await ctx.status(size=size)
    for number in range(size, before):
        await ctx.client.delete(ConfigMap, f"{name}-{number}", missing_ok=True)
    for number in range(size):
        await ctx.apply(part(leo, str(number), fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="shrinks-by-looking")
async def shrinks_by_looking(leo: Beast, ctx: Context) -> None:
    wanted = [part(leo, str(number), fixed="yes") for number in range(leo.spec.size)]
    await ctx.apply_set(wanted, owner=leo)
    await ctx.status(size=leo.spec.size)


TRIO = beast(size=3)

ANIMALS = (
    Animal(
        name="half-made",
        source="Sieve (OSDI '22), intermediate states; rabbitmq/cluster-operator#782",
        bug="the second object is made only together with the first",
        buggy=half_made,
        repaired=whole,
    ),
    Animal(
        name="marked-early",
        source="eclipse-theia/theia-cloud#221",
        bug="work is marked as done before it is done",
        buggy=marked_early,
        repaired=marked_late,
    ),
    Animal(
        name="creates-or-fails",
        source="zalando-incubator/kopf#186",
        bug="a create that was done before fails for ever with AlreadyExists",
        buggy=creates_or_fails,
        repaired=creates_or_finds,
    ),
    Animal(
        name="resizes-in-between",
        source="rabbitmq/cluster-operator#782",
        bug="a store is resized only between the deletion and the creation of another object",
        buggy=resizes_in_between,
        repaired=resizes_anyway,
    ),
    Animal(
        name="shrinks-by-status",
        source="Orange-OpenSource/casskop#370",
        bug="what is to be removed is known only from a status that is written first",
        buggy=shrinks_by_status,
        repaired=shrinks_by_looking,
        scenario=(create(TRIO), edit(TRIO, size=1), edit(TRIO, size=2), delete(TRIO)),
    ),
)
