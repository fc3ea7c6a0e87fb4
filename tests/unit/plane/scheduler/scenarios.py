"""Scheduler scenarios: nodes and Pods on a server, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.scheduler import fixture

from ostinato.api.codec import from_dict
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.kinds.scheduling_v1 import PriorityClass
from ostinato.plane import scheduler
from ostinato.plane.scheduler import Profile


def run_scenario(
    scene: Callable[[Stage], Awaitable[None]], *profiles: Profile, controllers: tuple[str, ...] = ()
) -> None:
    """Run a scenario with the scheduler, in virtual time."""

    async def whole(stage: Stage) -> None:
        stage.run(lambda manager: scheduler.add_to(manager, *profiles))
        await scene(stage)

    on_stage(whole, *controllers)


async def add_node(stage: Stage, name: str, **given: Any) -> None:
    """Create a ready node."""
    wanted = fixture.node(name, **given)
    await stage.client.create(from_dict(Node, wanted))
    await stage.client.patch(Node, name, MergePatch({"spec": {"taints": wanted["spec"]["taints"] or None}}))


async def add_pod(stage: Stage, name: str, **given: Any) -> Pod:
    return await stage.client.create(from_dict(Pod, fixture.pod(name, **given)))


async def where(stage: Stage, name: str) -> str:
    found = await stage.client.get(Pod, name)
    assert found.spec is not None
    return found.spec.node_name or ""


async def placed(stage: Stage, name: str) -> str:
    return await stage.until(lambda: where(stage, name))


async def why(stage: Stage, name: str) -> tuple[str, str]:
    """Return reason and message of the condition PodScheduled=False."""
    found = await stage.client.get(Pod, name)
    for each in (found.status.conditions if found.status else None) or []:
        if each.type == "PodScheduled" and each.status == "False":
            return each.reason or "", each.message or ""
    return "", ""


async def finish(stage: Stage, name: str) -> None:
    await stage.set_pod_status(await stage.client.get(Pod, name), phase="Succeeded")


async def priority(stage: Stage, name: str, value: int, **given: Any) -> None:
    await stage.client.create(from_dict(PriorityClass, {"metadata": {"name": name}, "value": value, **given}))
