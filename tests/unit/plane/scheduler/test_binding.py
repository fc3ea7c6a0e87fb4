from __future__ import annotations

from typing import Any

import pytest
from tests.stage.plane import Stage
from tests.unit.plane.scheduler import fixture
from tests.unit.plane.scheduler.fixture import Json
from tests.unit.plane.scheduler.scenarios import add_node, add_pod, placed, priority, run_scenario, where, why

from ostinato.api.codec import from_dict
from ostinato.api.errors import ServiceUnavailable
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.plane.scheduler.api_writes import ApiWriter


def test_a_failed_binding_is_retried_and_its_pod_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = ApiWriter.bind, ["p"]

    async def bind(self: ApiWriter, info: Any, name: str) -> None:
        if info.name in failures:
            raise ServiceUnavailable.of("not now")
        await real(self, info, name)

    monkeypatch.setattr(ApiWriter, "bind", bind)

    async def scene(stage: Stage) -> None:
        await add_node(stage, "a", cpu="1")
        await add_pod(stage, "p", cpu="1")
        await stage.world.clock.sleep(5)
        assert (await why(stage, "p"))[0] == "SchedulerError"
        await add_pod(stage, "q", cpu="1")
        assert await placed(stage, "q") == "a"
        failures.clear()
        await stage.client.delete(Pod, "q", grace_period=0)
        assert await placed(stage, "p") == "a"

    run_scenario(scene)


@pytest.mark.parametrize("finalizers", [[], ["example.com/wait"]])
def test_a_pod_deleted_while_binding_frees_its_node(monkeypatch: pytest.MonkeyPatch, finalizers: list[str]) -> None:
    real = ApiWriter.bind

    async def scene(stage: Stage) -> None:
        async def bind(self: ApiWriter, info: Any, name: str) -> None:
            if info.name == "gone":
                await stage.world.clock.sleep(60)
            await real(self, info, name)

        monkeypatch.setattr(ApiWriter, "bind", bind)
        await add_node(stage, "a", cpu="1")
        wanted = fixture.pod("gone", cpu="1")
        wanted["metadata"]["finalizers"] = finalizers
        await stage.client.create(from_dict(Pod, wanted))
        await stage.settle()
        await add_pod(stage, "next", cpu="1")
        await stage.settle()
        assert await where(stage, "next") == ""
        await stage.client.delete(Pod, "gone")
        assert await stage.until(lambda: where(stage, "next"), limit=30) == "a"
        await stage.world.clock.sleep(120)
        assert await where(stage, "next") == "a"

    run_scenario(scene)


def test_a_binding_with_a_lost_response_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ApiWriter.bind

    async def scene(stage: Stage) -> None:
        async def bind(self: ApiWriter, info: Any, name: str) -> None:
            await real(self, info, name)
            await stage.world.clock.sleep(1)
            raise ServiceUnavailable.of("the answer is lost")

        monkeypatch.setattr(ApiWriter, "bind", bind)
        await add_node(stage, "a", cpu="1")
        await add_pod(stage, "one", cpu="1")
        await placed(stage, "one")
        await stage.settle()
        await add_pod(stage, "two", cpu="1")
        await stage.settle()
        assert await where(stage, "two") == ""
        assert (await why(stage, "two"))[0] == "Unschedulable"

    run_scenario(scene)


def test_a_preempting_pod_is_gated_until_the_last_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    real, told = ApiWriter.evict, []

    async def scene(stage: Stage) -> None:
        async def evict(self: ApiWriter, victim: Any, by: Any) -> bool:
            told.append(victim.name)
            if len(told) == 2:
                await stage.world.clock.sleep(30)
            return await real(self, victim, by)

        monkeypatch.setattr(ApiWriter, "evict", evict)
        await priority(stage, "high", 1000)
        await add_node(stage, "a", cpu="3")
        for name in ("one", "two", "three"):
            await add_pod(stage, name, cpu="1", terminationGracePeriodSeconds=0)
            await placed(stage, name)
        await add_pod(stage, "high", cpu="3", priorityClassName="high")
        assert await placed(stage, "high") == "a"
        assert sorted(told) == ["one", "three", "two"]

    run_scenario(scene)


async def add_storage(stage: Stage, *claims: str) -> None:
    """A WaitForFirstConsumer class and claims of it."""
    waiting = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    await stage.client.create(from_dict(StorageClass, {"metadata": {"name": "local"}, **waiting}))
    for name in claims:
        spec = {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        await stage.client.create(from_dict(PersistentVolumeClaim, {"metadata": {"name": name}, "spec": spec}))


async def add_volume(stage: Stage, name: str, where_: str) -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [where_]}]}
    spec = {
        "storageClassName": "local",
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    await stage.client.create(from_dict(PersistentVolume, {"metadata": {"name": name}, "spec": spec}))


def using(claim: str) -> list[Json]:
    return [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]


NONE_LEFT = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."


def test_a_claim_is_bound_to_a_volume_on_the_selected_node() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_node(stage, "b")
        await add_storage(stage, "data")
        await add_pod(stage, "p", volumes=using("data"))
        await stage.settle()
        assert (await why(stage, "p"))[1].startswith(NONE_LEFT)
        await add_volume(stage, "disk", "b")
        assert await placed(stage, "p") == "b"
        volume = await stage.client.get(PersistentVolume, "disk")
        assert volume.spec is not None
        assert volume.spec.claim_ref is not None
        assert volume.spec.claim_ref.name == "data"

    run_scenario(scene, controllers=("persistentvolume-binder-controller",))


def test_an_assumed_volume_is_not_assumed_twice() -> None:
    async def scene(stage: Stage) -> None:
        await add_node(stage, "a")
        await add_node(stage, "b")
        await add_storage(stage, "one", "two")
        await add_volume(stage, "disk", "b")
        for name in ("one", "two"):
            await add_pod(stage, name, volumes=using(name))
        await stage.settle()
        nodes = {name: await where(stage, name) for name in ("one", "two")}
        assert sorted(nodes.values()) == ["", "b"]
        waiting = next(name for name, node in nodes.items() if not node)
        reason, message = await why(stage, waiting)
        assert reason == "Unschedulable"
        assert message.startswith(NONE_LEFT)
        told = {reason for reason, _ in await stage.events(waiting)}  # events of Pod and claim
        assert told == {"FailedScheduling", "WaitForFirstConsumer"}

    run_scenario(scene, controllers=("persistentvolume-binder-controller",))
