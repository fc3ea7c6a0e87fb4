"""Bugs of several processes and of clocks."""

from __future__ import annotations

from ostinato import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from tests.zoo.animals import Animal, Beast, part


@controller(Beast, owns=[ConfigMap], name="unelected", needs_leader_election=False)
async def unelected(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="elected")
async def elected(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="by-date")
async def by_date(leo: Beast, ctx: Context) -> None:
    """The name of an object has the date on which it is first needed, by the clock of the machine."""
    await ctx.apply(part(leo, ctx.now().strftime("%Y%m%d"), fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="by-name")
async def by_name(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo, "day", fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="expects-existence")
async def expects_existence(leo: Beast, ctx: Context) -> None:
    """Reads a child that it believes to exist, as it was made before."""
    if leo.status is None or leo.status.phase != "made":
        await ctx.apply(part(leo), owner=leo)
        await ctx.status(phase="made")
    found = await ctx.client.get(ConfigMap, leo.metadata.name, missing=None)
    if found.data["size"] != str(leo.spec.size):  # type: ignore[union-attr,index]  # the bug
        await ctx.apply(part(leo), owner=leo)


ANIMALS = (
    Animal(
        name="unelected",
        source="telekom/k8s-breakglass#464",
        bug="replicas that do not lead write, too",
        buggy=unelected,
        repaired=elected,
    ),
    Animal(
        name="by-date",
        source="our list of clock faults: midnight",
        bug="names depend on the clock, and change at midnight",
        buggy=by_date,
        repaired=by_name,
    ),
    Animal(
        name="expects-existence",
        source="Sieve (OSDI '22), log checks: panics",
        bug="an object that somebody has deleted is read without a check",
        buggy=expects_existence,
        repaired=elected,
    ),
)
