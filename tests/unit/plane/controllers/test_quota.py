"""Quota and role aggregation controllers."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import (
    ConfigMap,
    Container,
    Pod,
    PodSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceRequirements,
)
from ostinato.kinds.rbac_v1 import AggregationRule, ClusterRole, PolicyRule

QUOTA, ROLES = "resourcequota-controller", "clusterrole-aggregation-controller"


def pod(name: str, cpu: str = "500m") -> Pod:
    resources = ResourceRequirements(requests={"cpu": Quantity(cpu)})
    return Pod(
        metadata=ObjectMeta(name=name), spec=PodSpec(containers=[Container(name="c", image="i", resources=resources)])
    )


async def used(stage: Stage) -> dict[str, str]:
    found = await stage.client.get(ResourceQuota, "q")
    return {name: str(amount) for name, amount in found.status.used.items()}


async def limit(stage: Stage, **hard: str) -> None:
    limits = {name.replace("__", "/").replace("_", "."): Quantity(amount) for name, amount in hard.items()}
    await stage.client.create(ResourceQuota(metadata=ObjectMeta(name="q"), spec=ResourceQuotaSpec(hard=limits)))
    await stage.settle()


def test_a_new_quota_counts_existing_objects() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(pod("a"))
        await stage.client.create(pod("b"))
        await limit(stage, pods="5", requests_cpu="2")
        assert await used(stage) == {"pods": "2", "requests.cpu": "1"}

    on_stage(play, QUOTA)


def test_a_wrong_count_is_corrected_within_five_minutes() -> None:
    async def play(stage: Stage) -> None:
        await limit(stage, pods="5")
        await stage.client.create(pod("a"))
        await stage.client.patch(
            ResourceQuota, "q", MergePatch({"status": {"used": {"pods": "3"}}}), subresource="status"
        )
        await stage.settle()
        assert await used(stage) == {"pods": "3"}
        await stage.world.clock.sleep(301)
        assert await used(stage) == {"pods": "1"}

    on_stage(play, QUOTA)


def test_deleted_and_finished_objects_are_released() -> None:
    async def play(stage: Stage) -> None:
        await limit(stage, pods="5", requests_cpu="2")
        done = await stage.client.create(pod("done"))
        await stage.client.create(pod("gone"))
        assert await used(stage) == {"pods": "2", "requests.cpu": "1"}
        await stage.set_pod_status(done, phase="Succeeded")
        await stage.client.delete(Pod, "gone", grace_period=0)
        await stage.settle()
        assert await used(stage) == {"pods": "0", "requests.cpu": "0"}

    on_stage(play, QUOTA)


def test_a_changed_quota_is_recalculated() -> None:
    async def play(stage: Stage) -> None:
        await limit(stage, pods="5")
        await stage.client.create(ConfigMap(metadata=ObjectMeta(name="c")))
        await stage.client.patch(ResourceQuota, "q", MergePatch({"spec": {"hard": {"count/configmaps": "3"}}}))
        await stage.settle()
        assert await used(stage) == {"pods": "0", "count/configmaps": "1"}

    on_stage(play, QUOTA)


def test_an_unchanged_quota_is_not_written() -> None:
    async def play(stage: Stage) -> None:
        await limit(stage, pods="5", count__configmaps="10", count__widgets_example_dev="3")
        before = stage.version
        await stage.world.clock.sleep(1000)
        assert stage.version == before

    on_stage(play, QUOTA)


def test_an_aggregated_role_has_the_rules_of_selected_roles_without_duplicates() -> None:
    def rule(resource: str) -> PolicyRule:
        return PolicyRule(api_groups=[""], resources=[resource], verbs=["get"])

    async def play(stage: Stage) -> None:
        for name, resources in (("b-part", ["pods"]), ("a-part", ["secrets", "pods"])):
            metadata = ObjectMeta(name=name, labels={"join": "yes"})
            await stage.client.create(ClusterRole(metadata=metadata, rules=[rule(each) for each in resources]))
        whole = ClusterRole(
            metadata=ObjectMeta(name="whole"),
            aggregation_rule=AggregationRule(cluster_role_selectors=[LabelSelector(match_labels={"join": "yes"})]),
            rules=[rule("by-hand")],
        )
        await stage.client.create(whole)
        await stage.settle()
        assert (await stage.client.get(ClusterRole, "whole")).rules == [rule("secrets"), rule("pods")]
        await stage.client.delete(ClusterRole, "a-part")
        await stage.settle()
        assert (await stage.client.get(ClusterRole, "whole")).rules == [rule("pods")]
        await stage.client.patch(ClusterRole, "whole", MergePatch({"rules": []}))
        await stage.settle()
        assert (await stage.client.get(ClusterRole, "whole")).rules == [rule("pods")]

    on_stage(play, ROLES)
