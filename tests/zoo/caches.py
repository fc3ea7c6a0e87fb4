"""Bugs of caches and answers: stale reads, lost answers, names that the server chooses."""

from __future__ import annotations

from ostinato import Context, ObjectMeta, controller
from ostinato.api.owners import set_controller_reference
from ostinato.cache.store.indexes import OWNER
from ostinato.kinds.core_v1 import ConfigMap
from tests.zoo.animals import Animal, Beast, part


def generated(leo: Beast) -> ConfigMap:
    made = ConfigMap(metadata=ObjectMeta(generate_name=f"{leo.metadata.name}-", namespace="default"))
    set_controller_reference(leo, made)
    return made


@controller(Beast, owns=[ConfigMap], name="generates", wait_for_own_writes=False)
async def generates(leo: Beast, ctx: Context) -> None:
    """Looks into the cache, which may not have seen what was made a moment ago."""
    listed = ctx.client.list(ConfigMap, namespace="default", fresh=False)
    have = [each async for each in listed if is_of(leo, each)]
    for _ in range(leo.spec.size - len(have)):
        await ctx.client.create(generated(leo))


@controller(Beast, owns=[ConfigMap], name="names")
async def names(leo: Beast, ctx: Context) -> None:
    for number in range(leo.spec.size):
        await ctx.apply(part(leo, str(number), fixed="yes"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="generates-once")
async def generates_once(leo: Beast, ctx: Context) -> None:
    """Creates again after an answer that was lost, and never removes what is too much."""
    have = [each async for each in ctx.client.list(ConfigMap, namespace="default") if is_of(leo, each)]
    if not have:
        try:
            await ctx.client.create(generated(leo))
        except ConnectionError:
            await ctx.client.create(generated(leo))
        except Exception:  # noqa: BLE001 - the bug: whatever it was, try again at once
            await ctx.client.create(generated(leo))


@controller(Beast, owns=[ConfigMap], name="generates-and-prunes")
async def generates_and_prunes(leo: Beast, ctx: Context) -> None:
    have = sorted(
        [each async for each in ctx.client.list(ConfigMap, index=(OWNER, leo.metadata.uid))],
        key=lambda each: each.metadata.name,
    )
    for _ in range(1 - len(have)):
        await ctx.client.create(generated(leo))
    for extra in have[1:]:
        await ctx.client.delete(extra, missing_ok=True)


@controller(Beast, owns=[ConfigMap], name="reads-any-version")
async def reads_any_version(leo: Beast, ctx: Context) -> None:
    """Numbers revisions by what a list at any resourceVersion shows."""
    listed = ctx.client.live.list(ConfigMap, namespace="default", resource_version="0")
    sizes = {each.data.get("size") async for each in listed if is_of(leo, each)}
    if str(leo.spec.size) not in sizes:
        await ctx.client.create(revision(leo, len(sizes) + 1))


@controller(Beast, owns=[ConfigMap], name="reads-the-latest")
async def reads_the_latest(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


def revision(leo: Beast, number: int) -> ConfigMap:
    made = part(leo, f"rev{number}")
    set_controller_reference(leo, made)
    return made


def is_of(leo: Beast, each: ConfigMap) -> bool:
    return any(owner.uid == leo.metadata.uid for owner in each.metadata.owner_references or ())


ANIMALS = (
    Animal(
        name="generates",
        source="argoproj/argo-rollouts#243, cryostatio/cryostat-operator#163, scylladb/scylla-operator#2492",
        bug="objects with generated names are counted in a cache that is behind",
        buggy=generates,
        repaired=names,
    ),
    Animal(
        name="generates-once",
        source="our history: caches had no moment after a write that got no answer, and objects were made twice",
        bug="a create whose answer was lost is sent again under another name",
        buggy=generates_once,
        repaired=generates_and_prunes,
    ),
    Animal(
        name="reads-any-version",
        source="instaclustr/cassandra-operator#402, rabbitmq/cluster-operator#653 (a server that is behind)",
        bug="a list at resourceVersion 0 decides what is missing",
        buggy=reads_any_version,
        repaired=reads_the_latest,
    ),
)
