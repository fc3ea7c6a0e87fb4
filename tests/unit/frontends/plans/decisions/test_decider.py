"""Decisions are recorded with all that they depend on, and replayed with the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.frontends.plans.conftest import INSTANCE, Reach, make_package

from ostinato.frontends.kernel.recording import DIRECTORY, recordings, replayed
from ostinato.frontends.plans import PlanController
from ostinato.frontends.plans.api import OperatorVersion
from ostinato.frontends.plans.installing import Plans

OPERATOR = """
name: web
operatorVersion: 1.0.0
tasks: [{name: nothing, kind: Dummy, spec: {done: true}}]
plans:
  deploy: {phases: [{name: main, steps: [{name: nothing, tasks: [nothing]}]}]}
"""


async def test_a_run_is_recorded_before_it_has_effects(cluster: Any, manager: Any, client: Any, clock: Any) -> None:
    await manager.start(PlanController())
    await Plans(client, "default", lambda _: None).install(make_package(OPERATOR), name="web")
    before = (await client.get(OperatorVersion, "web-1.0.0")).metadata.resource_version
    states: list[tuple[str, str]] = []
    async with client.watch(INSTANCE, namespace="default", since=before) as events:
        async for event in events:
            plan = (event.object.get("status") or {}).get("planStatus", {}).get("deploy")
            if plan is not None:
                states.append((plan["status"], plan["uid"]))
                if plan["status"] == "COMPLETE":
                    break
    assert [state for state, _ in states] == ["PENDING", "COMPLETE"]
    assert states[0][1] == states[1][1] != ""


async def test_decisions_are_recorded_and_replayed(
    cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    controller = PlanController()
    await manager.start(controller)
    await Plans(client, "default", lambda _: None).install(make_package(OPERATOR), name="web")
    await reach("web", "deploy", "COMPLETE")
    monkeypatch.delenv(DIRECTORY)
    found = [each for _, each in recordings(tmp_path)]
    assert found[0].result is not None
    assert found[0].result.events[0].note == "Execution of plan deploy started: the instance is new"
    decider = PlanController().deciders()["plans"]
    assert [await replayed(each, decider) for each in found] == [""] * len(found)
    found[0].request.trigger.data["uid"] = "another"
    assert "another" in await replayed(found[0], decider)
