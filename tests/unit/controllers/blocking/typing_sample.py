"""An operator with plain functions, for a type checker. Never run: `test_typing` runs mypy on it.

Each `type: ignore` is a mistake that the checker must report: an unused one is an error too.
"""

from __future__ import annotations

from typing import assert_type

from ostinato import BlockingContext, Context, CustomResource, Request, Result, Struct, controller, daemon, timer
from ostinato.api.accessors import AnyObject
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.client.listing import Items
from ostinato.client.patching import MergePatch
from ostinato.controllers import Builder, Dependencies, WatchKind
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret


class ThingSpec(Struct):
    size: int = 1


class Thing(CustomResource, group="example.dev", version="v1"):
    spec: ThingSpec


@controller(Thing, owns=[Deployment], max_concurrent=4, reconcile_timeout=30)
def things(thing: Thing, ctx: BlockingContext) -> Result | None:
    with ctx.finalizer(thing, "example.dev/cleanup") as deleting:
        assert_type(deleting, bool)
    made = ctx.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "v"}), owner=thing)
    assert_type(made, ConfigMap)
    assert_type(ctx.client.get(Secret, "creds"), Secret)
    assert_type(ctx.client.get(Secret, "creds", missing=None), Secret | None)
    assert_type(ctx.client.list(Pod, labels="app=web"), Items[Pod])
    assert_type(ctx.client.create(made), ConfigMap)
    assert_type(ctx.client.update(made), ConfigMap)
    assert_type(ctx.client.apply(made, force=True), ConfigMap)
    assert_type(ctx.client.patch(made), ConfigMap)
    assert_type(ctx.client.patch(Secret, "creds", MergePatch({})), Secret)
    ctx.client.delete(made, missing_ok=True)
    ctx.client.delete(Pod, ctx.request)
    assert_type(ctx.client.live.get(Pod, "web-0"), Pod)
    assert_type(ctx.wait(ctx.asynchronous.client.live.pods.log("web-0")), str)
    assert_type(ctx.client.retry_on_conflict(lambda: ctx.client.update(made)), ConfigMap)
    assert_type(ctx.status(ready=3, conditions=[Condition(type="Ready", status="True", reason="Up")]), AnyObject)
    ctx.event(thing, "Made", "made", kind="Warning")
    return Result(requeue_after=60)


@controller(Thing)
def mistaken(thing: Thing, ctx: BlockingContext) -> None:
    ctx.aply(thing)  # type: ignore[attr-defined]
    ctx.apply(thing, onwer=thing)  # type: ignore[call-arg]
    ctx.apply(ConfigMap)  # type: ignore[type-var]
    ctx.client.get(Pod, "a").spec.size  # type: ignore[attr-defined]  # noqa: B018
    ctx.client.get(Pod, "a", namespce="b")  # type: ignore[call-overload]
    ctx.client.list(Pod).wait()  # type: ignore[attr-defined]
    ctx.client.watch(Pod)  # type: ignore[attr-defined]
    secret: Secret = ctx.client.get(Pod, "a")  # type: ignore[assignment]  # noqa: F841
    ctx.event(thing, "Made")  # type: ignore[call-arg]
    ctx.status(conditions=["Ready"])  # type: ignore[list-item]


@controller(Thing, max_retries=3)
def comparing(thing: Thing, ctx: BlockingContext) -> None:
    size = ctx.changed("spec.size", int)
    old: int | None = size.old
    text: str | None = size.new  # type: ignore[assignment]
    assert_type((old, text, ctx.stopped), tuple[int | None, str | None, bool])
    ctx.sleep("5")  # type: ignore[arg-type]


@daemon(Thing, when=lambda thing: thing.spec.size > 1)
async def running(thing: Thing, ctx: Context) -> None: ...


@daemon(Thing, when=lambda thing: thing.spec.sise > 1)  # type: ignore[attr-defined]
async def misspelt_field(thing: Thing, ctx: Context) -> None: ...


@timer(Thing, every=60, idel=10)  # type: ignore[call-arg]
async def misspelt_option(thing: Thing, ctx: Context) -> None: ...


@controller(Thing)
def awaitable(thing: Thing, ctx: Context) -> None:
    ctx.apply(thing)  # type: ignore[unused-coroutine]


@controller(Thing, ownz=[Deployment])  # type: ignore[call-arg]
async def misspelt(thing: Thing, ctx: Context) -> None: ...


@controller(Thing, max_concurrent="4")  # type: ignore[arg-type]
async def mistyped(thing: Thing, ctx: Context) -> None: ...


def built(request: Request, ctx: BlockingContext) -> None: ...


def things_of(pod: Pod) -> list[Request]:
    return [Request(pod.metadata.namespace, pod.metadata.name)]


async def read_things_of(pod: Pod, dependencies: Dependencies) -> Request | None:
    return next(iter(things_of(pod)), None)


Builder("things").watch_for(Thing).watches(Pod, map_to=things_of).watches(Pod, map_to=read_things_of)
Builder("things").watch_for(Thing).watches(Secret, map_to=things_of)  # type: ignore[arg-type]


@controller(Thing, watches=[WatchKind(Pod, map_to=things_of), WatchKind(Pod, map_to=lambda pod: None)])
async def watching(thing: Thing, ctx: Context) -> None: ...


mismatched = WatchKind(Secret, map_to=things_of)  # type: ignore[arg-type]


Builder("things").watch_for(Thing, metadata_olny=True)  # type: ignore[call-arg]
Builder("things").watch_for(Thing).owns(Deployment, resync=60).with_options(slow_step=1.0).complete(built)
Builder("things").with_options(max_concurent=4)  # type: ignore[call-arg]
