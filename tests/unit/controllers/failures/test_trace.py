"""Tracebacks of failed reconciles begin and end with the user's code."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers import Context, controller
from ostinato.controllers.failures.trace import shorten
from ostinato.kinds.core_v1 import ConfigMap


async def reads(each: Widget, ctx: Context) -> None:
    await ctx.client.get(ConfigMap, "none")


def reads_in_a_thread(each: Widget, ctx: Any) -> None:
    ctx.client.get(ConfigMap, "none")


async def applies(each: Widget, ctx: Context) -> None:
    await ctx.apply(config_map("taken"), owner=each)


async def reads_the_unreadable(each: Widget, ctx: Context) -> None:
    await ctx.client.live.get(Widget, "unreadable")


async def in_a_group(each: Widget, ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(reads(each, ctx))
        group.create_task(applies(each, ctx))


async def from_another(each: Widget, ctx: Context) -> None:
    try:
        await reads(each, ctx)
    except NotFound as error:
        raise RuntimeError("no settings") from error


async def while_handling(each: Widget, ctx: Context) -> None:
    try:
        await reads(each, ctx)
    except NotFound:
        await applies(each, ctx)


async def calls_back(each: Widget, ctx: Context) -> None:
    await ctx.client.retry_on_conflict(lambda: reads(each, ctx))


async def takes_too_long(each: Widget, ctx: Context) -> None:
    await ctx.world.clock.sleep(1e6)


@pytest.mark.parametrize(
    ("function", "message", "lines"),
    [
        (reads, 'NotFound: configmaps "none" not found', ["reads"]),
        (reads_in_a_thread, 'NotFound: configmaps "none" not found', ["reads_in_a_thread"]),
        (applies, "ForeignObject: ConfigMap default/taken exists", ["applies"]),
        (reads_the_unreadable, "ObjectError: ", ["reads_the_unreadable"]),
        (in_a_group, "ExceptionGroup: ", ["in_a_group", "reads"]),
        (from_another, "RuntimeError: no settings", ["from_another", "reads"]),
        (while_handling, "ForeignObject: ", ["while_handling", "applies", "reads"]),
        (takes_too_long, "ReconcileTimeout: ", ["takes_too_long"]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_traceback_has_the_lines_of_the_user_only(function: Any, message: str, lines: list[str]) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        await stage.user.create(config_map("taken"))
        await stage.user.create(widget("a"))
        unreadable = {"apiVersion": "example.dev/v1", "kind": "Widget", "spec": {"size": "large"}}
        await stage.user.create({**unreadable, "metadata": {"name": "unreadable", "namespace": "default"}})
        async with stage.running(controller(Widget, name="bad", reconcile_timeout=30)(function)):
            await stage.settle(60)
        first = next(each for each in stage.log.records if "'Widget default/a' error=" in each.getMessage())
        assert message in first.getMessage()
        assert first.exc_info is not None
        assert first.exc_info[1] is not None
        shown = "".join(traceback.format_exception(first.exc_info[1]))
        assert "/src/ostinato/" not in shown
        for line in lines:
            assert f"in {line}\n" in shown

    play()


@staged
async def test_an_error_without_a_line_of_the_user_has_its_message_only(stage: ControllerStage) -> None:
    @controller(Widget)
    async def widgets(each: Widget, ctx: Context) -> None: ...

    unreadable = {"apiVersion": "example.dev/v1", "kind": "Widget", "spec": {"size": "large"}}
    await stage.user.create({**unreadable, "metadata": {"name": "unreadable", "namespace": "default"}})
    async with stage.running(widgets):
        await stage.settle()
    first = next(each for each in stage.log.records if "reconcile failed" in each.getMessage())
    assert "error=ObjectError: " in first.getMessage()
    assert first.exc_info is None


@staged
async def test_frames_between_two_of_the_users_are_kept(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    async with stage.running(controller(Widget, name="bad")(calls_back)):
        await stage.settle()
    first = next(each for each in stage.log.records if each.exc_info)
    assert first.exc_info is not None
    assert first.exc_info[1] is not None
    names = [frame.name for frame in traceback.extract_tb(first.exc_info[1].__traceback__)]
    assert (names[0], names[-1]) == ("calls_back", "reads")
    assert "retry_on_conflict" in names


def test_an_error_of_the_library_alone_is_not_changed() -> None:
    with pytest.raises((AttributeError, TypeError)) as caught:
        GroupVersionKind.of(3, "Pod")  # type: ignore[arg-type]
    before = caught.tb.tb_next
    assert before is not None
    assert not shorten(caught.value.with_traceback(before))
    assert caught.value.__traceback__ is before
