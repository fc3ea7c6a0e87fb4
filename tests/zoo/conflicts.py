"""Bugs of writes beside others: overwritten fields, conflicts that are swallowed, loops."""

from __future__ import annotations

from ostinato import Context, Result, controller
from ostinato.api.errors import APIError, Conflict
from ostinato.api.meta import Condition
from ostinato.client.patching import MergePatch
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing.explore import create, delete, edit
from tests.zoo.animals import LEO, Animal, Beast, part


@controller(Beast, owns=[ConfigMap], name="overwrites")
async def overwrites(leo: Beast, ctx: Context) -> None:
    """Replaces all annotations by its own."""
    wanted = {"zoo.dev/size": str(leo.spec.size)}
    if (leo.metadata.annotations or {}) != wanted:
        change = {"metadata": {"annotations": None}}
        await ctx.client.patch(Beast, leo.metadata, MergePatch(change))
        await ctx.client.patch(Beast, leo.metadata, MergePatch({"metadata": {"annotations": wanted}}))


@controller(Beast, owns=[ConfigMap], name="adds")
async def adds(leo: Beast, ctx: Context) -> None:
    if (leo.metadata.annotations or {}).get("zoo.dev/size") != str(leo.spec.size):
        change = MergePatch({"metadata": {"annotations": {"zoo.dev/size": str(leo.spec.size)}}})
        await ctx.client.patch(Beast, leo.metadata, change)


@controller(Beast, owns=[ConfigMap], name="swallows-conflicts")
async def swallows_conflicts(leo: Beast, ctx: Context) -> None:
    found = await ctx.client.get(ConfigMap, leo.metadata.name, missing=None)
    if found is None:
        await ctx.apply(part(leo), owner=leo)
        return
    if found.data != {"size": str(leo.spec.size)}:
        found.data = {"size": str(leo.spec.size)}
        try:
            await ctx.client.update(found)
        except Conflict:
            return  # somebody else will have written it


@controller(Beast, owns=[ConfigMap], name="applies")
async def applies(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="swallows-errors")
async def swallows_errors(leo: Beast, ctx: Context) -> None:
    try:
        await ctx.apply(part(leo), owner=leo)
    except APIError:
        return


@controller(Beast, owns=[ConfigMap], name="gives-up")
async def gives_up(leo: Beast, ctx: Context) -> None:
    """Marks an object as failed after an error, and leaves it alone from then on."""
    if leo.status is not None and leo.status.phase == "failed":
        return
    try:
        await ctx.apply(part(leo), owner=leo)
    except APIError:
        await ctx.status(phase="failed")


@controller(Beast, name="stamps")
async def stamps(leo: Beast, ctx: Context) -> Result:
    """The time of the transition is that of the last reconcile."""
    ready = Condition(type="Ready", status="True", reason="Fed", last_transition_time=ctx.now())
    await ctx.client.patch(Beast, leo.metadata, MergePatch({"metadata": {"annotations": {"seen": str(ctx.now())}}}))
    await ctx.status(conditions=[ready])
    return Result(requeue_after=5)


@controller(Beast, name="settles")
async def settles(leo: Beast, ctx: Context) -> Result:
    await ctx.status(conditions=[Condition(type="Ready", status="True", reason="Fed")])
    return Result(requeue_after=5)


@controller(Beast, owns=[ConfigMap], name="spins")
async def spins(leo: Beast, ctx: Context) -> Result:
    """Asks for another run while the colour is not what a user wanted first, which never ends after an edit."""
    await ctx.apply(part(leo), owner=leo)
    if leo.spec.color != "grey":
        await ctx.client.patch(
            ConfigMap, part(leo).metadata, MergePatch({"data": {"run": ctx.request.name + str(ctx.now())}})
        )
        return Result(requeue_after=0.5)
    return Result()


EDITED = (create(LEO), edit(LEO, size=3), edit(LEO, size=2), delete(LEO))

ANIMALS = (
    Animal(
        name="overwrites",
        source="kubevirt/kubevirt#6966 (updates remove what others have set)",
        bug="all annotations are replaced, those of users too",
        buggy=overwrites,
        repaired=adds,
    ),
    Animal(
        name="swallows-conflicts",
        source="kubernetes-sigs/controller-runtime#1748",
        bug="a conflict is taken as done",
        buggy=swallows_conflicts,
        repaired=applies,
        scenario=EDITED,
    ),
    Animal(
        name="swallows-errors",
        source="kubernetes-sigs/controller-runtime#403",
        bug="an error of the server is not reported, so that nothing is tried again",
        buggy=swallows_errors,
        repaired=applies,
        scenario=EDITED,
    ),
    Animal(
        name="gives-up",
        source="eclipse-theia/theia-cloud#221",
        bug="an object is marked as failed by one error, for ever",
        buggy=gives_up,
        repaired=applies,
        scenario=EDITED,
    ),
    Animal(
        name="stamps",
        source="knative/serving#1181, rabbitmq/messaging-topology-operator#251",
        bug="lastTransitionTime is that of the last reconcile, each of which causes the next",
        buggy=stamps,
        repaired=settles,
    ),
    Animal(
        name="spins",
        source="strimzi/strimzi-kafka-operator#13079",
        bug="a write in every reconcile, each of which causes the next",
        buggy=spins,
        repaired=applies,
        scenario=(create(LEO), edit(LEO, color="red"), delete(LEO)),
    ),
)
