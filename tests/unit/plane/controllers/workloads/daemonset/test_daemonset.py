from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes, running

from ostinato.api.codec import from_dict, to_dict
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers

CONTROLLER = "daemonset-controller"


def daemonset(**spec: Any) -> DaemonSet:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "app", "image": "agent:1"}], **spec.pop("pod", {})},
    }
    wanted = {"selector": {"matchLabels": {"app": "agent"}}, "template": template, **spec}
    return from_dict(DaemonSet, {"metadata": {"name": "agent"}, "spec": wanted})


async def add_nodes(stage: Stage, *names: str, taints: Any = (), **labels: str) -> None:
    for name in names:
        node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}}
        await stage.client.create(from_dict(Node, node))
        await stage.client.patch(Node, name, MergePatch({"spec": {"taints": list(taints) or None}}))


async def change(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(DaemonSet, "agent", MergePatch({"spec": spec}))


async def set_image(stage: Stage, image: str) -> None:
    await change(stage, template={"spec": {"containers": [{"name": "app", "image": image}]}})


async def places(stage: Stage) -> list[str]:
    return sorted(pod.spec.node_name or "?" for pod in await stage.client.list(Pod))


async def images(stage: Stage) -> dict[str, str]:
    return {pod.spec.node_name or "": pod.spec.containers[0].image or "" for pod in await stage.client.list(Pod)}


async def status(stage: Stage) -> dict[str, Any]:
    return to_dict((await stage.client.get(DaemonSet, "agent")).status)


async def pod_on(stage: Stage, node: str) -> Pod:
    return next(pod for pod in await stage.client.list(Pod) if pod.spec.node_name == node)


def test_every_fitting_node_gets_a_pod_and_so_does_one_that_comes_later() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a", "b", disk="ssd")
        await add_nodes(stage, "c")
        await stage.client.create(daemonset(pod={"nodeSelector": {"disk": "ssd"}}))
        await stage.settle()
        assert await places(stage) == ["a", "b"]
        assert await status(stage) == {
            "currentNumberScheduled": 2,
            "desiredNumberScheduled": 2,
            "numberAvailable": 2,
            "numberMisscheduled": 0,
            "numberReady": 2,
            "observedGeneration": 1,
            "updatedNumberScheduled": 2,
        }
        await add_nodes(stage, "d", disk="ssd")
        await stage.settle()
        assert await places(stage) == ["a", "b", "d"]
        await stage.client.patch(Node, "a", MergePatch({"metadata": {"labels": {"disk": "hdd"}}}))
        await stage.settle()
        assert await places(stage) == ["b", "d"]
        assert (await status(stage))["desiredNumberScheduled"] == 2
        reasons = [reason for reason, _ in await stage.events("agent")]
        assert {"SuccessfulCreate", "SuccessfulDelete"} == set(reasons)

    on_stage(play, CONTROLLER)


def test_a_pod_is_pinned_to_its_node_and_has_the_daemon_tolerations() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a", zone="1")
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        await stage.client.create(daemonset(pod={"affinity": affinity}))
        await stage.settle()
        pod = await pod_on(stage, "a")
        assert pod.spec.affinity is not None
        fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
        assert to_dict(pod.spec.affinity) == {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}
            }
        }
        found = {(each.key, each.operator, each.effect) for each in pod.spec.tolerations}
        assert found == {
            (f"node.kubernetes.io/{name}", "Exists", effect)
            for name, effect in [
                ("not-ready", "NoExecute"),
                ("unreachable", "NoExecute"),
                ("disk-pressure", "NoSchedule"),
                ("memory-pressure", "NoSchedule"),
                ("pid-pressure", "NoSchedule"),
                ("unschedulable", "NoSchedule"),
            ]
        }
        revision = (await stage.client.list(ControllerRevision))[0]
        assert pod.metadata.labels == {
            "app": "agent",
            "controller-revision-hash": revision.metadata.labels["controller-revision-hash"],
            "pod-template-generation": "1",
        }

    on_stage(play, CONTROLLER)


def test_taints_prevent_and_evict_daemon_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "free")
        await add_nodes(stage, "tainted", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
        await stage.client.create(daemonset())
        await stage.settle()
        assert await places(stage) == ["free"]
        taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        await stage.client.patch(Node, "free", MergePatch({"spec": {"taints": [taint]}}))
        await stage.settle()
        assert await places(stage) == ["free"]
        await stage.client.patch(DaemonSet, "agent", MergePatch({"metadata": {"annotations": {"a": "b"}}}))
        await stage.settle()
        found = await status(stage)
        assert (found["desiredNumberScheduled"], found["numberMisscheduled"]) == (0, 1)
        await stage.client.patch(Node, "free", MergePatch({"spec": {"taints": [{**taint, "effect": "NoExecute"}]}}))
        await stage.settle()
        assert await places(stage) == []

    on_stage(play, CONTROLLER)


def test_a_cordoned_node_gets_daemon_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        await add_nodes(stage, "cordoned", taints=taints)
        await stage.client.create(daemonset())
        await stage.settle()
        assert await places(stage) == ["cordoned"]

    on_stage(play, CONTROLLER)


def test_an_update_replaces_one_pod_at_a_time() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await add_nodes(stage, "a", "b", "c")
        await stage.client.create(daemonset())
        await stage.settle()
        await set_image(stage, "agent:2")
        await stage.settle()
        assert await images(stage) == dict.fromkeys("abc", "agent:2")
        assert nodes.most_going == 1
        revisions = sorted(await stage.client.list(ControllerRevision), key=lambda each: each.revision)
        assert [each.revision for each in revisions] == [1, 2]
        found = await status(stage)
        assert (found["updatedNumberScheduled"], found["observedGeneration"]) == (3, 2)

    on_stage(play, CONTROLLER)


def test_an_update_stops_while_a_new_pod_is_not_ready() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await add_nodes(stage, "a", "b", "c")
        await stage.client.create(daemonset())
        await stage.settle()
        nodes.keep_all_unready = True
        await set_image(stage, "agent:2")
        await stage.settle()
        assert sorted((await images(stage)).values()) == ["agent:1", "agent:1", "agent:2"]
        nodes.keep_all_unready = False
        stuck = next(pod for pod in await stage.client.list(Pod) if pod.spec.containers[0].image == "agent:2")
        await stage.set_pod_status(stuck, **running(stage))
        await stage.settle()
        assert set((await images(stage)).values()) == {"agent:2"}

    on_stage(play, CONTROLLER)


def test_with_surge_the_old_pod_is_deleted_when_the_new_one_is_available() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await add_nodes(stage, "a", "b")
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await stage.client.create(daemonset(updateStrategy=strategy))
        await stage.settle()
        nodes.keep_all_unready = True
        await set_image(stage, "agent:2")
        await stage.settle()
        pods = [(pod.spec.node_name, pod.spec.containers[0].image) for pod in await stage.client.list(Pod)]
        assert sorted(image or "" for _, image in pods) == ["agent:1", "agent:1", "agent:2"]
        nodes.keep_all_unready = False
        new = next(pod for pod in await stage.client.list(Pod) if pod.spec.containers[0].image == "agent:2")
        await stage.set_pod_status(new, **running(stage))
        await stage.settle()
        assert await places(stage) == ["a", "b"]
        assert set((await images(stage)).values()) == {"agent:2"}

    on_stage(play, CONTROLLER)


def test_on_delete_only_deleted_pods_are_updated() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a", "b")
        await stage.client.create(daemonset(updateStrategy={"type": "OnDelete"}))
        await stage.settle()
        await set_image(stage, "agent:2")
        await stage.settle()
        assert await images(stage) == {"a": "agent:1", "b": "agent:1"}
        await stage.client.delete(Pod, (await pod_on(stage, "a")).metadata.name)
        await stage.settle()
        assert await images(stage) == {"a": "agent:2", "b": "agent:1"}

    on_stage(play, CONTROLLER)


def test_a_failed_daemon_pod_is_replaced_with_backoff() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset())
        await stage.settle()
        nodes.fail_all = True
        first = await pod_on(stage, "a")
        await nodes.fail(first.metadata.name)
        began = stage.world.clock.monotonic()
        await stage.world.clock.sleep(60)
        made = nodes.seen - 1
        assert 3 <= made <= 7, f"{made} in {stage.world.clock.monotonic() - began:g} s"
        reasons = [reason for reason, _ in await stage.events("agent")]
        assert "FailedDaemonPod" in reasons

    on_stage(play, CONTROLLER)


def test_a_succeeded_daemon_pod_is_replaced() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset())
        await stage.settle()
        first = await pod_on(stage, "a")
        await stage.set_pod_status(first, phase="Succeeded", conditions=[])
        await stage.settle()
        assert (await pod_on(stage, "a")).metadata.uid != first.metadata.uid
        assert "SucceededDaemonPod" in [reason for reason, _ in await stage.events("agent")]

    on_stage(play, CONTROLLER)


def test_of_two_pods_on_a_node_the_older_is_kept() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset())
        await stage.settle()
        first = await pod_on(stage, "a")
        await stage.world.clock.sleep(5)
        second = {"metadata": {"name": "second", "labels": first.metadata.labels}, "spec": to_dict(first.spec)}
        await stage.client.create(from_dict(Pod, second))
        await stage.settle()
        assert [pod.metadata.name for pod in await stage.client.list(Pod)] == [first.metadata.name]

    on_stage(play, CONTROLLER)


def test_an_unscheduled_pod_of_a_deleted_node_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        await add_nodes(stage, "a")
        await stage.client.create(daemonset())
        await stage.settle()
        assert await places(stage) == ["?"]
        await stage.client.delete(Node, "a")
        await stage.settle()
        assert await places(stage) == []
        assert (await status(stage))["desiredNumberScheduled"] == 0

    on_stage(play, CONTROLLER)


def test_availability_is_counted_after_the_seconds_of_readiness() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset(minReadySeconds=30))
        await stage.settle()
        found = await status(stage)
        assert (found["numberReady"], found["numberUnavailable"], "numberAvailable" in found) == (1, 1, False)
        await stage.world.clock.sleep(40)
        found = await status(stage)
        assert (found["numberAvailable"], "numberUnavailable" in found) == (1, False)

    on_stage(play, CONTROLLER)


def test_old_revisions_beyond_the_limit_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset(revisionHistoryLimit=1))
        for number in (2, 3, 4):
            await stage.settle()
            await set_image(stage, f"agent:{number}")
        await stage.settle()
        assert sorted(each.revision for each in await stage.client.list(ControllerRevision)) == [3, 4]

    on_stage(play, CONTROLLER)


def test_a_rejected_template_is_an_event_and_no_hot_loop() -> None:
    async def play(stage: Stage) -> None:
        await add_nodes(stage, *(f"node-{number}" for number in range(20)))
        await stage.client.create(daemonset(pod={"serviceAccountName": "nobody"}))
        await stage.world.clock.sleep(10)
        before = stage.version
        await stage.world.clock.sleep(60)
        assert stage.version - before < 15
        reason, note = (await stage.events("agent"))[0]
        assert reason == "FailedCreate"
        assert note.startswith('Error creating: pods "agent-')

    on_stage(play, CONTROLLER)


def test_at_rest_nothing_is_written() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a", "b")
        await stage.client.create(daemonset())
        await stage.settle()
        await stage.world.clock.sleep(700)
        before = stage.version
        await stage.world.clock.sleep(1800)
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_two_sets_with_equal_selectors_keep_their_own_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a", "b")
        await stage.client.create(daemonset())
        other = daemonset()
        other.metadata.name = "other"
        await stage.client.create(other)
        await stage.settle()
        assert await places(stage) == ["a", "a", "b", "b"]
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_a_flapping_node_keeps_its_daemon_pod() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await add_nodes(stage, "a")
        await stage.client.create(daemonset())
        await stage.settle()
        before = await pod_on(stage, "a")
        for number in range(20):
            taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
            taints = [taint, {**taint, "effect": "NoSchedule"}] if number % 2 == 0 else None
            await stage.client.patch(Node, "a", MergePatch({"spec": {"taints": taints}}))
            await stage.world.clock.sleep(1)
        await stage.settle()
        assert (await pod_on(stage, "a")).metadata.uid == before.metadata.uid

    on_stage(play, CONTROLLER)


@pytest.mark.parametrize("seed", range(5))
def test_a_restarted_controller_continues(seed: int) -> None:
    async def play(stage: Stage) -> None:
        rng = stage.world.rng.fork("stops")
        await add_nodes(stage, *"abcdef")
        await stage.client.create(daemonset())
        for step in range(8):
            start(stage)
            await stage.world.clock.sleep(rng.random() * 2)
            await stage.stop_managers()
            if step == 3:
                await set_image(stage, "agent:2")
            if step == 5:
                await stage.client.delete(Node, "a")
        start(stage)
        await stage.settle()
        pods = [pod for pod in await stage.client.list(Pod) if pod.spec.node_name != "a"]
        assert sorted(pod.spec.node_name or "" for pod in pods) == list("bcdef")
        assert {pod.spec.containers[0].image for pod in pods} == {"agent:2"}
        assert len(await stage.client.list(ControllerRevision)) == 2
        found = await status(stage)
        assert (found["desiredNumberScheduled"], found["numberAvailable"]) == (5, 5)

    def start(stage: Stage) -> None:
        stage.run(lambda manager: add_controllers(manager, Options(), without=set(CONTROLLERS) - {CONTROLLER}))
        Nodes(stage)

    on_stage(play, seed=seed)
