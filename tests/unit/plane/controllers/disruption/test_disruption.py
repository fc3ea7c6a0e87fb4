from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes, running

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.errors import APIError
from ostinato.api.owners import controller_reference_to
from ostinato.api.time import Time
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import ReplicaSet, StatefulSet
from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import Pod
from ostinato.kinds.policy_v1 import PodDisruptionBudget

CONTROLLER = "disruption-controller"


def budget(name: str = "web", **spec: Any) -> PodDisruptionBudget:
    wanted = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return from_dict(PodDisruptionBudget, {"metadata": {"name": name}, "spec": wanted})


def pod(name: str, owner: Any = None, **labels: str) -> Pod:
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    made = from_dict(Pod, {"metadata": {"name": name, "labels": labels or {"app": "web"}}, "spec": spec})
    if owner is not None:
        made.metadata.owner_references = [controller_reference_to(owner)]
    return made


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
}


async def replicaset(stage: Stage, replicas: int) -> ReplicaSet:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    return await stage.client.create(from_dict(ReplicaSet, {"metadata": {"name": "web"}, "spec": spec}))


async def status(stage: Stage, name: str = "web") -> dict[str, Any]:
    return to_dict((await stage.client.get(PodDisruptionBudget, name)).status)


async def counts(stage: Stage) -> tuple[int, ...]:
    """Healthy, desired, allowed, expected."""
    found = await status(stage)
    return tuple(found[name] for name in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"))


async def condition(stage: Stage) -> tuple[str, str, str]:
    (found,) = (await status(stage))["conditions"]
    return found["status"], found["reason"], found["message"]


def test_min_available_counts_existing_pods() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        nodes.keep_unready("c")
        await stage.client.create(budget(minAvailable=2))
        for name in "abc":
            await stage.client.create(pod(name))
        await stage.settle()
        assert await counts(stage) == (2, 2, 0, 3)
        assert await condition(stage) == ("False", "InsufficientPods", "")
        await nodes.let_ready("c")
        await stage.settle()
        assert await counts(stage) == (3, 2, 1, 3)
        assert await condition(stage) == ("True", "SufficientPods", "")
        assert (await status(stage))["observedGeneration"] == 1

    on_stage(play, CONTROLLER)


def test_an_eviction_uses_the_budget_and_a_terminating_pod_is_not_healthy() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(budget(minAvailable=2))
        for name in "abc":
            await stage.client.create(pod(name))
        await stage.settle()
        nodes.linger("a")
        await stage.client.pods.evict("a")
        await stage.settle()
        found = await status(stage)
        assert await counts(stage) == (2, 2, 0, 3)
        assert "disruptedPods" not in found
        with pytest.raises(APIError, match="Cannot evict pod as it would violate the pod's disruption budget"):
            await stage.client.pods.evict("b")

    on_stage(play, CONTROLLER)


def test_a_percentage_refers_to_the_controllers_replicas() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        owner = await replicaset(stage, 4)
        await stage.client.create(budget(maxUnavailable="34%"))
        for name in "abcd":
            await stage.client.create(pod(name, owner))
        await stage.settle()
        assert await counts(stage) == (4, 2, 2, 4)
        await stage.client.patch(ReplicaSet, "web", MergePatch({"spec": {"replicas": 2}}))
        await stage.client.delete(Pod, "a")
        await stage.settle()
        assert await counts(stage) == (3, 1, 2, 2)

    on_stage(play, CONTROLLER)


def test_replicas_of_several_controllers_are_summed() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        spec = {
            "replicas": 3,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": TEMPLATE,
        }
        one = await replicaset(stage, 2)
        two = await stage.client.create(from_dict(StatefulSet, {"metadata": {"name": "db"}, "spec": spec}))
        await stage.client.create(pod("a", one))
        await stage.client.create(pod("b", one))
        await stage.client.create(pod("c", two))
        await stage.client.create(budget(minAvailable="50%"))
        await stage.settle()
        assert await counts(stage) == (3, 3, 0, 5)

    on_stage(play, CONTROLLER)


def test_unmanaged_pods_do_not_count_for_a_percentage_and_an_event_reports_them() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(pod("a"))
        await stage.client.create(budget(maxUnavailable=1))
        await stage.settle()
        assert await counts(stage) == (1, 0, 0, 0)
        (event,) = await stage.events("web")
        assert event[0] == "UnmanagedPods"
        assert event[1].startswith(
            "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: "
            "web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged."
        )

    on_stage(play, CONTROLLER)


def test_a_controller_without_scale_allows_no_disruptions_and_no_hot_loop() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        spec = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
        job = await stage.client.create(from_dict(Job, {"metadata": {"name": "job"}, "spec": spec}))
        await stage.client.create(pod("a", job))
        await stage.client.create(budget(maxUnavailable=1))
        await stage.settle()
        message = "jobs.batch does not implement the scale subresource"
        assert await condition(stage) == ("False", "SyncFailed", message)
        note = f"Failed to calculate the number of expected pods: {message}"
        assert ("CalculateExpectedPodCountFailed", note) in await stage.events("web")
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_a_deleted_controller_allows_no_disruptions() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        owner = await replicaset(stage, 1)
        await stage.client.create(pod("a", owner))
        await stage.client.delete(ReplicaSet, "web")
        await stage.client.create(budget(maxUnavailable=1))
        await stage.settle()
        assert await condition(stage) == ("False", "SyncFailed", 'found no controllers for pod "a"')

    on_stage(play, CONTROLLER)


def test_a_budget_without_pods_records_an_event() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(budget(minAvailable=1))
        await stage.settle()
        assert await counts(stage) == (0, 1, 0, 0)
        assert await stage.events("web") == [("NoPods", "No matching pods found")]

    on_stage(play, CONTROLLER)


def test_a_disrupted_pod_counts_again_if_not_deleted_within_two_minutes() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(budget(minAvailable=1))
        for name in "ab":
            await stage.client.create(pod(name))
        await stage.settle()
        since = str(Time.of(stage.world.clock.now()))
        granted = {"status": {"disruptedPods": {"a": since}, "disruptionsAllowed": 0}}
        await stage.client.patch(PodDisruptionBudget, "web", MergePatch(granted), subresource="status")
        await stage.settle()
        assert await counts(stage) == (1, 1, 0, 2)
        assert (await status(stage))["disruptedPods"] == {"a": since}
        await stage.world.clock.sleep(130)
        assert await counts(stage) == (2, 1, 1, 2)
        assert "disruptedPods" not in await status(stage)
        assert ("NotDeleted", "Pod was expected by PDB default/default to be deleted but it wasn't") in (
            await stage.events("a")
        )

    on_stage(play, CONTROLLER)


def test_a_pod_in_two_budgets_counts_in_both_and_an_event_warns() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(budget("one", minAvailable=1))
        await stage.client.create(budget("two", minAvailable=1))
        await stage.settle()
        await stage.client.create(pod("a"))
        await stage.settle()
        assert [(await status(stage, name))["currentHealthy"] for name in ("one", "two")] == [1, 1]
        note = 'Pod "default"/"a" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
        assert ("MultiplePodDisruptionBudgets", note) in await stage.events("a")

    on_stage(play, CONTROLLER)


def test_a_stale_disruption_target_condition_is_reset_after_two_minutes() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        for name in ("a", "b"):
            await stage.client.create(pod(name))
        await stage.settle()
        now = str(Time.of(stage.world.clock.now()))
        for name, reason in (("a", "EvictionByEvictionAPI"), ("b", "TerminationByKubelet")):
            target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": now}
            conditions = [*running(stage)["conditions"], target]
            await stage.set_pod_status(await stage.client.get(Pod, name), conditions=conditions)
        await stage.world.clock.sleep(100)
        assert await targets(stage) == {"a": "True", "b": "True"}
        await stage.world.clock.sleep(30)
        assert await targets(stage) == {"a": "False", "b": "True"}

    async def targets(stage: Stage) -> dict[str, str]:
        return {
            each.metadata.name: condition.status
            for each in await stage.client.list(Pod)
            for condition in each.status.conditions
            if condition.type == "DisruptionTarget"
        }

    on_stage(play, CONTROLLER)


def test_at_rest_nothing_is_written() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(budget(maxUnavailable=1))
        await stage.client.create(pod("a"))
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(timedelta(minutes=30).total_seconds())
        assert stage.version == before

    on_stage(play, CONTROLLER)
