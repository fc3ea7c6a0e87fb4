"""Writes to parents: only if something changes, and without losing what others know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import widget
from tests.unit.frontends.kernel.applier.sets import WIDGET

from ostinato.api.errors import Conflict
from ostinato.client import MergePatch, Unstructured
from ostinato.frontends.kernel.parents import ParentWriter
from ostinato.frontends.kernel.sync import Ready

Json = dict[str, Any]


async def parent(stage: ControllerStage) -> Json:
    return await stage.user.get(Unstructured(WIDGET), "a")


def condition(status: str, at: str) -> Json:
    return {"type": "Synced", "status": status, "reason": "R", "message": "m", "lastTransitionTime": at}


@staged
async def test_a_condition_keeps_its_time_while_its_status_is_the_same(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    writer, found = ParentWriter(stage.client, "test"), await parent(stage)
    await writer.status(found, {"conditions": [condition("True", "2026-01-01T00:00:00Z")]})
    writes = len(stage.transport.writes())
    await writer.status(found, {"conditions": [condition("True", "2026-01-02T00:00:00Z")]})
    assert len(stage.transport.writes()) == writes
    await writer.status(found, {"conditions": [condition("False", "2026-01-03T00:00:00Z")]})
    (written,) = (await parent(stage))["status"]["conditions"]
    assert (written["status"], written["lastTransitionTime"]) == ("False", "2026-01-03T00:00:00Z")


@staged
async def test_the_status_is_replaced_and_none_keeps_it(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    writer, found = ParentWriter(stage.client, "test"), await parent(stage)
    await writer.status(found, {"note": "x", "ready": 1})
    await writer.status(found, {"ready": 2}, ready=Ready(ready=False, reason="No"))
    await writer.status(found, None, ready=Ready(ready=True, reason="Yes"))
    status = (await parent(stage))["status"]
    assert (status["ready"], "note" in status, status["observedGeneration"]) == (2, False, 1)
    assert [(each["status"], each["reason"]) for each in status["conditions"]] == [("True", "Yes")]


@staged
async def test_the_status_of_another_object_of_the_same_name_is_not_written(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    writer, found = ParentWriter(stage.client, "test"), await parent(stage)
    await stage.user.delete(Unstructured(WIDGET), "a")
    await stage.user.create(widget("a"))
    with pytest.raises(Conflict):
        await writer.status(found, {"note": "of the first"})


@staged
async def test_the_status_is_written_over_changes_by_others(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    writer, found = ParentWriter(stage.client, "test"), await parent(stage)
    await stage.user.patch(Unstructured(WIDGET), "a", MergePatch({"metadata": {"labels": {"theirs": "1"}}}))
    await stage.user.patch(
        Unstructured(WIDGET), "a", MergePatch({"status": {"ready": 9, "note": "x"}}), subresource="status"
    )
    await writer.status(found, {"note": "mine"})
    now = await parent(stage)
    assert (now["status"], now["metadata"]["labels"]) == ({"note": "mine", "observedGeneration": 1}, {"theirs": "1"})


@staged
async def test_metadata_is_not_written_over_changes_that_were_not_seen(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    writer, found = ParentWriter(stage.client, "test"), await parent(stage)
    await stage.user.patch(Unstructured(WIDGET), "a", MergePatch({"metadata": {"finalizers": ["example.dev/theirs"]}}))
    with pytest.raises(Conflict):
        await writer.finalizer(found, "example.dev/mine", present=True)
    fresh = await parent(stage)
    await writer.finalizer(fresh, "example.dev/mine", present=True)
    await writer.metadata(fresh, {"a": "1"}, {"b": "2"})  # the same object, after its own write
    writes = len(stage.transport.writes())
    await writer.finalizer(fresh, "example.dev/mine", present=True)
    await writer.metadata(fresh, {"a": "1", "none": None}, {"b": "2"})
    assert len(stage.transport.writes()) == writes
    metadata = (await parent(stage))["metadata"]
    assert metadata["finalizers"] == ["example.dev/theirs", "example.dev/mine"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "1"}, {"b": "2"})
