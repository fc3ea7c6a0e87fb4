from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes, running

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.cache import CachedClient
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import ReplicaSet
from ostinato.kinds.core_v1 import ConfigMap, Event, Pod, ServiceAccount

CONTROLLER = "replicaset-controller"


def replica_set(replicas: int = 3, name: str = "web", pod: dict[str, Any] | None = None, **spec: Any) -> ReplicaSet:
    wanted: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}], **(pod or {})},
        },
        **spec,
    }
    return from_dict(ReplicaSet, {"metadata": {"name": name}, "spec": wanted})


def a_pod(name: str, **metadata: Any) -> Pod:
    return from_dict(
        Pod,
        {
            "metadata": {"name": name, "labels": {"app": "web"}, **metadata},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    )


async def change(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(ReplicaSet, "web", MergePatch({"spec": spec}))


async def pods(stage: Stage) -> list[Pod]:
    return sorted(await stage.client.list(Pod), key=lambda pod: pod.metadata.name)


async def names(stage: Stage) -> list[str]:
    return [pod.metadata.name for pod in await pods(stage)]


async def status(stage: Stage, name: str = "web") -> dict[str, Any]:
    return to_dict((await stage.client.get(ReplicaSet, name)).status)


def owners(pod: Pod) -> list[str]:
    return [reference.name for reference in pod.metadata.owner_references]


def test_it_creates_pods_and_counts_them_in_the_status() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(replica_set())
        await stage.settle()
        made = await pods(stage)
        assert [pod.metadata.generate_name for pod in made] == ["web-"] * 3
        assert all(pod.metadata.labels == {"app": "web"} for pod in made)
        [reference] = made[0].metadata.owner_references
        assert (reference.kind, reference.name, reference.controller) == ("ReplicaSet", "web", True)
        assert reference.block_owner_deletion
        assert await status(stage) == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        }
        told = await stage.events("web")
        assert sorted(told) == [("SuccessfulCreate", f"Created pod: {name}") for name in await names(stage)]

    on_stage(play, CONTROLLER)


def test_at_rest_it_writes_nothing() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(replica_set())
        await stage.client.create(replica_set(2, "next", selector={"matchLabels": {"app": "web"}}))
        await stage.settle(30)
        before = stage.version
        await stage.world.clock.sleep(1800)  # before events expire
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_irrelevant_pod_changes_cause_no_writes() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(replica_set(2))
        await stage.settle()
        version = (await stage.client.get(ReplicaSet, "web")).metadata.resource_version
        for pod in await pods(stage):
            await stage.client.patch(Pod, pod.metadata, MergePatch({"metadata": {"annotations": {"seen": "yes"}}}))
            await stage.set_pod_status(pod, message="all is well")
        await stage.settle()
        assert (await stage.client.get(ReplicaSet, "web")).metadata.resource_version == version

    on_stage(play, CONTROLLER)


def test_it_scales_up_and_down_to_zero() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(replica_set(2))
        await stage.settle()
        first = await names(stage)
        await change(stage, replicas=7)
        await stage.settle()
        assert len(await pods(stage)) == 7
        assert set(first) < set(await names(stage))
        assert (await status(stage))["availableReplicas"] == 7
        await change(stage, replicas=0)
        await stage.settle()
        assert await pods(stage) == []
        assert await status(stage) == {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 3}
        assert {reason for reason, _ in await stage.events("web")} == {"SuccessfulCreate", "SuccessfulDelete"}

    on_stage(play, CONTROLLER)


def test_more_than_500_pods_are_created_in_several_syncs() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(1100))
        await stage.settle()
        assert len(await pods(stage)) == 1100
        assert (await status(stage))["replicas"] == 1100

    on_stage(play, CONTROLLER)


def test_pods_are_deleted_by_rank() -> None:
    async def play(stage: Stage) -> None:
        for name in ("a-ready", "b-dear", "c-waiting"):
            await stage.client.create(a_pod(name))
        for name in ("a-ready", "b-dear"):
            await stage.client.pods.bind(name, "node")
            await stage.set_pod_status(await stage.client.get(Pod, name), **running(stage))
        cost = {"controller.kubernetes.io/pod-deletion-cost": "10"}
        await stage.client.patch(Pod, "b-dear", MergePatch({"metadata": {"annotations": cost}}))
        await stage.client.create(replica_set(2))
        await stage.settle()
        assert await living(stage) == ["a-ready", "b-dear"]
        await change(stage, replicas=1)
        await stage.settle()
        assert await living(stage) == ["b-dear"]

    on_stage(play, CONTROLLER)


async def living(stage: Stage) -> list[str]:
    return [pod.metadata.name for pod in await pods(stage) if pod.metadata.deletion_timestamp is None]


def test_terminating_pods_are_counted_and_replaced_at_once() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(replica_set(2))
        await stage.settle()
        gone = (await names(stage))[0]
        nodes.linger(gone)
        await stage.client.delete(Pod, gone)
        await stage.settle()
        found = await status(stage)
        assert (found["replicas"], found["readyReplicas"], found["terminatingReplicas"]) == (2, 2, 1)
        await nodes.let_go(gone)
        await stage.settle()
        assert (await status(stage))["terminatingReplicas"] == 0

    on_stage(play, CONTROLLER)


def test_a_failed_pod_is_replaced_and_kept() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(replica_set(2))
        await stage.settle()
        failed = (await names(stage))[0]
        await nodes.fail(failed)
        await stage.settle()
        assert len(await pods(stage)) == 3
        assert failed in await names(stage)
        assert (await status(stage))["replicas"] == 2

    on_stage(play, CONTROLLER)


def test_orphans_are_adopted_and_pods_of_other_controllers_are_not() -> None:
    async def play(stage: Stage) -> None:
        other = await stage.client.create(from_dict(ConfigMap, {"metadata": {"name": "other"}}))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.metadata.uid}
        await stage.client.create(a_pod("orphan"))
        await stage.client.create(a_pod("owned", ownerReferences=[{**reference, "controller": True}]))
        await stage.client.create(a_pod("referred", ownerReferences=[reference]))
        await stage.client.create(a_pod("elsewhere", labels={"app": "db"}))
        await stage.client.create(replica_set(3))
        await stage.settle()
        found = {pod.metadata.name: owners(pod) for pod in await pods(stage)}
        assert found["orphan"] == ["web"]
        assert found["owned"] == ["other"]
        assert sorted(found["referred"]) == ["other", "web"]
        assert found["elsewhere"] == []
        assert len(found) == 5, "two are adopted, one is made"

    on_stage(play, CONTROLLER)


def test_a_later_orphan_is_adopted_and_a_surplus_pod_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(1))
        await stage.settle()
        await stage.client.create(a_pod("late", labels={"app": "db"}))
        await stage.settle()
        assert len(await pods(stage)) == 2
        await stage.client.patch(Pod, "late", MergePatch({"metadata": {"labels": {"app": "web"}}}))
        await stage.settle()
        [left] = await pods(stage)
        assert owners(left) == ["web"]
        assert (await status(stage))["replicas"] == 1

    on_stage(play, CONTROLLER)


def test_a_pod_whose_labels_no_longer_match_is_released_and_replaced() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(1))
        await stage.settle()
        [first] = await pods(stage)
        await stage.client.patch(Pod, first.metadata, MergePatch({"metadata": {"labels": {"app": "debug"}}}))
        await stage.settle()
        found = {pod.metadata.labels["app"]: owners(pod) for pod in await pods(stage)}
        assert found == {"debug": [], "web": ["web"]}

    on_stage(play, CONTROLLER)


def test_labels_beyond_the_selector_are_counted_apart() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(a_pod("plain"))
        template = {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        }
        await stage.client.create(replica_set(2, template=template))
        await stage.settle()
        found = await status(stage)
        assert (found["replicas"], found["fullyLabeledReplicas"]) == (2, 1)

    on_stage(play, CONTROLLER)


def test_a_pod_is_available_when_it_has_been_ready_for_long_enough() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(replica_set(2, minReadySeconds=60))
        await stage.settle()
        found = await status(stage)
        assert (found["readyReplicas"], found.get("availableReplicas")) == (2, None)
        await stage.world.clock.sleep(30)
        assert "availableReplicas" not in await status(stage)
        await stage.world.clock.sleep(31)
        assert (await status(stage))["availableReplicas"] == 2

    on_stage(play, CONTROLLER)


def test_rejected_pods_are_reported_and_retried_with_backoff() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(50, pod={"serviceAccountName": "missing"}))
        await stage.world.clock.sleep(600)
        found = await status(stage)
        [condition] = found["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "ReplicaFailure",
            "True",
            "FailedCreate",
        )
        why = 'pods "web-" is forbidden: error looking up service account default/missing'
        assert condition["message"].startswith(why)
        assert found["replicas"] == 0
        [(reason, note)] = await stage.events("web")
        assert reason == "FailedCreate"
        assert note.startswith(f"Error creating: {why}")
        [event] = await stage.client.list(Event)
        assert 5 < (event.count or 0) < 25, "one of fifty each time, and longer and longer pauses"

        await stage.client.create(from_dict(ServiceAccount, {"metadata": {"name": "missing"}}))
        await stage.settle(1000, limit=5000)
        assert len(await pods(stage)) == 50
        assert "conditions" not in await status(stage)

    on_stage(play, CONTROLLER)


def test_a_terminating_replica_set_creates_and_adopts_nothing() -> None:
    async def play(stage: Stage) -> None:
        wanted = replica_set(2)
        wanted.metadata.finalizers = ["example.dev/hold"]
        await stage.client.create(wanted)
        await stage.settle()
        await stage.client.delete(ReplicaSet, "web")
        for name in await names(stage):
            await stage.client.delete(Pod, name)
        await stage.client.create(a_pod("orphan"))
        await stage.settle()
        [left] = await pods(stage)
        assert owners(left) == []
        assert (await status(stage))["replicas"] == 0

    on_stage(play, CONTROLLER)


def test_two_replica_sets_with_equal_selectors_keep_their_own_pods() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(2))
        await stage.client.create(replica_set(3, "next"))
        await stage.settle()
        count = {"web": 0, "next": 0}
        for pod in await pods(stage):
            [owner] = owners(pod)
            count[owner] += 1
        assert count == {"web": 2, "next": 3}

    on_stage(play, CONTROLLER)


def test_a_restarted_controller_handles_missed_changes() -> None:
    async def play(stage: Stage) -> None:
        from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers

        await stage.client.create(replica_set(3))
        await stage.settle()
        await stage.stop_managers()
        for name in (await names(stage))[:2]:
            await stage.client.delete(Pod, name)
        await change(stage, replicas=4)
        others = set(CONTROLLERS) - {CONTROLLER}
        stage.run(lambda manager: add_controllers(manager, Options(), without=others))
        await stage.settle()
        assert len(await pods(stage)) == 4

    on_stage(play, CONTROLLER)


def test_a_rejected_deletion_is_reported_and_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise Forbidden.of(GroupResource("", "pods"), "web", "not today")

    async def play(stage: Stage) -> None:
        await stage.client.create(replica_set(2))
        await stage.settle()
        with monkeypatch.context() as patch:
            patch.setattr(CachedClient, "delete", refuse)
            await change(stage, replicas=1)
            await stage.world.clock.sleep(60)
        [condition] = (await status(stage))["conditions"]
        assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedDelete")
        why = 'pods "web" is forbidden: not today'
        assert condition["message"] == f"unable to delete pods: {why}"
        assert (await stage.events("web"))[-1] == ("FailedDelete", f"Error deleting: {why}")
        await stage.settle(120, limit=1000)
        assert len(await pods(stage)) == 1
        assert "conditions" not in await status(stage)

    on_stage(play, CONTROLLER)
