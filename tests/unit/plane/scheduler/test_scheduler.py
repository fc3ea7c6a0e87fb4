from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.scheduler import fixture
from tests.unit.plane.scheduler.fixture import Json
from tests.unit.plane.scheduler.scenarios import add_node, add_pod, finish, placed, priority, run_scenario, where, why

from ostinato.api.codec import from_dict
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.plane import scheduler
from ostinato.plane.scheduler import DEFAULT, Profile, WeightedPlugin, default_plugins, filter_by

NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def test_a_pod_is_bound_and_an_event_recorded() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_pod(stage, "p")
        assert await placed(stage, "p") == "a"
        await stage.settle()
        assert await stage.events("p") == [("Scheduled", "Successfully assigned default/p to a")]

    run_scenario(scene)


def test_an_unschedulable_pod_has_a_condition_and_causes_no_further_writes() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", unschedulable=True)
        await add_pod(stage, "p")
        await stage.settle()
        message = f"0/1 nodes are available: 1 node(s) were unschedulable. {NOT_HELPFUL}"
        assert await why(stage, "p") == ("Unschedulable", message)
        assert await stage.events("p") == [("FailedScheduling", message)]
        before = stage.version
        await stage.world.clock.sleep(240)
        assert stage.version == before
        await stage.client.patch(Node, "a", MergePatch({"spec": {"unschedulable": None, "taints": None}}))
        assert await placed(stage, "p") == "a"

    run_scenario(scene)


def test_pods_wait_for_the_first_node() -> None:
    async def scene(stage: Stage) -> None:
        await add_pod(stage, "p")
        await stage.settle()
        assert await why(stage, "p") == ("Unschedulable", "no nodes available to schedule pods")
        before = stage.version
        await stage.world.clock.sleep(120)
        assert stage.version == before
        await add_node(stage, "a")
        assert await placed(stage, "p") == "a"

    run_scenario(scene)


def test_pods_fill_nodes_and_continue_when_capacity_is_freed() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", cpu="2")
        await add_node(stage, "b", cpu="2")
        for number in range(5):
            await add_pod(stage, f"p{number}", cpu="1")
        await stage.settle()
        nodes = [await where(stage, f"p{number}") for number in range(5)]
        assert Counter(nodes) == {"a": 2, "b": 2, "": 1}
        waiting = f"p{nodes.index('')}"
        assert (await why(stage, waiting))[1].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        done = f"p{nodes.index('b')}"
        await finish(stage, done)
        assert await placed(stage, waiting) == "b"
        conditions = (await stage.client.get(Pod, waiting)).status.conditions  # type: ignore[union-attr]
        assert [each.status for each in conditions or [] if each.type == "PodScheduled"] == ["True"]

    run_scenario(scene)


def test_a_deleted_pod_frees_capacity() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", cpu="1")
        await add_pod(stage, "one", cpu="1")
        await placed(stage, "one")
        await add_pod(stage, "two", cpu="1")
        await stage.settle()
        assert await where(stage, "two") == ""
        await stage.client.delete(Pod, "one", grace_period=0)
        assert await placed(stage, "two") == "a"

    run_scenario(scene)


def test_pods_with_a_node_name_or_another_scheduler_are_ignored() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", cpu="1")
        await add_pod(stage, "named", cpu="1", nodeName="a")
        await add_pod(stage, "other", schedulerName="somebody-else")
        await add_pod(stage, "ours", cpu="1")
        await stage.settle()
        assert await where(stage, "other") == ""
        assert await why(stage, "other") == ("", "")
        assert await where(stage, "ours") == ""  # the Pod with the node name uses the whole node
        assert await stage.events("named") == []

    run_scenario(scene)


def test_gates_hold_a_pod_back_until_the_last_is_gone() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_pod(stage, "p", schedulingGates=[{"name": "x.io/one"}, {"name": "x.io/two"}])
        await stage.settle()
        assert (await why(stage, "p"))[0] == "SchedulingGated"
        await stage.client.patch(Pod, "p", MergePatch({"spec": {"schedulingGates": [{"name": "x.io/two"}]}}))
        await stage.settle()
        assert await where(stage, "p") == ""
        await stage.client.patch(Pod, "p", MergePatch({"spec": {"schedulingGates": []}}))
        assert await placed(stage, "p") == "a"
        await stage.settle()
        assert [reason for reason, _ in await stage.events("p")] == ["Scheduled"]

    run_scenario(scene)


def test_a_new_toleration_makes_a_pod_schedulable() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", taints=[{"key": "hard", "effect": "NoSchedule"}])
        made = await add_pod(stage, "p")
        await stage.settle()
        assert await where(stage, "p") == ""
        assert made.spec is not None
        tolerations = [*board_tolerations(made), {"key": "hard", "operator": "Exists"}]
        await stage.client.patch(Pod, "p", MergePatch({"spec": {"tolerations": tolerations}}))
        assert await placed(stage, "p") == "a"

    run_scenario(scene)


def board_tolerations(made: Pod) -> list[Json]:
    from ostinato.api.codec import to_dict

    return list(to_dict(made)["spec"].get("tolerations", []))


def test_a_pod_of_high_priority_preempts_one_of_low_priority() -> None:
    async def scene(stage: Stage) -> None:
        await priority(stage, "high", 1000)
        await priority(stage, "low", 10)
        await add_node(stage, "a", cpu="2")
        low = await add_pod(stage, "low", cpu="2", priorityClassName="low")
        await placed(stage, "low")
        await stage.set_pod_status(low, phase="Running")
        high = await add_pod(stage, "high", cpu="2", priorityClassName="high")
        await stage.settle()
        displaced = await stage.client.get(Pod, "low")
        assert displaced.metadata.deletion_timestamp is not None
        assert displaced.status is not None
        reasons = {each.type: (each.reason, each.message) for each in displaced.status.conditions or []}
        assert reasons["DisruptionTarget"] == (
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        waiting = await stage.client.get(Pod, "high")
        assert waiting.status is not None
        assert waiting.status.nominated_node_name == "a"
        assert await why(stage, "high") == ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
        await add_pod(stage, "middle", cpu="1")
        await stage.client.delete(Pod, "low", grace_period=0)
        assert await placed(stage, "high") == "a"
        await stage.settle()
        taken = await stage.client.get(Pod, "high")
        assert taken.status is not None
        assert not taken.status.nominated_node_name
        assert await where(stage, "middle") == ""
        assert ("Preempted", f"Preempted by pod {high.metadata.uid} on node a") in await stage.events("low")

    run_scenario(scene)


def test_a_nomination_is_cleared_when_a_more_important_pod_is_nominated() -> None:
    async def scene(stage: Stage) -> None:
        for name, value in (("high", 1000), ("higher", 2000)):
            await priority(stage, name, value)
        await add_node(stage, "a", cpu="2")
        low = await add_pod(stage, "low", cpu="2")
        await placed(stage, "low")
        await stage.set_pod_status(low, phase="Running")
        await add_pod(stage, "high", cpu="2", priorityClassName="high")
        await stage.settle()
        await add_pod(stage, "higher", cpu="2", priorityClassName="higher")
        await stage.settle()
        await stage.client.delete(Pod, "low", grace_period=0)
        assert await placed(stage, "higher") == "a"
        await stage.settle()
        assert await where(stage, "high") == ""

    run_scenario(scene)


def test_a_restarted_scheduler_keeps_nominations() -> None:
    async def scene(stage: Stage) -> None:
        await priority(stage, "meek", 1000, preemptionPolicy="Never")
        await add_node(stage, "a", cpu="3")
        terminating = fixture.pod("going", cpu="2", nodeName="a")
        terminating["metadata"]["finalizers"] = ["example.com/wait"]
        await stage.client.create(from_dict(Pod, terminating))
        await stage.client.delete(Pod, "going")
        waiting = await add_pod(stage, "waiting", cpu="2", priorityClassName="meek")
        await stage.set_pod_status(waiting, nominatedNodeName="a")
        stage.run(scheduler.add_to)
        await add_pod(stage, "middle", cpu="1")
        await stage.settle()
        assert await where(stage, "middle") == ""
        await stage.client.patch(Pod, "going", MergePatch({"metadata": {"finalizers": None}}))
        await stage.client.delete(Pod, "going", grace_period=0, missing_ok=True)
        assert await placed(stage, "waiting") == "a"
        assert await placed(stage, "middle") == "a"

    on_stage(scene)


def test_several_profiles_schedule_with_their_own_names() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_node(stage, "b")
        for number in range(4):
            await add_pod(stage, f"p{number}", schedulerName="only-b")
        await add_pod(stage, "usual")
        await stage.settle()
        assert {await where(stage, f"p{number}") for number in range(4)} == {"b"}
        assert await where(stage, "usual") in ("a", "b")
        from ostinato.kinds.events_v1 import Event

        reporters = {each.regarding.name: _reporter(each) for each in await stage.client.list(Event) if each.regarding}
        assert reporters["p0"] == "only-b"
        assert reporters["usual"] == DEFAULT

    only_b = filter_by("only-b", lambda _, where_: None if where_.name == "b" else "not b")
    run_scenario(
        scene,
        Profile(DEFAULT, default_plugins()),
        Profile("only-b", (*default_plugins(), WeightedPlugin(only_b))),
    )


def _reporter(event: Any) -> str:
    source = event.deprecated_source
    return event.reporting_controller or (source.component if source is not None else "") or ""


def test_duplicate_profile_names_are_rejected() -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(ValueError, match="duplicate profile names"):
            stage.run(lambda manager: scheduler.add_to(manager, Profile("x", ()), Profile("x", ())))

    on_stage(scene)


def test_a_failing_plugin_affects_only_its_pods() -> None:
    def picky(info: Any, _: Any) -> str | None:
        if info.name == "odd":
            raise RuntimeError("who is that?")
        return None

    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_pod(stage, "odd")
        await add_pod(stage, "even")
        assert await placed(stage, "even") == "a"
        await stage.world.clock.sleep(5)
        assert await why(stage, "odd") == ("SchedulerError", "who is that?")
        assert ("FailedScheduling", "who is that?") in await stage.events("odd")

    run_scenario(scene, Profile(DEFAULT, (*default_plugins(), WeightedPlugin(filter_by("picky", picky)))))


def test_hundreds_of_pods_are_spread_evenly() -> None:
    async def scene(stage: Stage) -> None:
        for number in range(100):
            await add_node(stage, f"n{number}")
        for number in range(300):
            await add_pod(stage, f"p{number}", cpu="100m")
        await stage.settle(5)
        counts = Counter([each.spec.node_name for each in await stage.client.list(Pod) if each.spec])
        assert "" not in counts
        assert set(counts.values()) == {3}

    run_scenario(scene)
