from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes

from ostinato.api.codec import from_dict, to_dict
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import ControllerRevision, StatefulSet
from ostinato.kinds.core_v1 import PersistentVolumeClaim, Pod
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers

CONTROLLER = "statefulset-controller"


def statefulset(replicas: int = 3, **spec: Any) -> StatefulSet:
    wanted: dict[str, Any] = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "app", "image": "db:1"}]},
        },
        **spec,
    }
    return from_dict(StatefulSet, {"metadata": {"name": "db"}, "spec": wanted})


def with_claims(replicas: int = 2, *, when_deleted: str = "Retain", when_scaled: str = "Retain") -> StatefulSet:
    template = {
        "metadata": {"name": "data", "labels": {"kind": "data"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    return statefulset(
        replicas,
        volumeClaimTemplates=[template],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": when_deleted, "whenScaled": when_scaled},
    )


async def change(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(StatefulSet, "db", MergePatch({"spec": spec}))


async def set_image(stage: Stage, image: str) -> None:
    await change(stage, template={"spec": {"containers": [{"name": "app", "image": image}]}})


async def names(stage: Stage) -> list[str]:
    return sorted(pod.metadata.name for pod in await stage.client.list(Pod))


async def images(stage: Stage) -> dict[str, str]:
    pods = await stage.client.list(Pod)
    return {pod.metadata.name: pod.spec.containers[0].image or "" for pod in pods}


async def status(stage: Stage) -> dict[str, Any]:
    return to_dict((await stage.client.get(StatefulSet, "db")).status)


def test_pods_are_created_in_order_each_when_the_last_is_ready() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        nodes.keep_unready("db-0", "db-1")
        await stage.client.create(statefulset())
        await stage.settle()
        assert await names(stage) == ["db-0"]
        await nodes.let_ready("db-0")
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1"]
        found = await status(stage)
        assert (found["replicas"], found["readyReplicas"], found["availableReplicas"]) == (2, 1, 1)
        await nodes.let_ready("db-1")
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1", "db-2"]
        revision = (await stage.client.list(ControllerRevision))[0].metadata.name
        assert await status(stage) == {
            "availableReplicas": 3,
            "collisionCount": 0,
            "currentReplicas": 3,
            "currentRevision": revision,
            "observedGeneration": 1,
            "readyReplicas": 3,
            "replicas": 3,
            "updateRevision": revision,
            "updatedReplicas": 3,
        }
        assert await stage.events("db") == [
            ("SuccessfulCreate", f"Create Pod db-{number} in StatefulSet db successful") for number in range(3)
        ]

    on_stage(play, CONTROLLER)


def test_a_pod_has_name_labels_and_hostname_of_its_ordinal() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(2, ordinals={"start": 5}))
        await stage.settle()
        assert await names(stage) == ["db-5", "db-6"]
        pod = await stage.client.get(Pod, "db-6")
        assert pod.metadata.generate_name == "db-"
        assert pod.metadata.labels == {
            "app": "db",
            "apps.kubernetes.io/pod-index": "6",
            "controller-revision-hash": (await status(stage))["currentRevision"],
            "statefulset.kubernetes.io/pod-name": "db-6",
        }
        assert (pod.spec.hostname, pod.spec.subdomain) == ("db-6", "db")
        owner = pod.metadata.owner_references[0]
        assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == (
            "StatefulSet",
            "db",
            True,
            True,
        )

    on_stage(play, CONTROLLER)


def test_scaling_down_deletes_the_highest_ordinal_and_waits_for_it() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(statefulset())
        await stage.settle()
        nodes.linger("db-2")
        await change(stage, replicas=1)
        await stage.settle()
        going = {pod.metadata.name: bool(pod.metadata.deletion_timestamp) for pod in await stage.client.list(Pod)}
        assert going == {"db-0": False, "db-1": False, "db-2": True}
        found = await status(stage)
        assert (found["replicas"], found["readyReplicas"], found["currentReplicas"]) == (3, 3, 2)
        await nodes.let_go("db-2")
        await stage.settle()
        assert await names(stage) == ["db-0"]
        assert ("SuccessfulDelete", "Delete Pod db-1 in StatefulSet db successful") in await stage.events("db")

    on_stage(play, CONTROLLER)


def test_scaling_down_waits_while_a_replica_is_not_ready() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(statefulset())
        await stage.settle()
        first = await stage.client.get(Pod, "db-0")
        await stage.set_pod_status(first, conditions=[{"type": "Ready", "status": "False"}])
        await change(stage, replicas=1)
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1", "db-2"]
        await nodes.let_ready("db-0")
        await stage.settle()
        assert await names(stage) == ["db-0"]

    on_stage(play, CONTROLLER)


def test_parallel_pods_do_not_wait() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        nodes.keep_unready("db-0", "db-1", "db-2")
        await stage.client.create(statefulset(podManagementPolicy="Parallel"))
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1", "db-2"]
        found = await status(stage)
        assert (found["replicas"], found["availableReplicas"], "readyReplicas" in found) == (3, 0, False)
        await change(stage, replicas=1)
        await stage.settle()
        assert await names(stage) == ["db-0"]

    on_stage(play, CONTROLLER)


def test_a_rolling_update_goes_from_the_highest_ordinal_down_to_the_partition() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await stage.client.create(statefulset(updateStrategy=strategy))
        await stage.settle()
        await set_image(stage, "db:2")
        await stage.settle()
        assert await images(stage) == {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}
        old, new = sorted(await stage.client.list(ControllerRevision), key=lambda each: each.revision)
        found = await status(stage)
        assert (found["currentReplicas"], found["updatedReplicas"]) == (2, 1)
        assert (found["currentRevision"], found["updateRevision"]) == (old.metadata.name, new.metadata.name)
        await change(stage, updateStrategy={"rollingUpdate": {"partition": 0}})
        await stage.settle()
        assert set((await images(stage)).values()) == {"db:2"}
        found = await status(stage)
        assert (found["currentReplicas"], found["updatedReplicas"]) == (3, 3)
        assert found["currentRevision"] == found["updateRevision"] == new.metadata.name

    on_stage(play, CONTROLLER)


def test_a_pod_below_the_partition_is_recreated_with_the_current_revision() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await stage.client.create(statefulset(updateStrategy=strategy))
        await stage.settle()
        await set_image(stage, "db:2")
        await stage.settle()
        await stage.client.delete(Pod, "db-0")
        await stage.settle()
        assert await images(stage) == {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}

    on_stage(play, CONTROLLER)


def test_an_update_waits_for_an_unready_pod() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(statefulset())
        await stage.settle()
        nodes.keep_unready("db-2")
        await set_image(stage, "db:2")
        await stage.settle()
        assert await images(stage) == {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}
        await nodes.let_ready("db-2")
        await stage.settle()
        assert set((await images(stage)).values()) == {"db:2"}

    on_stage(play, CONTROLLER)


def test_on_delete_only_deleted_pods_are_updated() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(2, updateStrategy={"type": "OnDelete"}))
        await stage.settle()
        await set_image(stage, "db:2")
        await stage.settle()
        assert await images(stage) == {"db-0": "db:1", "db-1": "db:1"}
        assert "updatedReplicas" not in await status(stage)
        await stage.client.delete(Pod, "db-0")
        await stage.settle()
        assert await images(stage) == {"db-0": "db:2", "db-1": "db:1"}
        found = await status(stage)
        assert (found["currentReplicas"], found["updatedReplicas"]) == (1, 1)

    on_stage(play, CONTROLLER)


def test_a_failed_pod_is_recreated() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(statefulset(2))
        await stage.settle()
        before = (await stage.client.get(Pod, "db-0")).metadata.uid
        await nodes.fail("db-0")
        await stage.settle()
        after = await stage.client.get(Pod, "db-0")
        assert after.metadata.uid != before
        assert after.status.phase == "Running"

    on_stage(play, CONTROLLER)


def test_the_next_pod_waits_for_min_ready_seconds() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(2, minReadySeconds=30))
        await stage.settle()
        assert await names(stage) == ["db-0"]
        found = await status(stage)
        assert (found["readyReplicas"], found["availableReplicas"]) == (1, 0)
        await stage.world.clock.sleep(40)
        assert await names(stage) == ["db-0", "db-1"]
        await stage.world.clock.sleep(40)
        assert (await status(stage))["availableReplicas"] == 2

    on_stage(play, CONTROLLER)


def test_old_revisions_beyond_the_limit_are_deleted_and_a_restored_template_reuses_its_revision() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(1, revisionHistoryLimit=1))
        for number in (2, 3, 4):
            await stage.settle()
            await set_image(stage, f"db:{number}")
        await stage.settle()
        revisions = await stage.client.list(ControllerRevision)
        assert sorted(each.revision for each in revisions) == [3, 4]
        third = next(each for each in revisions if each.revision == 3)
        await set_image(stage, "db:3")
        await stage.settle()
        revisions = await stage.client.list(ControllerRevision)
        assert {each.revision: each.metadata.uid for each in revisions}[5] == third.metadata.uid
        assert await images(stage) == {"db-0": "db:3"}

    on_stage(play, CONTROLLER)


def test_an_orphan_of_the_right_name_is_adopted_and_gets_its_labels() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        spec = {"containers": [{"name": "app", "image": "db:1"}]}
        for name in ("db-0", "other"):
            await stage.client.create(
                from_dict(Pod, {"metadata": {"name": name, "labels": {"app": "db"}}, "spec": spec})
            )
        await stage.settle()
        await stage.client.create(statefulset(1, updateStrategy={"type": "OnDelete"}))
        await stage.settle()
        adopted, other = await stage.client.get(Pod, "db-0"), await stage.client.get(Pod, "other")
        assert [each.name for each in adopted.metadata.owner_references] == ["db"]
        assert adopted.metadata.labels["statefulset.kubernetes.io/pod-name"] == "db-0"
        assert other.metadata.owner_references == []
        assert ("SuccessfulUpdate", "Update Pod db-0 in StatefulSet db successful") in await stage.events("db")

    on_stage(play, CONTROLLER)


def test_a_released_pod_blocks_its_name_until_deleted() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(1))
        await stage.settle()
        await stage.client.patch(Pod, "db-0", MergePatch({"metadata": {"labels": {"app": "else"}}}))
        await stage.settle(limit=30)
        released = await stage.client.get(Pod, "db-0")
        assert released.metadata.owner_references == []
        before = stage.version
        await stage.world.clock.sleep(60)
        assert stage.version - before <= 2, "it loops"
        await stage.client.delete(Pod, "db-0")
        await stage.until(lambda: _owned(stage, "db-0"), limit=1200)

    async def _owned(stage: Stage, name: str) -> bool:
        pod = await stage.client.get(Pod, name, missing=None)
        return pod is not None and bool(pod.metadata.owner_references)

    on_stage(play, CONTROLLER)


def test_a_rejected_template_is_an_event_and_no_hot_loop() -> None:
    async def play(stage: Stage) -> None:
        created = statefulset(1)
        created.spec.template.spec.service_account_name = "nobody"
        await stage.client.create(created)
        await stage.world.clock.sleep(10)
        before = stage.version
        await stage.world.clock.sleep(60)
        assert stage.version - before < 15
        reason, note = (await stage.events("db"))[0]
        assert reason == "FailedCreate"
        assert note == (
            'Create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: error looking up service '
            'account default/nobody: serviceaccount "nobody" not found'
        )

    on_stage(play, CONTROLLER)


def test_a_terminating_set_creates_and_deletes_nothing() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        created = statefulset(2)
        created.metadata.finalizers = ["example.dev/wait"]
        await stage.client.create(created)
        await stage.settle()
        await stage.client.delete(StatefulSet, "db")
        await stage.client.delete(Pod, "db-0")
        await stage.settle()
        assert await names(stage) == ["db-1"]
        assert (await status(stage))["replicas"] == 1

    on_stage(play, CONTROLLER)


def test_at_rest_nothing_is_written() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(with_claims(2, when_deleted="Delete"))
        await stage.settle()
        await stage.world.clock.sleep(700)
        before = stage.version
        await stage.world.clock.sleep(1800)
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_claims_are_created_before_their_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(with_claims(2))
        await stage.settle()
        claims = await stage.client.list(PersistentVolumeClaim)
        assert [each.metadata.name for each in claims] == ["data-db-0", "data-db-1"]
        assert claims[0].metadata.labels == {"app": "db", "kind": "data"}
        assert claims[0].metadata.owner_references == []
        volumes = (await stage.client.get(Pod, "db-1")).spec.volumes
        source = next(each for each in volumes if each.name == "data").persistent_volume_claim
        assert source is not None
        assert source.claim_name == "data-db-1"
        assert (await stage.events("db"))[0] == (
            "SuccessfulCreate",
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        )

    on_stage(play, CONTROLLER)


def test_a_claim_outlives_its_pod_and_is_reused() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(with_claims(2))
        await stage.settle()
        before = (await stage.client.get(PersistentVolumeClaim, "data-db-1")).metadata.uid
        await change(stage, replicas=1)
        await stage.settle()
        await change(stage, replicas=2)
        await stage.settle()
        assert (await stage.client.get(PersistentVolumeClaim, "data-db-1")).metadata.uid == before
        assert await names(stage) == ["db-0", "db-1"]

    on_stage(play, CONTROLLER)


def test_claims_are_owned_by_set_or_pod_according_to_the_retention_policy() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(with_claims(2, when_deleted="Delete", when_scaled="Delete"))
        await stage.settle()
        assert await owners(stage) == {"data-db-0": ["StatefulSet db"], "data-db-1": ["StatefulSet db"]}
        nodes.linger("db-1")
        await change(stage, replicas=1)
        await stage.settle()
        assert await owners(stage) == {"data-db-0": ["StatefulSet db"], "data-db-1": ["Pod db-1"]}
        await change(stage, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})
        await stage.settle()
        assert await owners(stage) == {"data-db-0": [], "data-db-1": []}

    async def owners(stage: Stage) -> dict[str, list[str]]:
        return {
            each.metadata.name: [f"{owner.kind} {owner.name}" for owner in each.metadata.owner_references]
            for each in await stage.client.list(PersistentVolumeClaim)
        }

    on_stage(play, CONTROLLER)


def test_a_new_pod_waits_for_the_deletion_of_a_stale_claim() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(with_claims(2, when_scaled="Delete"))
        await stage.settle()
        await change(stage, replicas=1)
        await stage.settle()
        await change(stage, replicas=2)
        await stage.settle()
        assert await names(stage) == ["db-0"]
        old = await stage.client.get(PersistentVolumeClaim, "data-db-1")
        await stage.client.patch(PersistentVolumeClaim, "data-db-1", MergePatch({"metadata": {"finalizers": None}}))
        await stage.client.delete(PersistentVolumeClaim, "data-db-1")
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1"]
        assert (await stage.client.get(PersistentVolumeClaim, "data-db-1")).metadata.uid != old.metadata.uid

    on_stage(play, CONTROLLER)


def test_a_claim_with_another_controller_is_not_changed() -> None:
    async def play(stage: Stage) -> None:
        other = await stage.client.create(
            from_dict(
                Pod,
                {"metadata": {"name": "other"}, "spec": {"containers": [{"name": "app", "image": "db:1"}]}},
            )
        )
        Nodes(stage)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": other.metadata.uid, "controller": True}
        metadata = {"name": "data-db-0", "ownerReferences": [reference]}
        await stage.client.create(from_dict(PersistentVolumeClaim, {"metadata": metadata, "spec": spec}))
        await stage.client.create(with_claims(1, when_deleted="Delete"))
        await stage.settle()
        assert await names(stage) == ["db-0", "other"]
        claim = await stage.client.get(PersistentVolumeClaim, "data-db-0")
        assert [each.name for each in claim.metadata.owner_references] == ["other"]
        assert "ConflictingController" in [reason for reason, _ in await stage.events("db")]

    on_stage(play, CONTROLLER)


def test_two_sets_with_equal_selectors_keep_their_own_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(statefulset(2))
        other = statefulset(1)
        other.metadata.name = "db-other"
        await stage.client.create(other)
        await stage.settle()
        assert await names(stage) == ["db-0", "db-1", "db-other-0"]
        before = stage.version
        await stage.world.clock.sleep(600)
        assert stage.version == before

    on_stage(play, CONTROLLER)


@pytest.mark.parametrize("seed", range(5))
def test_a_restarted_controller_continues(seed: int) -> None:
    async def play(stage: Stage) -> None:
        rng = stage.world.rng.fork("stops")
        await stage.client.create(with_claims(3))
        for step in range(8):
            start(stage)
            await stage.world.clock.sleep(rng.random() * 3)
            await stage.stop_managers()
            if step == 3:
                await set_image(stage, "db:2")
            if step == 5:
                await change(stage, replicas=5)
        start(stage)
        await stage.settle()
        assert await images(stage) == {f"db-{number}": "db:2" for number in range(5)}
        assert len(await stage.client.list(PersistentVolumeClaim)) == 5
        assert len(await stage.client.list(ControllerRevision)) == 2
        found = await status(stage)
        assert found["currentRevision"] == found["updateRevision"]
        assert (found["availableReplicas"], found["currentReplicas"]) == (5, 5)

    def start(stage: Stage) -> None:
        stage.run(lambda manager: add_controllers(manager, Options(), without=set(CONTROLLERS) - {CONTROLLER}))
        Nodes(stage)

    on_stage(play, seed=seed)
