"""Bugs of ownership: what is left behind, what is deleted that is somebody else's."""

from __future__ import annotations

from ostinato import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing.explore import create, edit
from tests.zoo.animals import LIVES, Animal, Beast, beast, owned, part


@controller(Beast, name="owns-nothing")
async def owns_nothing(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo))


@controller(Beast, owns=[ConfigMap], name="owns")
async def owns(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="owns-abroad")
async def owns_abroad(leo: Beast, ctx: Context) -> None:
    """An owner in another namespace does not exist for the garbage collector."""
    made = owned(leo)
    made.metadata.namespace = "kube-public"
    await ctx.client.apply(made, force=True, field_manager="zoo")


@controller(Beast, owns=[ConfigMap], name="prunes-by-label")
async def prunes_by_label(leo: Beast, ctx: Context) -> None:
    """Removes what has its label and not its size, in all namespaces."""
    await ctx.apply(part(leo), owner=leo)
    async for each in ctx.client.list(ConfigMap, labels={"beast": leo.metadata.name}):
        if (each.data or {}).get("size") != str(leo.spec.size):
            await ctx.client.delete(each, missing_ok=True)


@controller(Beast, owns=[ConfigMap], name="prunes-by-prefix")
async def prunes_by_prefix(leo: Beast, ctx: Context) -> None:
    """Removes what begins with its name: "leo" owns "leo-nid", too."""
    wanted = {f"{leo.metadata.name}-{number}" for number in range(leo.spec.size)}
    async for each in ctx.client.list(ConfigMap, namespace="default"):
        name = each.metadata.name
        if name.startswith(f"{leo.metadata.name}-") and name not in wanted:
            await ctx.client.delete(each, missing_ok=True)
    for number in range(leo.spec.size):
        await ctx.apply(part(leo, str(number), fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="prunes-its-own")
async def prunes_its_own(leo: Beast, ctx: Context) -> None:
    wanted = [part(leo, str(number), fixed="yes") for number in range(leo.spec.size)]
    await ctx.apply_set(wanted, owner=leo)


@controller(Beast, owns=[ConfigMap], name="finds-the-dying")
async def finds_the_dying(leo: Beast, ctx: Context) -> None:
    """Takes an object that is being deleted for one that exists, and does not look again."""
    found = await ctx.client.live.get(ConfigMap, leo.metadata.name, missing=None)
    if leo.status is not None and leo.status.id == leo.metadata.uid:
        return
    if found is None:
        await ctx.apply(part(leo, fixed="yes"), owner=leo)
    await ctx.status(id=leo.metadata.uid)


@controller(Beast, owns=[ConfigMap], name="survives-the-dying")
async def survives_the_dying(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo, fixed="yes"), owner=leo)
    await ctx.status(id=leo.metadata.uid)


ANIMALS = (
    Animal(
        name="owns-nothing",
        source="crossplane/crossplane#48",
        bug="what it has made has no owner, and stays",
        buggy=owns_nothing,
        repaired=owns,
    ),
    Animal(
        name="owns-abroad",
        source="crossplane/crossplane#895, banzaicloud/koperator#186",
        bug="an owner reference leads to another namespace",
        buggy=owns_abroad,
        repaired=owns,
    ),
    Animal(
        name="prunes-by-label",
        source="pravega/zookeeper-operator#312, k8ssandra/cass-operator#118 (found by name instead of uid)",
        bug="objects of another namespace with the same label are deleted",
        buggy=prunes_by_label,
        repaired=owns,
    ),
    Animal(
        name="prunes-by-prefix",
        source="instaclustr/cassandra-operator#402 (another object's children are deleted)",
        bug="names with the same beginning are taken for its own",
        buggy=prunes_by_prefix,
        repaired=prunes_its_own,
        scenario=(create(beast("leo", size=2)), create(beast("leo-nid", size=1)), edit(beast("leo", size=2), size=1)),
    ),
    Animal(
        name="finds-the-dying",
        source="SwissDataScienceCenter/amalthea#141",
        bug="an object that is being deleted is taken for one that exists",
        buggy=finds_the_dying,
        repaired=survives_the_dying,
        scenario=LIVES,
    ),
)
