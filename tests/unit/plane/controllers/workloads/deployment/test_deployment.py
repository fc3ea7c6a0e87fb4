from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import Nodes

from ostinato.api.codec import from_dict, to_dict
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.kinds.core_v1 import Event, Namespace, Pod, ResourceQuota, ServiceAccount
from ostinato.plane.controllers import CONTROLLERS as ALL_CONTROLLERS
from ostinato.plane.controllers import Options, add_controllers
from ostinato.plane.controllers.workloads.deployment import progress

CONTROLLERS = ("deployment-controller", "replicaset-controller")
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"


def deployment(replicas: int = 3, *, annotations: dict[str, str] | None = None, **spec: Any) -> Deployment:
    wanted: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
        **spec,
    }
    return from_dict(Deployment, {"metadata": {"name": "web", "annotations": annotations or {}}, "spec": wanted})


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


async def change(stage: Stage, **spec: Any) -> None:
    await stage.client.patch(Deployment, "web", MergePatch({"spec": spec}))


async def set_image(stage: Stage, image: str) -> None:
    await change(stage, template={"spec": {"containers": [{"name": "app", "image": image}]}})


async def status(stage: Stage) -> dict[str, Any]:
    return to_dict((await stage.client.get(Deployment, "web")).status)


async def condition(stage: Stage, kind: str = "Progressing") -> tuple[str, str, str]:
    found = {each["type"]: each for each in (await status(stage)).get("conditions", [])}
    return (found[kind]["status"], found[kind]["reason"], found[kind]["message"]) if kind in found else ("", "", "")


async def sets(stage: Stage) -> dict[str, ReplicaSet]:
    """Replica counts by image."""
    found: dict[str, ReplicaSet] = {}
    for each in await stage.client.list(ReplicaSet):
        assert each.spec.template is not None
        found[each.spec.template.spec.containers[0].image or ""] = each
    return found


async def sizes(stage: Stage) -> dict[str, int]:
    return {image: each.spec.replicas or 0 for image, each in (await sets(stage)).items()}


async def revisions(stage: Stage) -> dict[str, str]:
    return {image: each.metadata.annotations[REVISION] for image, each in (await sets(stage)).items()}


class Extremes:
    """Maximum number of Pods and minimum number of ready Pods, observed at every write."""

    def __init__(self, stage: Stage, replicas: int) -> None:
        self._stage = stage
        self.most, self.fewest = 0, replicas

    def look(self, pods: list[Pod]) -> None:
        alive = [each for each in pods if each.metadata.deletion_timestamp is None]
        ready = [
            each for each in alive if any(c.type == "Ready" and c.status == "True" for c in each.status.conditions)
        ]
        self.most = max(self.most, len(alive))
        self.fewest = min(self.fewest, len(ready))

    async def until(self, done: Callable[[dict[str, Any]], bool]) -> None:
        """Observe the Pods until the status is as expected."""

        async def holds() -> bool:
            self.look(await self._stage.client.list(Pod))
            return done(await status(self._stage))

        await self._stage.until(holds)


def is_done(replicas: int) -> Callable[[dict[str, Any]], bool]:
    def done(found: dict[str, Any]) -> bool:
        counts = [found.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return counts == [replicas] * 3

    return done


def test_it_creates_a_replica_set_and_reports_progress() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(annotations={"team": "blue"}))
        await stage.settle()
        [made] = await stage.client.list(ReplicaSet)
        assert made.spec.template is not None
        code = made.metadata.labels["pod-template-hash"]
        assert made.metadata.name == f"web-{code}"
        assert made.metadata.labels == made.spec.template.metadata.labels == {"app": "web", "pod-template-hash": code}
        assert made.spec.selector.match_labels == {"app": "web", "pod-template-hash": code}
        assert made.metadata.annotations == {"team": "blue", REVISION: "1", DESIRED: "3", MAXIMUM: "4"}
        [reference] = made.metadata.owner_references
        assert (reference.kind, reference.name, reference.controller) == ("Deployment", "web", True)
        found = await status(stage)
        assert {name: value for name, value in found.items() if name != "conditions"} == {
            "observedGeneration": 1,
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
        }
        name = made.metadata.name
        complete = f'ReplicaSet "{name}" has successfully progressed.'
        assert await condition(stage) == ("True", "NewReplicaSetAvailable", complete)
        enough = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        assert await condition(stage, "Available") == enough
        assert (await stage.client.get(Deployment, "web")).metadata.annotations == {"team": "blue", REVISION: "1"}
        assert await stage.events("web") == [("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 3")]

    on_stage(play, *CONTROLLERS)


def test_at_rest_it_writes_nothing() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment())
        await stage.settle()
        await set_image(stage, "app:2")
        await stage.settle(30)
        before = stage.version
        await stage.world.clock.sleep(1800)
        assert stage.version == before

    on_stage(play, *CONTROLLERS)


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "fewest"),
    [("25%", "25%", 10, 6), (0, 1, 8, 7), (3, 0, 11, 8), ("100%", "100%", 16, 0), (0, "50%", 8, 4)],
)
def test_a_rolling_update_stays_within_surge_and_availability(
    surge: int | str, unavailable: int | str, most: int, fewest: int
) -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(8, strategy=rolling(surge, unavailable)))
        await stage.settle()
        extremes = Extremes(stage, 8)
        await set_image(stage, "app:2")
        await stage.settle(0.1)
        await extremes.until(is_done(8))
        assert extremes.most <= most
        assert extremes.fewest >= fewest
        assert await sizes(stage) == {"app:1": 0, "app:2": 8}
        assert (await condition(stage))[1] == "NewReplicaSetAvailable"

    on_stage(play, *CONTROLLERS)


def test_a_rollout_with_unready_pods_stops_and_exceeds_its_deadline() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(deployment(4, progressDeadlineSeconds=60))
        await stage.settle()
        nodes.keep_all_unready = True
        await set_image(stage, "app:2")
        await stage.settle()
        assert await sizes(stage) == {"app:1": 3, "app:2": 2}
        found = await status(stage)
        counts = [found[name] for name in ("replicas", "updatedReplicas", "readyReplicas", "unavailableReplicas")]
        assert counts == [5, 2, 3, 2]
        new = (await sets(stage))["app:2"].metadata.name
        assert await condition(stage) == ("True", "ReplicaSetUpdated", f'ReplicaSet "{new}" is progressing.')
        assert (await condition(stage, "Available"))[0] == "True", "three of four, and one may be missing"
        await stage.world.clock.sleep(50)
        assert (await condition(stage))[0] == "True"
        await stage.world.clock.sleep(15)
        late = f'ReplicaSet "{new}" has timed out progressing.'
        assert await condition(stage) == ("False", "ProgressDeadlineExceeded", late)
        nodes.keep_all_unready = False
        await set_image(stage, "app:1")
        await stage.settle()
        assert await sizes(stage) == {"app:1": 4, "app:2": 0}
        assert (await condition(stage))[1] == "NewReplicaSetAvailable"

    on_stage(play, *CONTROLLERS)


def test_a_restored_template_reuses_its_replica_set_with_a_new_revision() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1))
        for image in ("app:2", "app:1", "app:2"):
            await stage.settle()
            await set_image(stage, image)
        await stage.settle()
        assert await sizes(stage) == {"app:1": 0, "app:2": 1}
        found = await sets(stage)
        assert await revisions(stage) == {"app:1": "3", "app:2": "4"}
        assert found["app:1"].metadata.annotations[HISTORY] == "1"
        assert found["app:2"].metadata.annotations[HISTORY] == "2"
        assert (await stage.client.get(Deployment, "web")).metadata.annotations[REVISION] == "4"

    on_stage(play, *CONTROLLERS)


def test_old_replica_sets_beyond_the_limit_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1, revisionHistoryLimit=2))
        for number in range(2, 7):
            await stage.settle()
            await set_image(stage, f"app:{number}")
        await stage.settle()
        assert await revisions(stage) == {"app:4": "4", "app:5": "5", "app:6": "6"}
        await change(stage, revisionHistoryLimit=0)
        await stage.settle()
        assert await revisions(stage) == {"app:6": "6"}

    on_stage(play, *CONTROLLERS)


def test_a_change_cause_stays_with_its_revision() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1, annotations={"kubernetes.io/change-cause": "first", REVISION: "77"}))
        await stage.settle()
        template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
        annotations = {"kubernetes.io/change-cause": "second"}
        await stage.client.patch(
            Deployment, "web", MergePatch({"metadata": {"annotations": annotations}, "spec": {"template": template}})
        )
        await stage.settle()
        causes = {
            image: each.metadata.annotations["kubernetes.io/change-cause"]
            for image, each in (await sets(stage)).items()
        }
        assert causes == {"app:1": "first", "app:2": "second"}
        assert await revisions(stage) == {"app:1": "1", "app:2": "2"}

    on_stage(play, *CONTROLLERS)


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(deployment(3, strategy={"type": "Recreate"}))
        await stage.settle()
        slow = (await stage.client.list(Pod))[0].metadata.name
        nodes.linger(slow)
        await set_image(stage, "app:2")
        await stage.settle()
        assert await sizes(stage) == {"app:1": 0}
        assert [pod.metadata.name for pod in await stage.client.list(Pod)] == [slow]
        found = await status(stage)
        assert (found.get("replicas"), found["terminatingReplicas"]) == (None, 1)
        await nodes.let_go(slow)
        await stage.settle()
        assert await sizes(stage) == {"app:1": 0, "app:2": 3}
        assert is_done(3)(await status(stage))

    on_stage(play, *CONTROLLERS)


def test_a_paused_deployment_scales_and_does_not_roll_out() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(2))
        await stage.settle()
        await change(stage, paused=True)
        await stage.settle()
        assert await condition(stage) == ("Unknown", "DeploymentPaused", "Deployment is paused")
        await set_image(stage, "app:2")
        await change(stage, replicas=5)
        await stage.settle()
        assert await sizes(stage) == {"app:1": 5}
        assert "updatedReplicas" not in await status(stage)
        await change(stage, paused=False)
        await stage.settle()
        assert await sizes(stage) == {"app:1": 0, "app:2": 5}
        assert (await condition(stage))[1] == "NewReplicaSetAvailable"

    on_stage(play, *CONTROLLERS)


def test_scaling_during_a_rollout_is_proportional() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(deployment(10, strategy=rolling(3, 2)))
        await stage.settle()
        nodes.keep_all_unready = True
        await set_image(stage, "app:2")
        await stage.settle()
        assert await sizes(stage) == {"app:1": 8, "app:2": 5}
        nodes.keep_all_unready = False
        for pod in await stage.client.list(Pod):
            nodes.keep_unready(pod.metadata.name)
        nodes.keep_all_unready = True
        await change(stage, replicas=20)
        await stage.until(lambda: has_sizes(stage, {"app:1": 14, "app:2": 9}))
        found = await sets(stage)
        assert {each.metadata.annotations[MAXIMUM] for each in found.values()} == {"23"}
        assert {each.metadata.annotations[DESIRED] for each in found.values()} == {"20"}

    on_stage(play, *CONTROLLERS)


async def has_sizes(stage: Stage, wanted: dict[str, int]) -> bool:
    return await sizes(stage) == wanted


def test_availability_is_lost_and_regained() -> None:
    async def play(stage: Stage) -> None:
        nodes = Nodes(stage)
        await stage.client.create(deployment(3))
        await stage.settle()
        complete = await condition(stage)
        lost = [pod.metadata.name for pod in await stage.client.list(Pod)][:2]
        for name in lost:
            await stage.set_pod_status(await stage.client.get(Pod, name), conditions=[])
        await stage.settle()
        missing = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        assert await condition(stage, "Available") == missing
        assert (await status(stage))["unavailableReplicas"] == 2
        assert await condition(stage) == complete, "the rollout was complete, and stays so"
        await nodes.let_ready(*lost)
        await stage.settle()
        assert (await condition(stage, "Available"))[0] == "True"

    on_stage(play, *CONTROLLERS)


def test_annotations_and_min_ready_seconds_are_synced_without_a_rollout() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(2))
        await stage.settle()
        await stage.client.patch(
            Deployment,
            "web",
            MergePatch({"metadata": {"annotations": {"team": "red"}}, "spec": {"minReadySeconds": 5}}),
        )
        await stage.settle()
        [only] = await stage.client.list(ReplicaSet)
        assert only.spec.min_ready_seconds == 5
        assert only.metadata.annotations["team"] == "red"
        assert await revisions(stage) == {"app:1": "1"}

    on_stage(play, *CONTROLLERS)


def test_it_adopts_a_replica_set_of_its_template() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(2))
        await stage.settle()
        [before] = await stage.client.list(ReplicaSet)
        await stage.client.delete(Deployment, "web")
        await stage.client.patch(ReplicaSet, before.metadata, MergePatch({"metadata": {"ownerReferences": None}}))
        await stage.settle()
        made = await stage.client.create(deployment(3))
        await stage.settle()
        [after] = await stage.client.list(ReplicaSet)
        assert after.metadata.uid == before.metadata.uid
        assert [each.uid for each in after.metadata.owner_references] == [made.metadata.uid]
        assert after.spec.replicas == 3
        assert (await condition(stage))[1] == "NewReplicaSetAvailable"

    on_stage(play, *CONTROLLERS)


def test_a_hash_collision_leads_to_another_hash() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1))
        await stage.settle()
        [taken] = await stage.client.list(ReplicaSet)
        name = taken.metadata.name
        await stage.client.delete(Deployment, "web")
        await stage.client.delete(taken)
        await stage.settle()
        other = from_dict(
            ReplicaSet,
            {
                "metadata": {"name": name},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"app": "other"}},
                    "template": {
                        "metadata": {"labels": {"app": "other"}},
                        "spec": {"containers": [{"name": "app", "image": "other"}]},
                    },
                },
            },
        )
        await stage.client.create(other)
        await stage.client.create(deployment(1))
        await stage.settle()
        assert (await status(stage))["collisionCount"] == 1
        assert is_done(1)(await status(stage))
        assert len(await stage.client.list(ReplicaSet)) == 2

    on_stage(play, *CONTROLLERS)


def test_a_rejected_template_is_reported_by_a_condition() -> None:
    async def play(stage: Stage) -> None:
        pod = {"containers": [{"name": "app", "image": "app:1"}], "serviceAccountName": "missing"}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
        await stage.client.create(deployment(2, template=template, progressDeadlineSeconds=60))
        await stage.world.clock.sleep(30)
        state, reason, message = await condition(stage, "ReplicaFailure")
        assert (state, reason) == ("True", "FailedCreate")
        assert "service account default/missing" in message
        await stage.world.clock.sleep(60)
        assert (await condition(stage))[1] == "ProgressDeadlineExceeded"
        settled = (await stage.client.get(Deployment, "web")).metadata.resource_version
        await stage.world.clock.sleep(600)
        assert (await stage.client.get(Deployment, "web")).metadata.resource_version == settled

    on_stage(play, *CONTROLLERS)


def test_without_a_deadline_there_is_no_progressing_condition() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1, progressDeadlineSeconds=2**31 - 1))
        await stage.settle()
        assert await condition(stage) == ("", "", "")
        assert (await condition(stage, "Available"))[0] == "True"

    on_stage(play, *CONTROLLERS)


def test_a_terminating_deployment_only_updates_its_status() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        wanted = deployment(2)
        wanted.metadata.finalizers = ["example.dev/hold"]
        await stage.client.create(wanted)
        await stage.settle()
        await stage.client.delete(Deployment, "web")
        [only] = await stage.client.list(ReplicaSet)
        await stage.client.delete(only)
        await stage.settle()
        assert await stage.client.list(ReplicaSet) == []
        found = await stage.client.get(Deployment, "web")
        assert found.status.replicas is None
        assert found.status.observed_generation == found.metadata.generation

    on_stage(play, *CONTROLLERS)


def test_several_changes_during_a_rollout_end_with_the_last() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(6))
        for number in range(2, 8):
            await stage.world.clock.sleep(0.3)
            await set_image(stage, f"app:{number}")
            await change(stage, replicas=6 + number % 3)
        await stage.settle()
        found = await sizes(stage)
        assert {image: size for image, size in found.items() if size} == {"app:7": 7}
        assert is_done(7)(await status(stage))

    for seed in range(5):
        on_stage(play, *CONTROLLERS, seed=seed)


def test_the_deprecated_rollback_annotation_is_supported() -> None:
    async def play(stage: Stage) -> None:
        async def ask(revision: str) -> str:
            annotation = {"deprecated.deployment.rollback.to": revision}
            await stage.client.patch(Deployment, "web", MergePatch({"metadata": {"annotations": annotation}}))
            await stage.settle()
            found = await stage.client.get(Deployment, "web")
            assert annotation.keys().isdisjoint(found.metadata.annotations)
            return found.spec.template.spec.containers[0].image or ""

        Nodes(stage)
        await stage.client.create(deployment(1))
        await stage.settle()
        assert await ask("0") == "app:1"
        assert (await stage.events("web"))[-1] == (
            "DeploymentRollbackRevisionNotFound",
            "Unable to find last revision.",
        )
        await set_image(stage, "app:2")
        await stage.settle()
        assert await ask("1") == "app:1"
        assert await revisions(stage) == {"app:1": "3", "app:2": "2"}
        assert ("DeploymentRollback", 'Rolled back deployment "web" to revision 1') in await stage.events("web")
        assert await ask("0") == "app:2"
        assert await ask("99") == "app:2"
        assert await ask("4") == "app:2"
        notes = [note for _, note in await stage.events("web")]
        assert "Unable to find the revision to rollback to." in notes
        assert 'The rollback revision contains the same template as current deployment "web"' in notes

    on_stage(play, *CONTROLLERS)


def test_each_step_of_a_rollout_is_an_event() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(1))
        await stage.settle()
        since = (await stage.client.get(Deployment, "web")).metadata.resource_version
        await change(stage, paused=True)
        await stage.settle()
        await change(stage, paused=False, template={"spec": {"containers": [{"name": "app", "image": "app:2"}]}})
        await stage.settle()
        reasons: list[str] = []
        async with stage.client.watch(Deployment, since=since) as events:
            async for event in events:
                found = progress.get_condition(event.object.status, progress.PROGRESSING)
                assert found is not None
                if found.reason not in reasons[-1:]:
                    reasons.append(found.reason or "")
                if len(reasons) > 1 and found.reason == progress.COMPLETE:
                    break
        assert reasons == [
            progress.COMPLETE,
            progress.PAUSED,
            progress.RESUMED,
            progress.CREATED,
            progress.UPDATED,
            progress.COMPLETE,
        ]

    on_stage(play, *CONTROLLERS)


@pytest.mark.parametrize("seed", range(4))
def test_a_rollout_completes_despite_controller_restarts(seed: int) -> None:
    async def play(stage: Stage) -> None:
        others = set(ALL_CONTROLLERS) - set(CONTROLLERS)
        rng = stage.world.rng.fork("play")
        await stage.client.create(deployment(4))
        for number in range(2, 8):
            Nodes(stage)
            stage.run(lambda manager: add_controllers(manager, Options(), without=others))
            await stage.world.clock.sleep(rng.uniform(0.01, 1.5))
            await set_image(stage, f"app:{number}")
            await change(stage, replicas=rng.randrange(1, 9))
            await stage.world.clock.sleep(rng.uniform(0.01, 1.5))
            await stage.stop_managers()
        await change(stage, replicas=5)
        Nodes(stage)
        stage.run(lambda manager: add_controllers(manager, Options(), without=others))
        await stage.settle()
        assert {image: size for image, size in (await sizes(stage)).items() if size} == {"app:7": 5}
        assert is_done(5)(await status(stage))
        images = [pod.spec.containers[0].image for pod in await stage.client.list(Pod)]
        assert images == ["app:7"] * 5

    on_stage(play, seed=seed)


def test_a_rejected_replica_set_is_reported_and_retried() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        hard = {"count/replicasets.apps": "0"}
        quota = from_dict(ResourceQuota, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
        await stage.client.create(quota)
        told = MergePatch({"status": {"hard": hard, "used": hard}})
        await stage.client.patch(ResourceQuota, "none", told, subresource="status")
        await stage.client.create(deployment(2))
        await stage.world.clock.sleep(60)
        value, reason, message = await condition(stage)
        assert (value, reason) == ("False", "ReplicaSetCreateError")
        assert message.startswith('Failed to create new replica set "web-')
        assert "exceeded quota: none" in message
        assert await stage.events("web") == [("ReplicaSetCreateError", message)]
        await stage.client.delete(ResourceQuota, "none")
        await stage.settle(120, limit=1000)
        assert is_done(2)(await status(stage))
        assert (await condition(stage))[1] == "NewReplicaSetAvailable"

    on_stage(play, *CONTROLLERS)


def test_scaling_a_saturated_rollout_removes_the_last_old_pods() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(2))
        await stage.settle()
        await set_image(stage, "app:2")
        await stage.settle()
        await change(stage, paused=True)
        old = (await sets(stage))["app:1"].metadata
        await stage.client.patch(ReplicaSet, old, MergePatch({"spec": {"replicas": 3}}))
        await stage.settle()
        assert await sizes(stage) == {"app:1": 0, "app:2": 2}

    on_stage(play, *CONTROLLERS)


def test_in_a_terminating_namespace_nothing_is_created_and_no_error_logged() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(from_dict(Namespace, {"metadata": {"name": "old"}}))
        await stage.client.create(from_dict(ServiceAccount, {"metadata": {"name": "default", "namespace": "old"}}))
        wanted = deployment(2)
        wanted.metadata.namespace = "old"
        await stage.client.create(wanted)
        await stage.settle()
        await stage.client.delete(Namespace, "old")
        await stage.settle()
        await stage.client.patch(
            Deployment,
            "web",
            MergePatch({"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}}),
            namespace="old",
        )
        await stage.client.delete((await stage.client.list(Pod, namespace="old"))[0])
        await stage.settle(30)
        assert len(await stage.client.list(ReplicaSet, namespace="old")) == 1
        assert len(await stage.client.list(Pod, namespace="old")) == 1
        [only] = await stage.client.list(ReplicaSet, namespace="old")
        assert only.status.conditions == []
        kinds = {event.type for event in await stage.client.list(Event, namespace="old")}
        assert kinds == {"Normal"}

    on_stage(play, *CONTROLLERS)


def test_a_foreign_status_write_is_corrected() -> None:
    async def play(stage: Stage) -> None:
        Nodes(stage)
        await stage.client.create(deployment(2))
        await stage.settle()
        before = await status(stage)
        [made] = await stage.client.list(ReplicaSet)
        wrong = MergePatch({"status": {"replicas": 9, "readyReplicas": 8, "availableReplicas": 7}})
        await stage.client.patch(ReplicaSet, made.metadata, wrong, subresource="status")
        await stage.client.patch(Deployment, "web", wrong, subresource="status")
        await stage.settle()
        [after] = await stage.client.list(ReplicaSet)
        assert after.status == made.status
        found = await status(stage)
        assert {**found, "conditions": []} == {**before, "conditions": []}

    on_stage(play, *CONTROLLERS)
