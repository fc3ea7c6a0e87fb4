"""Why was this Deployment's Pod replaced? Answered on a control plane in virtual time, for each way it can happen."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.page.history.planes import Explained, ObservedPlane, deployment, on_plane

from ostinato.kinds.core_v1 import Pod

RECREATE = {"strategy": {"type": "Recreate"}}
SURGE = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 2}}}
ONE_BY_ONE = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
SEEDS = 20


def origin(why: Explained) -> tuple[str, str, str]:
    """Return type, author and object of the only origin."""
    (found,) = why.origins
    assert why.steps[-1] == found
    return found.type, str(found.who), str(found.write.ref) if found.write else str(found.why)


@pytest.mark.parametrize("spec", [{}, SURGE, RECREATE], ids=["RollingUpdate", "surge", "Recreate"])
def test_a_rollout_replaces_pods_because_of_the_edit(spec: dict[str, Any]) -> None:
    async def test(plane: ObservedPlane) -> None:
        old, new = await plane.roll_out(4, **spec)
        assert set(old).isdisjoint(new)
        for why in [*map(plane.deletion, old), *map(plane.creation, new)]:
            assert origin(why) == ("user", "bob", "Deployment default/web"), str(why)
            assert "web:1 → web:2" in why.steps[-1].write.summary
            assert why.steps[0].write.author == "replicaset-controller", str(why)

    on_plane(test)


@pytest.mark.parametrize("spec", [{}, SURGE, RECREATE], ids=["RollingUpdate", "surge", "Recreate"])
def test_the_reason_is_known_although_the_writes_of_pods_were_merged(spec: dict[str, Any]) -> None:
    async def test(plane: ObservedPlane) -> None:
        old, new = await plane.roll_out(4, **spec)
        created = [*map(plane.creation, new)]
        for why in created:  # the first state that was seen is that of a bound Pod
            assert "spec.nodeName" in [each.path for each in why.steps[0].write.diff]
        for why in [*created, *map(plane.request, old)]:
            assert origin(why) == ("user", "bob", "Deployment default/web"), str(why)
            assert why.steps[0].write.author == "replicaset-controller", str(why)

    on_plane(test, merges_pods=True)


def test_the_chain_of_a_long_rollout_reaches_the_edit_and_leaves_out_its_middle() -> None:
    async def test(plane: ObservedPlane) -> None:
        old, _ = await plane.roll_out(8, **ONE_BY_ONE)
        longest = max(map(plane.deletion, old), key=lambda why: len(why.steps))
        assert [step.n for step in longest.steps if step.type == "skipped"] != []
        assert len(longest.steps) <= 61
        assert origin(longest) == ("user", "bob", "Deployment default/web")

    on_plane(test)


@pytest.mark.parametrize("merges_pods", [False, True])
def test_a_deleted_pod_is_replaced_because_of_its_deletion_whatever_else_happens(*, merges_pods: bool) -> None:
    """Other Pods change their status, and the ReplicaSet is annotated, at the same time. Repeated: it is no race."""
    for seed in range(SEEDS):

        async def test(plane: ObservedPlane, seed: int = seed) -> None:
            before = await plane.deploy(3)
            victim, *others = (pod.metadata.name for pod in before)
            await plane.disturb(others, seed)
            await plane.client.delete(Pod, victim)
            await plane.disturb(others, seed)
            after = await plane.ready(3, frozenset({victim}))
            (new,) = {pod.metadata.name for pod in after} - {pod.metadata.name for pod in before}
            why = plane.creation(new)
            assert origin(why) == ("user", "unknown", f"Pod default/{victim}"), f"seed {seed}\n{why}"
            assert origin(plane.request(victim)) == ("user", "unknown", f"Pod default/{victim}"), f"seed {seed}"
            assert origin(plane.removal(victim)) == ("user", "unknown", f"Pod default/{victim}"), f"seed {seed}"

        on_plane(test, seed, merges_pods=merges_pods)


def test_pods_of_a_failed_node_are_replaced_because_it_sends_no_heartbeats() -> None:
    async def test(plane: ObservedPlane) -> None:
        before = await plane.deploy(3)
        victim, node = before[0].metadata.name, before[0].spec.node_name or ""
        plane.cut_off(node)
        new = await plane.another({pod.metadata.name for pod in before})
        for why in (plane.deletion(victim), plane.creation(new)):
            kind, who, text = origin(why)
            assert (kind, who) == ("reason", "node-controller"), str(why)
            assert text.startswith(f"node {node} has sent no heartbeat for "), str(why)
            authors = [step.write.author for step in why.steps if step.write]
            assert authors[-2:] == ["taint-eviction-controller", "node-controller"]

    on_plane(test)


def test_a_scaled_deployment_and_a_deleted_pod_in_one_run_are_both_causes() -> None:
    async def test(plane: ObservedPlane) -> None:
        before = await plane.deploy(3)
        first, second = (pod.metadata.name for pod in before[:2])
        async with plane.held("replicaset-controller"):
            await plane.client.delete(Pod, first)
            await plane.world.clock.sleep(1.0)  # its run waits for the answer to a write
            await plane.client.delete(Pod, second)
            await plane.client.apply(deployment(4), field_manager="bob", force=True)
            await plane.world.clock.sleep(1.0)
        after = await plane.ready(4, frozenset({first, second}))
        found = []
        for new in {pod.metadata.name for pod in after} - {pod.metadata.name for pod in before}:
            why = plane.creation(new)
            found.append({(str(step.who), str(step.write.ref)) for step in why.origins if step.write})
        both = {("unknown", f"Pod default/{second}"), ("bob", "Deployment default/web")}
        assert sorted(found, key=len) == [{("unknown", f"Pod default/{first}")}, both, both]

    on_plane(test)
