from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes

from ostinato.api.codec import from_dict, to_dict
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Pod, ReplicationController

CONTROLLER = "replicationcontroller-controller"


def replication_controller(replicas: int = 2) -> ReplicationController:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"app": "web"}, "template": template}
    return from_dict(ReplicationController, {"metadata": {"name": "web"}, "spec": spec})


async def status(stage: Stage) -> dict[str, Any]:
    return to_dict((await stage.client.get(ReplicationController, "web")).status)


def test_it_creates_pods_and_counts_them_in_the_status() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(replication_controller())
        await stage.settle()
        made = await stage.client.list(Pod)
        [reference] = made[0].metadata.owner_references
        assert (reference.api_version, reference.kind, reference.name) == ("v1", "ReplicationController", "web")
        nodes.linger(made[0].metadata.name)
        await stage.client.delete(made[0])
        await stage.settle()
        assert len(await stage.client.list(Pod)) == 3
        assert await status(stage) == {
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "observedGeneration": 1,
        }
        assert {reason for reason, _ in await stage.events("web")} == {"SuccessfulCreate"}

    on_stage(play, CONTROLLER)


def test_it_adopts_by_its_selector_and_releases_when_it_changes() -> None:
    async def play(stage: Stage) -> None:
        labels = {"app": "web", "tier": "front"}
        spec = {"containers": [{"name": "app", "image": "app:1"}]}
        await stage.client.create(from_dict(Pod, {"metadata": {"name": "orphan", "labels": labels}, "spec": spec}))
        await stage.client.create(replication_controller(1))
        await stage.settle()
        [pod] = await stage.client.list(Pod)
        assert [each.name for each in pod.metadata.owner_references] == ["web"]
        back = {"selector": {"app": "web", "tier": "back"}, "template": {"metadata": {"labels": {"tier": "back"}}}}
        await stage.client.patch(ReplicationController, "web", MergePatch({"spec": back}))
        await stage.settle()
        found = {
            pod.metadata.labels["tier"]: bool(pod.metadata.owner_references) for pod in await stage.client.list(Pod)
        }
        assert found == {"front": False, "back": True}

    on_stage(play, CONTROLLER)


def test_both_kinds_live_side_by_side() -> None:
    async def play(stage: Stage) -> None:
        from tests.unit.plane.controllers.workloads.replicaset.test_replicaset import replica_set

        await stage.client.create(replication_controller(2))
        await stage.client.create(replica_set(3))
        await stage.settle()
        owners = sorted(pod.metadata.owner_references[0].kind for pod in await stage.client.list(Pod))
        assert owners == ["ReplicaSet"] * 3 + ["ReplicationController"] * 2

    on_stage(play, CONTROLLER, "replicaset-controller")
