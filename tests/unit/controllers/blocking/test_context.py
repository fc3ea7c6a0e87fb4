"""The context and the clients of plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_overloads

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.errors import Conflict
from ostinato.cache import CachedClient
from ostinato.client import Client
from ostinato.client.patching import MergePatch
from ostinato.controllers import (
    BlockingClient,
    BlockingContext,
    BlockingLiveClient,
    Context,
    Request,
    controller,
)
from ostinato.controllers.blocking.calls import BlockingCalls
from ostinato.kinds.core_v1 import ConfigMap

A = Request("default", "a")


async def seen_by(stage: ControllerStage, look: Callable[[Widget, BlockingContext], Any]) -> Any:
    """Reconcile the Widget `a` once with a plain function, and return what it returns."""
    seen: list[Any] = []

    @controller(Widget, owns=[ConfigMap], runs_for_own_writes=False)
    def widgets(each: Widget, ctx: BlockingContext) -> None:
        if not seen:
            seen.append(look(each, ctx))

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
    assert stage.log.texts() == []
    return seen[0]


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_it_has_the_attributes_of_the_context() -> None:
    own = {"asynchronous", "stopped", "wait"}
    data = {"reconcile", "client", "world", "logger", "object"}  # set in the constructor of Context
    assert public(BlockingContext) - own == public(Context) | data


@pytest.mark.parametrize(
    ("blocking", "original", "without"),
    [
        (BlockingContext, Context, set()),
        (BlockingClient, CachedClient, {"patch", "delete"}),  # their overloads have the parameters
        (BlockingLiveClient, Client, {"patch", "delete"}),
    ],
)
def test_methods_take_the_same_parameters(blocking: type, original: type, without: set[str]) -> None:
    compared = 0
    for name in (public(blocking) & public(original)) - without:
        mine, other = getattr(blocking, name), getattr(original, name)
        if not inspect.isfunction(mine):
            continue
        ours, theirs = inspect.signature(mine), inspect.signature(other)
        assert [(each.name, each.kind) for each in ours.parameters.values()] == [
            (each.name, each.kind) for each in theirs.parameters.values()
        ], name
        assert [each.default is each.empty for each in ours.parameters.values()] == [
            each.default is each.empty for each in theirs.parameters.values()
        ], name
        assert mine.__doc__, name
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize(("blocking", "original"), [(BlockingClient, CachedClient), (BlockingLiveClient, Client)])
def test_overloads_take_the_same_parameters(blocking: type, original: type) -> None:
    for name in ("patch", "delete", "get"):
        mine, theirs = (
            [str(inspect.signature(each)).partition(" -> ")[0] for each in get_overloads(getattr(cls, name))]
            for cls in (blocking, original)
        )
        assert mine == theirs
        assert mine


def test_the_cached_client_lacks_nothing_but_internals() -> None:
    assert public(CachedClient) - public(BlockingClient) == {"check_unwatched", "found", "parts"}


@staged
async def test_dir_and_unknown_attributes_name_what_there_is(stage: ControllerStage) -> None:
    def look(each: Widget, ctx: Any) -> dict[str, Any]:
        def error(get: Callable[[], object]) -> str:
            with pytest.raises(AttributeError) as caught:
                get()
            return str(caught.value)

        return {
            "dir": dir(ctx),
            "client": dir(ctx.client),
            "repr": repr(ctx),
            "context": error(lambda: ctx.statu),
            "nothing": error(lambda: ctx.xyzzy),
            "live": error(lambda: ctx.client.pods),
            "pods": error(lambda: ctx.client.live.pods),
        }

    seen = await seen_by(stage, look)
    assert {"apply", "status", "event", "client", "finalizer"} <= set(seen["dir"])
    assert {"get", "list", "create", "update", "apply", "patch", "delete", "live"} <= set(seen["client"])
    assert seen["repr"] == "<blocking context of widgets for default/a>"
    assert seen["context"].startswith("the context of a plain def has no attribute 'statu'; did you mean status? ")
    assert seen["nothing"].startswith(
        "the context of a plain def has no attribute 'xyzzy'; attributes are adopt, apply, apply_set, asynchronous, "
    )
    pods = "use ctx.wait(ctx.asynchronous.client.live.pods…); attributes are "
    assert seen["live"].startswith(f"a blocking client has no attribute 'pods'; {pods}")
    assert seen["pods"].startswith(f"a blocking live client has no attribute 'pods'; {pods}")


@staged
async def test_the_clients_block_in_every_method(stage: ControllerStage) -> None:
    def look(each: Widget, ctx: BlockingContext) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        made = ctx.client.create(config_map("one", k="v"))
        made.data["k"] = "w"
        made = ctx.client.update(made)
        made.data["k"] = "x"
        made = ctx.client.patch(made)
        made = ctx.client.patch(ConfigMap, "one", MergePatch({"data": {"l": "y"}}))
        seen["patched"] = made.data
        seen["applied"] = ctx.client.apply(config_map("two", k="v"), field_manager="x").data
        ctx.client.fresh(ConfigMap)
        seen["listed"] = [found.metadata.name for found in ctx.client.list(ConfigMap, namespace="default")]
        live = ctx.client.live
        seen["version"] = bool(live.list(ConfigMap, namespace="default").resource_version)
        seen["first"] = next(live.watch(ConfigMap, namespace="default", fields={"metadata.name": "two"})).object.data
        found = live.wait_for(ConfigMap, "one", lambda it: it is not None, timeout=1)
        seen["found"] = found is not None and found.metadata.name
        seen["elsewhere"] = ctx.client.in_namespace("kube-system").get(ConfigMap, "one", missing="none")
        seen["missing"] = live.get(ConfigMap, "nothing", missing=None)
        ctx.client.delete(made)
        ctx.client.delete(ConfigMap, "nothing", missing_ok=True)
        ctx.client.delete_all_of(ConfigMap, namespace="default")
        seen["left"] = ctx.client.list(ConfigMap, namespace="default")
        seen["one"] = [it.metadata.name for it in ctx.apply_set([config_map("own")], owner=each)]
        ctx.prune(each)
        seen["pruned"] = list(live.list(ConfigMap, namespace="default"))
        other = ctx.adopt(ctx.client.create(config_map("other")), each)
        seen["owned"] = len(other.metadata.owner_references)
        seen["released"] = ctx.release(other, each).metadata.owner_references
        before = ctx.now().timestamp()
        ctx.wait(ctx.world.clock.sleep(5))
        seen["slept"] = ctx.now().timestamp() - before >= 5
        seen["same"] = (ctx.asynchronous.request, ctx.name, ctx.reconcile.controller, ctx.logger is stage.logger)
        return seen

    assert await seen_by(stage, look) == {
        "patched": {"k": "x", "l": "y"},
        "applied": {"k": "v"},
        "listed": ["one", "two"],
        "version": True,
        "first": {"k": "v"},
        "found": "one",
        "elsewhere": "none",
        "missing": None,
        "left": [],
        "one": ["own"],
        "pruned": [],
        "owned": 1,
        "released": [],
        "slept": True,
        "same": (A, "widgets", "widgets", True),
    }


@staged
async def test_conflicts_are_retried_in_the_thread(stage: ControllerStage) -> None:
    def look(each: Widget, ctx: BlockingContext) -> dict[str, Any]:
        attempts: list[int] = []

        def contended() -> str:
            attempts.append(1)
            if len(attempts) < 3:
                raise _conflict()
            return "done"

        def hopeless() -> None:
            attempts.append(1)
            raise _conflict()

        seen = {"result": ctx.client.retry_on_conflict(contended), "attempts": len(attempts)}
        with pytest.raises(Conflict):
            ctx.client.live.retry_on_conflict(hopeless)
        return seen | {"all": len(attempts)}

    assert await seen_by(stage, look) == {"result": "done", "attempts": 3, "all": 8}


def _conflict() -> Conflict:
    from ostinato.api.gvk import GroupResource

    return Conflict.of(GroupResource("", "configmaps"), "one", "changed")


@without_server
async def test_no_call_is_made_after_the_timeout(stage: ServerlessStage) -> None:
    def refuse() -> None:
        raise TimeoutError

    calls = BlockingCalls(stage.world.executor, refuse)

    async def later() -> None: ...

    with pytest.raises(TimeoutError):
        calls.wait(later())
    with pytest.raises(TimeoutError):
        calls.wait(stage.world.clock.sleep(1))
