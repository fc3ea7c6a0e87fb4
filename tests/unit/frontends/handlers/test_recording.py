"""Calls of handlers, recorded and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, on
from ostinato.client import MergePatch
from ostinato.frontends.handlers.operator import Handlers
from ostinato.frontends.kernel.recording import DIRECTORY, recordings, replayed
from ostinato.testing import Cluster, VirtualClock


def operator(factor: int, *, with_context: bool = False) -> Handlers:
    handlers = Handlers("test")

    @on.create("examples", registry=handlers)
    def created(spec: Any, patch: Any) -> Any:
        patch.status["double"] = spec["size"] * factor
        return {"message": "made"}

    @on.field("examples", field="spec.size", registry=handlers)
    async def sized(old: Any, new: Any, ctx: Any, patch: Any) -> None:
        if with_context:
            await ctx.sleep(1)
        if new == 13:
            raise ValueError("unlucky")
        patch.status["change"] = f"{old} to {new}"

    return handlers


async def test_calls_are_replayed_and_differences_shown(
    cluster: Cluster, client: Client, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.install(definition())
    with monkeypatch.context() as recording:
        recording.setenv(DIRECTORY, str(tmp_path))
        handlers = operator(2)
    manager = await cluster.manager().start(handlers)
    await client.create(example(size=2))
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 13}}))
    await clock.advance(1)
    assert manager.errors
    found = [recording for _, recording in recordings(tmp_path)]
    assert [each.request.trigger.data["handler"] for each in found] == ["created", "sized/spec.size", "sized/spec.size"]
    assert found[2].error == "ValueError: unlucky"
    decider = operator(2).deciders()["test"]
    assert [await replayed(each, decider) for each in found] == ["", "", ""]
    other = operator(3, with_context=True).deciders()["test"]
    assert '+          "double": 6' in await replayed(found[0], other)
    assert "ctx.sleep is not available in a replay" in await replayed(found[1], other)
    assert "there is no ['create'] handler 'created'" in await replayed(found[0], Handlers("test").deciders()["test"])
