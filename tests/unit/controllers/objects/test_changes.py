"""`ctx.changed`: fields compared with the last successful reconcile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, WidgetSpec

from ostinato.api.meta import ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers import BlockingContext, Change, Context, Request, Result, controller, daemon, timer
from ostinato.controllers.objects.changes import Changes, LastReconciled
from ostinato.controllers.objects.essence import digest

KEY = Request("default", "a")


def widget(size: int = 1) -> Widget:
    return Widget(metadata=ObjectMeta(name="a", namespace="default"), spec=WidgetSpec(size=size))


async def patch(stage: ControllerStage, change: dict[str, Any], **options: Any) -> None:
    await stage.user.patch(Widget, KEY, MergePatch(change), **options)
    await stage.settle()


@staged
async def test_a_field_is_compared_with_the_last_reconcile_that_succeeded(stage: ControllerStage) -> None:
    seen: list[Any] = []
    fails = False

    @controller(Widget)
    async def widgets(widget: Widget, ctx: Context) -> None:
        size, text = ctx.changed("spec.size", int), ctx.changed("spec.text")
        seen.append((size.old, size.new, bool(size), bool(text), size.first))
        widget.spec.size = 99  # what is recorded is what was read
        if fails:
            raise ValueError("no")

    await stage.user.create(widget())
    async with stage.running(widgets):
        await stage.settle()
        assert seen == [(None, 1, True, True, True)]
        await patch(stage, {"spec": {"size": 2}})
        await patch(stage, {"metadata": {"labels": {"a": "b"}}})
        assert seen[1:] == [(1, 2, True, False, False), (2, 2, False, False, False)]
        fails = True
        await patch(stage, {"spec": {"size": 3}})
        fails = False
        await stage.settle(10)
        assert len(seen) > 4
        assert set(seen[3:]) == {(2, 3, True, False, False)}, "still a change when it is retried"
        await patch(stage, {"metadata": {"labels": {"a": "c"}}})
        assert seen[-1] == (3, 3, False, False, False)
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.user.create(widget(3))
        await stage.settle()
        assert seen[-1] == (None, 3, True, True, True), "another object of the same name"


@staged
async def test_a_path_that_is_not_asked_for_in_each_run_is_recorded_in_each(stage: ControllerStage) -> None:
    seen: list[Change[int]] = []

    @controller(Widget)
    def widgets(widget: Widget, ctx: BlockingContext) -> None:
        if widget.spec.text != "quiet":
            seen.append(ctx.changed("spec.size", int))

    await stage.user.create(widget())
    async with stage.running(widgets):
        await stage.settle()
        await patch(stage, {"spec": {"size": 2, "text": "quiet"}})
        await patch(stage, {"spec": {"size": 3, "text": ""}})
    assert [(each.old, each.new) for each in seen] == [(None, 1), (2, 3)]


@staged
async def test_a_reconciler_of_requests_passes_the_object(stage: ControllerStage) -> None:
    seen: list[Any] = []
    view = Unstructured.of("example.dev/v1", "Widget")

    @controller(view)
    async def widgets(request: Request, ctx: Context) -> None:
        found = await ctx.client.get(view, request)
        change = ctx.changed("spec.size", of=found)
        found["spec"]["size"] = 99
        seen.append((change.old, change.new))
        other = widget()
        other.metadata.name = "b"
        with pytest.raises(TypeError, match=r"needs the object .* pass of=widget"):
            ctx.changed("spec.size")
        with pytest.raises(ValueError, match=r"of Widget default/b, but default/a is reconciled"):
            ctx.changed("spec.size", of=other)

    await stage.user.create(widget())
    async with stage.running(widgets):
        await stage.settle()
        await patch(stage, {"spec": {"size": 2}})
    assert seen == [(None, 1), (1, 2)]


@staged
async def test_a_timer_compares_with_its_last_call(stage: ControllerStage) -> None:
    seen: list[Any] = []

    @timer(Widget, every=60)
    async def sizes(widget: Widget, ctx: Context) -> None:
        change = ctx.changed("spec.size")
        seen.append((change.old, change.new))

    await stage.user.create(widget())
    async with stage.running(sizes):
        await stage.settle()
        for size in (2, 3, 4):
            await patch(stage, {"spec": {"size": size}})
        await stage.settle(60)
    assert seen == [(None, 1), (1, 4)]


@staged
async def test_a_daemon_has_nothing_to_compare_with(stage: ControllerStage) -> None:
    errors: list[str] = []

    @daemon(Widget)
    async def daemons(widget: Widget, ctx: Context) -> None:
        with pytest.raises(TypeError, match="is for reconciles") as error:
            ctx.changed("spec.size")
        errors.append(str(error.value))

    await stage.user.create(widget())
    async with stage.running(daemons):
        await stage.settle()
    assert len(errors) == 1


def test_nothing_is_written_and_an_annotation_survives_a_restart_if_asked_for() -> None:
    for stored in (False, True):

        @staged
        async def play(stage: ControllerStage, stored: bool = stored) -> None:
            seen: list[Any] = []

            def made() -> Any:
                @controller(Widget, changes_annotation=stored)
                async def widgets(widget: Widget, ctx: Context) -> Result | None:
                    change = ctx.changed("spec.size", int)
                    seen.append((change.old, change.new, change.first))
                    return None

                return widgets

            await stage.user.create(widget())
            async with stage.running(made()):
                await stage.settle()
            version = (await stage.user.get(Widget, KEY)).metadata.resource_version
            async with stage.running(made()):
                await stage.settle()
            found = await stage.user.get(Widget, KEY)
            assert found.metadata.resource_version == version, "nothing changed"
            await patch(stage, {"spec": {"size": 2}})
            async with stage.running(made()):
                await stage.settle()
            if stored:
                assert seen == [(None, 1, True), (1, 1, False), (1, 2, False)], "and its writes do not run it"
                record = json.loads(found.metadata.annotations["changes.ostinato.dev/widgets"])
                assert record == {"uid": found.metadata.uid, "values": {"spec.size": 1}}
            else:
                assert [each[2] for each in seen] == [True, True, True]
                assert not found.metadata.annotations

        play()


@staged
async def test_a_damaged_or_copied_annotation_is_ignored(stage: ControllerStage) -> None:
    firsts: list[bool] = []

    @controller(Widget, changes_annotation=True)
    async def widgets(widget: Widget, ctx: Context) -> None:
        firsts.append(ctx.changed("spec.size", int).first)

    name = "changes.ostinato.dev/widgets"
    for text in ("{", "[]", '{"uid": 1, "values": 2}', '{"uid": "of another", "values": {"spec.size": 1}}'):
        made = widget()
        made.metadata.annotations = {name: text}
        await stage.user.create(made)
        async with stage.running(widgets):
            await stage.settle()
        assert '"values":{"spec.size":1}' in (await stage.user.get(Widget, KEY)).metadata.annotations[name]
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle()
    assert firsts == [True] * 4
    assert stage.log.texts() == []


def changes_of(path: str, *values: Any, as_type: Any = None) -> Change[Any]:
    """Return the change after successful reconciles with these values of an object's spec."""
    last = LastReconciled("test")
    change: Change[Any] | None = None
    for value in values:
        instance = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "uid": "1"}, "spec": value}
        changes = Changes(last, KEY)
        changes.begin(instance)
        change = changes.of(path, as_type, instance)
        changes.succeeded()
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("path", "before", "after", "old", "new"),
    [
        ("spec.poolSize", {"poolSize": 1}, {"poolSize": 2}, 1, 2),
        ("spec.pool_size", {"poolSize": 1}, {"poolSize": 2}, 1, 2),
        ("spec.keys[example.dev/a].b", {"keys": {"example.dev/a": {"b": 1}}}, {}, 1, None),
        ("spec.ports[1]", {"ports": [1, 2]}, {"ports": [1, 3]}, 2, 3),
        ("spec.ports[5]", {"ports": [1, 2]}, {"ports": [1, 3]}, None, None),
        ("spec", {"a": [1]}, {"a": [2]}, {"a": [1]}, {"a": [2]}),
        ("spec.a.b", {"a": 5}, {"a": {"b": 1}}, None, 1),
    ],
)
def test_paths(path: str, before: Any, after: Any, old: Any, new: Any) -> None:
    change = changes_of(path, before, after)
    assert (change.old, change.new, bool(change)) == (old, new, old != new)


@pytest.mark.parametrize("path", ["", ".", "spec.", "spec..a", "spec[", "spec[]", "spec]a", "a[b]c"])
def test_an_invalid_path_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="is not a field path"):
        changes_of(path, {})


def test_values_are_converted() -> None:
    change = changes_of("spec", {"size": 1}, {"size": 2}, as_type=WidgetSpec)
    assert (change.old, change.new) == (WidgetSpec(size=1), WidgetSpec(size=2))
    with pytest.raises(ValueError, match=r"Thing a: spec.size: Expected `int`, got `str`"):
        changes_of("spec.size", {"size": "x"}, as_type=int)
    change = changes_of("spec.size", {"size": 1}, as_type=int)
    assert (change.old, change.new, change.first) == (None, 1, True)


def test_the_essence_is_what_users_set() -> None:
    base: dict[str, Any] = {"kind": "T", "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"size": 1}}
    same = {**base, "status": {"x": 1}, "apiVersion": "v2"}
    same["metadata"] = {
        **base["metadata"],
        "resourceVersion": "5",
        "finalizers": ["x/y"],
        "annotations": {"changes.ostinato.dev/test": "{}"},
    }
    assert digest(base) == digest(same)
    for other in ({"spec": {"size": 2}}, {"metadata": {"annotations": {"a": "b"}}}, {"data": {"a": "b"}}):
        assert digest(base) != digest({**base, **other})
