"""Objects that cannot be decoded: lists and watches skip and report them, or raise if they are strict."""

from __future__ import annotations

import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS, Widget

from ostinato.api.codec import ObjectError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch, Unstructured

RAW = Unstructured.of("example.dev/v1", "Widget")


async def _widgets(stage: Stage) -> None:
    """Create the readable widgets a and c, and b with a text as size."""
    await stage.client.create(WIDGETS)
    for name in ("a", "c"):
        await stage.client.create(Widget(metadata=ObjectMeta(name=name)))
    await _unreadable(stage, "b")


async def _unreadable(stage: Stage, name: str) -> None:
    metadata = {"name": name, "namespace": "default"}
    await stage.client.create(
        {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": "large"}}
    )


def _reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith("unreadable object skipped")]


def test_a_list_skips_an_unreadable_object_and_reports_it_once_per_version(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: Stage) -> None:
        await _widgets(stage)
        for _ in range(3):
            assert [each.metadata.name for each in await stage.client.list(Widget)] == ["a", "c"]
        assert [each.metadata.name async for each in stage.client.list(Widget, page_size=1)] == ["a", "c"]
        assert len(_reports(caplog)) == 1
        await stage.client.patch(RAW, "b", MergePatch({"spec": {"text": "x"}}))
        await stage.client.list(Widget)
        await stage.client.list(Widget)
        assert stage.client.unreadable.counts == {GroupVersionKind("example.dev", "v1", "Widget"): 2}

    play()
    reports = _reports(caplog)
    assert len(reports) == 2
    assert "object='Widget default/b' resourceVersion=" in reports[0]
    assert "Widget default/b: spec.size: " in reports[0]


@staged
async def test_a_strict_list_raises(stage: Stage) -> None:
    await _widgets(stage)
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        await stage.client.list(Widget, strict=True)
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        [each async for each in stage.client.list(Widget, strict=True)]


@staged
async def test_a_get_of_an_unreadable_object_raises(stage: Stage) -> None:
    await _widgets(stage)
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        await stage.client.get(Widget, "b")
    assert (await stage.client.get(RAW, "b"))["spec"] == {"size": "large"}


@staged
async def test_a_watch_skips_unreadable_objects_and_continues(stage: Stage) -> None:
    await _widgets(stage)
    async with stage.client.watch(Widget) as events:
        assert [(await anext(events)).object.metadata.name for _ in range(2)] == ["a", "c"]
        await _unreadable(stage, "d")
        await stage.client.create(Widget(metadata=ObjectMeta(name="e")))
        event = await anext(events)
        assert (event.type, event.object.metadata.name) == ("ADDED", "e")
        assert events.resource_version == event.object.metadata.resource_version


@staged
async def test_a_strict_watch_raises(stage: Stage) -> None:
    await _widgets(stage)
    async with stage.client.watch(Widget, strict=True) as events:
        with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
            await anext(events)


@staged
async def test_waiting_for_an_unreadable_object_raises(stage: Stage) -> None:
    await _widgets(stage)
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        await stage.client.wait_for(Widget, "b", "Ready", timeout=60)
