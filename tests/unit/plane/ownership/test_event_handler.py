from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage

from ostinato.api.codec import from_dict
from ostinato.api.owners import controller_reference_to
from ostinato.client import MergePatch
from ostinato.controllers import Request
from ostinato.kinds.apps_v1 import StatefulSet
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.ownership.event_handler import ForControllerRef


def statefulset(name: str, **selector: str) -> StatefulSet:
    spec: dict[str, Any] = {
        "serviceName": name,
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": selector}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}},
    }
    return from_dict(StatefulSet, {"metadata": {"name": name}, "spec": spec})


def pod(name: str, **labels: str) -> Pod:
    spec = {"containers": [{"name": "a", "image": "a:1"}]}
    return from_dict(Pod, {"metadata": {"name": name, "labels": labels}, "spec": spec})


class Asked:
    """A StatefulSet controller that records requests."""

    def __init__(self, stage: Stage) -> None:
        self._names: list[str] = []
        stage.run(
            lambda manager: (
                manager.build("asked")
                .watches(StatefulSet, map_to=lambda _: None)
                .watches(PodState, handler=ForControllerRef(StatefulSet))
                .complete(self)
            )
        )

    async def reconcile(self, request: Request) -> None:
        self._names.append(request.name)

    async def names(self, stage: Stage) -> list[str]:
        """Requests since the last call."""
        await stage.settle()
        found, self._names = sorted(set(self._names)), []
        return found


def test_a_pod_enqueues_its_controller_only() -> None:
    async def play(stage: Stage) -> None:
        one = await stage.client.create(statefulset("one", app="web"))
        await stage.client.create(statefulset("two", app="web"))
        asked = Asked(stage)
        mine = pod("a", app="web")
        mine.metadata.owner_references = [controller_reference_to(one)]
        await stage.client.create(mine)
        assert await asked.names(stage) == ["one"]
        await stage.client.patch(Pod, "a", MergePatch({"metadata": {"annotations": {"x": "y"}}}))
        assert await asked.names(stage) == ["one"]
        await stage.client.delete(Pod, "a", grace_period=0)
        assert await asked.names(stage) == ["one"]

    on_stage(play)


def test_a_pod_of_another_controller_kind_enqueues_nothing() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(statefulset("one", app="web"))
        owner = await stage.client.create(pod("owner"))
        asked = Asked(stage)
        other = pod("a", app="web")
        other.metadata.owner_references = [controller_reference_to(owner)]
        await stage.client.create(other)
        assert await asked.names(stage) == []

    on_stage(play)


def test_an_orphan_enqueues_all_matching_owners_when_added_or_relabelled() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(statefulset("one", app="web"))
        await stage.client.create(statefulset("two", app="web"))
        await stage.client.create(statefulset("three", app="db"))
        asked = Asked(stage)
        await stage.client.create(pod("a", app="web"))
        assert await asked.names(stage) == ["one", "two"]
        await stage.client.patch(Pod, "a", MergePatch({"metadata": {"annotations": {"x": "y"}}}))
        assert await asked.names(stage) == []
        await stage.client.patch(Pod, "a", MergePatch({"metadata": {"labels": {"app": "db"}}}))
        assert await asked.names(stage) == ["three"]
        await stage.client.delete(Pod, "a", grace_period=0)
        assert await asked.names(stage) == []

    on_stage(play)


def test_a_released_pod_enqueues_its_former_controller_and_matching_owners() -> None:
    async def play(stage: Stage) -> None:
        one = await stage.client.create(statefulset("one", app="web"))
        await stage.client.create(statefulset("two", app="db"))
        asked = Asked(stage)
        mine = pod("a", app="db")
        mine.metadata.owner_references = [controller_reference_to(one)]
        await stage.client.create(mine)
        assert await asked.names(stage) == ["one"]
        await stage.client.patch(Pod, "a", MergePatch({"metadata": {"ownerReferences": None}}))
        assert await asked.names(stage) == ["one", "two"]

    on_stage(play)
