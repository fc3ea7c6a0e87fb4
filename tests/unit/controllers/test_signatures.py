"""Signatures of reconcilers that are rejected at the definition, with the fix."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.stage.kinds import Widget

from ostinato.controllers import BlockingContext, Builder, Context, Request, controller


async def by_name(ctx: Any, thing: Any) -> None: ...
async def by_annotation(c: Context, thing: Widget) -> None: ...
async def by_kind(c: Any, thing: Widget) -> None: ...
def plain(context, widget): ...  # type: ignore[no-untyped-def]
async def alone(ctx: Any) -> None: ...
async def text(ctx: "Context", each: "Unknown") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037


class Swapped:
    async def reconcile(self, ctx: Context, request: Request) -> None: ...


@pytest.mark.parametrize(
    ("function", "fix"),
    [
        (by_name, "async def by_name(thing, ctx)"),
        (by_annotation, "async def by_annotation(thing, c)"),
        (by_kind, "async def by_kind(thing, c)"),
        (plain, "def plain(widget, context)"),
        (text, "async def text(each, ctx)"),
        (Swapped(), "async def reconcile(self, request, ctx)"),
        (functools.partial(by_name), "async def by_name(thing, ctx)"),
    ],
)
def test_swapped_parameters_are_reported_with_the_fix(function: Any, fix: str) -> None:
    with pytest.raises(TypeError) as caught:
        Builder("x").watch_for(Widget).complete(function)
    assert str(caught.value).endswith(f"takes the context first; swap the parameters: {fix}")


def test_a_context_alone_is_reported() -> None:
    with pytest.raises(TypeError, match=r"takes only the context; the object is first: async def alone\(widget, ctx\)"):
        controller(Widget)(alone)


def test_an_object_may_be_called_context() -> None:
    async def annotated(ctx: Widget, it: Context) -> None: ...
    async def both(context: Any, ctx: Any) -> None: ...

    for function in (annotated, both):
        assert Builder("x").watch_for(Widget).complete(function).reconciler.is_async


def test_an_async_function_cannot_have_a_blocking_context() -> None:
    async def mixed(each: Widget, ctx: BlockingContext) -> None: ...

    problem = "mixed is an async def, and its context a Context: annotate it as Context and await its methods, or make"
    with pytest.raises(TypeError, match=problem):
        controller(Widget)(mixed)


def test_a_plain_function_has_its_context_second() -> None:
    def plainly(ctx: BlockingContext, request: Request) -> None: ...

    with pytest.raises(TypeError, match=r"swap the parameters: def plainly\(request, ctx\)"):
        controller(Widget)(plainly)
