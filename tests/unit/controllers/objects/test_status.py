"""Status: written only on change; conditions, generations, times. Finalizers, and events."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget
from tests.unit.controllers.objects.test_applying import context

from ostinato.api.conditions import find_condition
from ostinato.api.errors import Conflict
from ostinato.api.meta import Condition
from ostinato.api.time import Time
from ostinato.client import MergePatch, MetadataOf, Unstructured
from ostinato.controllers import Context, Request, controller
from ostinato.kinds.core_v1 import ConfigMap

DICTS = Unstructured.of("example.dev/v1", "Widget")
READY = Condition(type="Ready", status="True", reason="AllUp")


@staged
async def test_fields_are_written_when_they_change_and_not_else(stage: ControllerStage) -> None:
    ctx = await context(stage, Widget)
    each = await stage.user.create(widget("a"))
    written = await ctx.status(each, ready=2, note="hi")
    assert isinstance(written, Widget)
    assert written.status is not None
    assert (written.status.ready, written.status.note, written.status.observed_generation) == (2, "hi", 1)
    assert each.status == written.status
    sent = len(stage.transport.writes())
    assert sent == 1
    await ctx.status(each, ready=2)
    await ctx.status(await stage.client.get(Widget, "a"), ready=2, note="hi")
    assert len(stage.transport.writes()) == sent


@staged
async def test_the_objects_of_a_run_are_freed_without_garbage_collection(stage: ControllerStage) -> None:
    ctx = await context(stage, Widget)
    each = await stage.user.create(widget("a"))
    await ctx.status(each, ready=2, conditions=[READY])
    used = weakref.ref(ctx)
    gc.disable()
    try:
        del ctx
        assert used() is None
    finally:
        gc.enable()


@staged
async def test_a_value_that_is_the_default_is_written_once(stage: ControllerStage) -> None:
    ctx = await context(stage, Widget)
    await ctx.status(await stage.user.create(widget("a")), ready=0, note="")
    found = await stage.user.get(DICTS, "a")
    assert found["status"] == {"ready": 0, "note": "", "observedGeneration": 1}
    other = await context(stage)
    await other.status(await stage.client.get(Widget, "a"), ready=0, note="")
    assert len(stage.transport.writes()) == 1


@staged
async def test_none_removes_a_field_and_other_fields_stay(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    await ctx.status(each, ready=2, note="hi")
    await ctx.status(each, note=None)
    assert (await stage.user.get(DICTS, "a"))["status"] == {"ready": 2, "observedGeneration": 1}


@staged
async def test_objects_that_were_not_read_are_distinguished_by_name(stage: ControllerStage) -> None:
    ctx = await context(stage)
    for name in ("a", "b"):
        await stage.user.create(widget(name))
        made_up = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}}
        await ctx.status(made_up, note="the same", conditions=[READY])
    found = await stage.user.get(DICTS, "b")
    assert found["status"]["note"] == "the same"


@staged
async def test_an_object_that_is_read_again_after_a_conflict_is_taken_as_it_is_then(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    await ctx.status(each, conditions=[READY])
    await stage.user.patch(Widget, "a", MergePatch({"metadata": {"labels": {"changed": "meanwhile"}}}))
    other = Condition(type="Other", status="True", reason="Why")
    with pytest.raises(Conflict):
        await ctx.status(each, conditions=[other])
    await ctx.status(await stage.user.get(Widget, "a"), conditions=[other])
    assert [one["type"] for one in (await stage.user.get(DICTS, "a"))["status"]["conditions"]] == ["Ready", "Other"]


@staged
async def test_dicts_have_a_status_too(stage: ControllerStage) -> None:
    ctx = await context(stage)
    await stage.user.create(widget("a"))
    each = await stage.user.get(DICTS, "a")
    await ctx.status(each, available_replicas=3, conditions=[READY])
    status = (await stage.user.get(DICTS, "a"))["status"]
    assert status["availableReplicas"] == 3
    assert "observedGeneration" not in status
    assert status["conditions"][0]["observedGeneration"] == 1
    assert each["status"] == status
    await ctx.status(each, available_replicas=3, conditions=[READY])
    assert len(stage.transport.writes()) == 1


@staged
async def test_a_condition_keeps_the_time_of_its_transition(stage: ControllerStage) -> None:
    ctx = await context(stage, Widget)
    each = await stage.user.create(widget("a"))
    began = ctx.now()
    await ctx.status(each, conditions=[READY])
    await stage.settle(60)
    each = await stage.client.get(Widget, "a")
    await ctx.status(each, conditions=[Condition(type="Ready", status="True", reason="AllUp", message="still")])
    condition = find_condition(await stage.user.get(Widget, "a"), "Ready")
    assert condition is not None
    assert condition.last_transition_time == Time.parse(str(began))
    assert (condition.message, condition.observed_generation) == ("still", 1)
    await stage.settle(60)
    each = await stage.client.get(Widget, "a")
    await ctx.status(each, conditions=[Condition(type="Ready", status="False", reason="Down")])
    condition = find_condition(await stage.user.get(Widget, "a"), "Ready")
    assert condition is not None
    assert condition.last_transition_time is not None
    assert condition.last_transition_time > began


@staged
async def test_a_change_of_conditions_is_refused_if_the_object_has_changed(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    changed = await stage.user.get(Widget, "a")
    changed.spec.size = 5
    await stage.user.update(changed)
    await ctx.status(each, ready=1)
    stale = await stage.user.create(widget("b"))
    changed = await stage.user.get(Widget, "b")
    changed.spec.size = 5
    await stage.user.update(changed)
    with pytest.raises(Conflict):
        await ctx.status(stale, conditions=[READY])


@staged
async def test_two_writes_of_one_reconcile_do_not_meet(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    await ctx.status(each, conditions=[READY])
    await ctx.status(each, conditions=[Condition(type="Synced", status="True", reason="Yes")])
    found = await stage.user.get(Widget, "a")
    assert found.status is not None
    assert [condition.type for condition in found.status.conditions] == ["Ready", "Synced"]


@staged
async def test_an_invalid_status_field_is_named(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    with pytest.raises(TypeError, match=r"Widget default/a: status has no field 'redy'; fields are conditions, note"):
        await ctx.status(each, redy=1)
    with pytest.raises(TypeError, match="class ConfigMap has no status"):
        await ctx.status(await stage.user.create(config_map("a")), ready=1)
    with pytest.raises(TypeError, match=r"Widget default/a: read as metadata only, .*; read the whole object"):
        await ctx.status(await stage.user.get(MetadataOf(Widget), "a"), ready=1)
    with pytest.raises(TypeError, match=r"ctx.status\(\) needs the object in a reconciler that takes requests"):
        await ctx.status(ready=1)


@staged
async def test_structs_and_times_are_written_as_they_are_on_the_wire(stage: ControllerStage) -> None:
    ctx = await context(stage)
    each = await stage.user.create(widget("a"))
    await stage.user.get(DICTS, "a")
    as_dict = await stage.user.get(DICTS, "a")
    await ctx.status(as_dict, last_seen=ctx.now(), spec_seen=each.spec, parts=[READY])
    status = (await stage.user.get(DICTS, "a"))["status"]
    assert status["lastSeen"] == str(ctx.now())
    assert status["specSeen"] == {}
    assert status["parts"][0]["type"] == "Ready"


# Finalizers


@staged
async def test_a_finalizer_is_put_on_and_taken_away_after_the_clean_up(stage: ControllerStage) -> None:
    steps: list[str] = []

    @controller(Widget)
    async def widgets(each: Widget, ctx: Context) -> None:
        async with ctx.finalizer(each, "example.dev/cleanup") as deleting:
            if deleting:
                steps.append("clean up")
                return
            steps.append(f"work {each.metadata.finalizers}")
            await ctx.status(note="here")

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
        assert (await stage.user.get(Widget, "a")).metadata.finalizers == ["example.dev/cleanup"]
        await stage.user.delete(Widget, "a")
        await stage.settle()
        assert await stage.user.get(Widget, "a", missing=None) is None
    assert steps[0] == "work ['example.dev/cleanup']"
    assert steps[-1] == "clean up"
    assert stage.log.texts() == []


@staged
async def test_a_clean_up_that_fails_keeps_the_finalizer_and_is_tried_again(stage: ControllerStage) -> None:
    tries: list[int] = []

    @controller(Widget)
    async def widgets(each: Widget, ctx: Context) -> None:
        async with ctx.finalizer(each, "example.dev/cleanup") as deleting:
            if deleting:
                tries.append(1)
                if len(tries) < 3:
                    raise OSError("the provider is down")

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
        await stage.user.delete(Widget, "a")
        await stage.settle()
        assert await stage.user.get(Widget, "a", missing=None) is None
    assert len(tries) == 3


@staged
async def test_other_finalizers_stay_and_dicts_have_them_too(stage: ControllerStage) -> None:
    ctx = await context(stage)
    made = widget("a")
    made.metadata.finalizers = ["example.dev/other"]
    await stage.user.create(made)
    each = await stage.user.get(DICTS, "a")
    async with ctx.finalizer(each, "example.dev/mine") as deleting:
        assert not deleting
    assert each["metadata"]["finalizers"] == ["example.dev/other", "example.dev/mine"]
    await stage.user.delete(Widget, "a")
    each = await stage.user.get(DICTS, "a")
    async with ctx.finalizer(each, "example.dev/mine") as deleting:
        assert deleting
    assert (await stage.user.get(Widget, "a")).metadata.finalizers == ["example.dev/other"]
    async with ctx.finalizer(each, "example.dev/mine") as deleting:
        assert deleting


@staged
async def test_a_status_of_a_deleted_object_is_not_an_error(stage: ControllerStage) -> None:
    ctx = await context(stage)
    made = widget("a")
    made.metadata.finalizers = ["example.dev/mine"]
    await stage.user.create(made)
    await stage.user.delete(Widget, "a")
    each = await stage.user.get(Widget, "a")
    async with ctx.finalizer(each, "example.dev/mine") as deleting:
        assert deleting
        freed = await stage.user.get(Widget, "a")
        freed.metadata.finalizers = []
        await stage.user.update(freed)


@pytest.mark.parametrize("kind", [Widget, DICTS])
def test_a_run_that_writes_the_status_and_then_the_finalizers_is_not_in_conflict_with_itself(kind: Any) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        ctx = await context(stage)
        await stage.user.create(widget("a"))
        each = await stage.user.get(kind, "a")
        await ctx.status(each, note="new", conditions=[READY])
        async with ctx.finalizer(each, "example.dev/mine"):
            await ctx.status(each, note="worked", conditions=[Condition(type="Ready", status="False", reason="NotYet")])
        await stage.user.delete(Widget, "a")
        ctx = await context(stage)
        each = await stage.user.get(kind, "a")
        async with ctx.finalizer(each, "example.dev/mine") as deleting:
            assert deleting
            await ctx.status(each, note="deleted", conditions=[READY])
        assert await stage.user.get(Widget, "a", missing=None) is None

    play()


@staged
async def test_changes_of_others_before_the_runs_own_write_are_kept(stage: ControllerStage) -> None:
    ctx = await context(stage)
    await stage.user.create(widget("a"))
    each = await stage.user.get(Widget, "a")
    theirs = await stage.user.get(Widget, "a")
    theirs.metadata.finalizers = ["example.dev/theirs"]
    theirs.spec.size = 7
    await stage.user.update(theirs)
    await ctx.status(each, note="seen")  # changes no condition, so it is not guarded by a version
    async with ctx.finalizer(each, "example.dev/mine"):
        pass
    assert each.metadata.finalizers == ["example.dev/theirs", "example.dev/mine"]
    now = await stage.user.get(Widget, "a")
    assert (now.metadata.finalizers, now.spec.size) == (["example.dev/theirs", "example.dev/mine"], 7)
    with pytest.raises(Conflict):  # what is in hand is still what was read
        await stage.user.update(each)


@pytest.mark.parametrize("name", ["", "cleanup", "a b/c", "-/x"])
def test_a_finalizer_has_the_name_of_a_domain(name: str) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        ctx = await context(stage)
        each = await stage.user.create(widget("a"))
        with pytest.raises(ValueError, match="is not a valid finalizer"):
            async with ctx.finalizer(each, name):
                pass

    play()


# And more


@staged
async def test_a_context_has_the_request_and_the_object(stage: ControllerStage) -> None:
    seen: list[Any] = []

    @controller(Widget)
    async def widgets(each: Widget, ctx: Context) -> None:
        ctx.event(each, "Seen", "a widget", related=each)
        seen.append((ctx.request, ctx.name, ctx.object is each, ctx.reconcile.attempt, ctx.world is stage.world))

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
    assert seen == [(Request("default", "a"), "widgets", True, 1, True)]
    assert stage.recorder.events == [("Normal", "Seen", "a widget")]
    assert await stage.user.get(ConfigMap, "a", missing=None) is None
