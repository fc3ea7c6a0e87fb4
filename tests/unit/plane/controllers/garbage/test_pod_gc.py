"""Pod garbage collector."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.cache import Entry
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Node, Pod, ServiceAccount
from ostinato.plane.controllers.garbage.pod_gc import add_pod_gc
from ostinato.plane.objects.pod_state import PodState

GARBAGE = ("pod-garbage-collector-controller", "serviceaccount-controller")


async def begun(stage: Stage) -> None:
    await stage.until(lambda: stage.client.get(ServiceAccount, "default", missing=None))
    await stage.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})


async def bound(stage: Stage, name: str, node: str = "node", *finalizers: str) -> None:
    meta = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    spec = {"containers": [{"name": "a", "image": "a"}], "nodeName": node}
    await stage.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


async def names(stage: Stage) -> list[str]:
    return sorted(each.metadata.name for each in await stage.client.list(Pod))


def test_pods_of_a_deleted_node_are_deleted_after_the_quarantine_as_disrupted() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await bound(stage, "here")
        await bound(stage, "there", "gone", "a.b/hold")
        await stage.world.clock.sleep(35)
        assert (await stage.client.get(Pod, "there")).metadata.deletion_timestamp is None
        await stage.world.clock.sleep(30)
        pod = await stage.client.get(Pod, "there")
        assert pod.metadata.deletion_timestamp is not None
        assert pod.status.phase == "Failed"
        written = {each.type: (each.status, each.reason, each.message) for each in pod.status.conditions}
        assert written["DisruptionTarget"] == ("True", "DeletionByPodGC", "PodGC: node no longer exists")
        assert await names(stage) == ["here", "there"]

    on_stage(play, *GARBAGE)


def test_pods_of_a_node_that_is_recreated_in_time_are_kept() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await bound(stage, "here")
        await stage.client.delete(Node, "node")
        await stage.world.clock.sleep(30)
        await stage.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
        await stage.world.clock.sleep(300)
        assert await names(stage) == ["here"]

    on_stage(play, *GARBAGE)


def test_terminating_pods_on_an_out_of_service_node_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await stage.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}})
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        await stage.client.patch(Node, "node", MergePatch({"spec": {"taints": [taint]}}))
        for name, node in (("a", "node"), ("b", "node"), ("c", "other")):
            await bound(stage, name, node)
        for name in ("a", "c"):
            await stage.client.delete(Pod, name)
        await stage.world.clock.sleep(25)
        assert await names(stage) == ["b", "c"]

    on_stage(play, *GARBAGE)


def test_terminated_pods_above_the_threshold_are_deleted_evicted_ones_first() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        for number in range(6):
            await bound(stage, f"p{number}")
            await stage.world.clock.sleep(1)
            status: dict[str, Any] = {"phase": "Succeeded" if number != 4 else "Failed"}
            if number == 4:
                status["reason"] = "Evicted"
            if number != 5:
                await stage.set_pod_status(await stage.client.get(Pod, f"p{number}"), **status)
        stage.run(lambda manager: add_pod_gc(manager, terminated_threshold=2))
        await stage.settle()
        assert await names(stage) == ["p2", "p3", "p5"]

    on_stage(play, GARBAGE[1])


def test_pods_that_run_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    read = Entry.read

    def counted(entry: Entry, view: Any) -> Any:
        if view is PodState:
            decoded.append(entry.key.name)
        return read(entry, view)

    async def play(stage: Stage) -> None:
        await begun(stage)
        for number in range(4):
            await bound(stage, f"p{number}")
            await stage.set_pod_status(await stage.client.get(Pod, f"p{number}"), phase="Running")
        await stage.set_pod_status(await stage.client.get(Pod, "p0"), phase="Failed")
        monkeypatch.setattr(Entry, "read", counted)
        stage.run(lambda manager: add_pod_gc(manager, terminated_threshold=1))
        await stage.settle()
        assert decoded == []
        await stage.set_pod_status(await stage.client.get(Pod, "p1"), phase="Failed")
        await stage.world.clock.sleep(25)
        assert sorted(set(decoded)) == ["p0", "p1"]
        assert await names(stage) == ["p1", "p2", "p3"]

    on_stage(play, GARBAGE[1])


def test_at_rest_nothing_is_written() -> None:
    async def play(stage: Stage) -> None:
        await begun(stage)
        await bound(stage, "here")
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before

    on_stage(play, *GARBAGE)
