"""Claims and volumes: binding, provisioning, reclaiming, protection."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import (
    Container,
    CSIPersistentVolumeSource,
    HostPathVolumeSource,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from ostinato.kinds.storage_v1 import StorageClass, VolumeAttributesClass
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers

BINDER = "persistentvolume-binder-controller"
VOLUME_PROTECTION = "persistentvolume-protection-controller"
CLAIM_PROTECTION = "persistentvolumeclaim-protection-controller"


def volume(name: str, size: str, storage_class: str = "manual", **spec: object) -> PersistentVolume:
    given = {
        "capacity": {"storage": Quantity(size)},
        "access_modes": ["ReadWriteOnce"],
        "storage_class_name": storage_class,
        "host_path": HostPathVolumeSource(path="/data"),
        **spec,
    }
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(**given))  # type: ignore[arg-type]


def claim(name: str, size: str, storage_class: str = "manual") -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        storage_class_name=storage_class,
        resources=VolumeResourceRequirements(requests={"storage": Quantity(size)}),
    )
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name), spec=spec)


def attributes_class(name: str) -> VolumeAttributesClass:
    return VolumeAttributesClass(metadata=ObjectMeta(name=name), driver_name="example.com", parameters={"iops": "9"})


async def bound_to(stage: Stage, name: str) -> tuple[str, str]:
    found = await stage.client.get(PersistentVolumeClaim, name)
    return found.status.phase or "", found.spec.volume_name or ""


async def phase(stage: Stage, name: str) -> str:
    return (await stage.client.get(PersistentVolume, name)).status.phase or ""


def test_a_claim_gets_the_smallest_volume_that_is_large_enough() -> None:
    async def play(stage: Stage) -> None:
        for name, size in (("small", "1Gi"), ("middle", "5Gi"), ("large", "50Gi")):
            await stage.client.create(volume(name, size))
        await stage.client.create(volume("other", "3Gi", "fast"))
        await stage.client.create(claim("data", "2Gi"))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Bound", "middle")
        assert [await phase(stage, name) for name in ("small", "middle", "large")] == [
            "Available",
            "Bound",
            "Available",
        ]

    on_stage(play, BINDER)


def test_a_pending_claim_is_bound_to_a_later_volume() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(claim("data", "2Gi"))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Pending", "")
        assert ("ProvisioningFailed", 'storageclass.storage.k8s.io "manual" not found') in await stage.events("data")
        await stage.client.create(volume("late", "2Gi"))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Bound", "late")

    on_stage(play, BINDER)


def test_two_claims_never_share_a_volume() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(volume("only", "2Gi"))
        await stage.client.create(claim("one", "1Gi"))
        await stage.client.create(claim("two", "1Gi"))
        await stage.settle()
        assert sorted([await bound_to(stage, "one"), await bound_to(stage, "two")]) == [
            ("Bound", "only"),
            ("Pending", ""),
        ]

    on_stage(play, BINDER)


def test_a_volume_of_a_deleted_claim_is_released_and_retained() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(volume("disk", "2Gi"))
        await stage.client.create(claim("data", "1Gi"))
        await stage.settle()
        await stage.client.delete(PersistentVolumeClaim, "data")
        await stage.settle()
        assert await phase(stage, "disk") == "Released"
        await stage.client.create(claim("data", "1Gi"))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Pending", "")  # its content is retained

    on_stage(play, BINDER, CLAIM_PROTECTION)


def test_a_claim_whose_volume_was_deleted_is_lost() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(volume("disk", "2Gi"))
        await stage.client.create(claim("data", "1Gi"))
        await stage.settle()
        await stage.client.delete(PersistentVolume, "disk")
        await stage.settle()
        await stage.client.patch(PersistentVolume, "disk", MergePatch({"metadata": {"finalizers": None}}))
        await stage.settle()
        assert (await bound_to(stage, "data"))[0] == "Lost"
        lost = ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
        assert lost in await stage.events("data")

    on_stage(play, BINDER)


def test_a_claim_with_wait_for_first_consumer_stays_pending() -> None:
    async def play(stage: Stage) -> None:
        lazy = StorageClass(
            metadata=ObjectMeta(name="manual"),
            provisioner="kubernetes.io/no-provisioner",
            volume_binding_mode="WaitForFirstConsumer",
        )
        await stage.client.create(lazy)
        await stage.client.create(volume("disk", "2Gi"))
        await stage.client.create(claim("data", "1Gi"))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Pending", "")
        reasons = [reason for reason, _ in await stage.events("data")]
        assert reasons == ["WaitForFirstConsumer"]

    on_stage(play, BINDER)


def test_the_standard_class_provisions_a_directory_and_deletes_it_with_the_claim(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.run(
            lambda manager: add_controllers(
                manager,
                Options(volumes=tmp_path),
                without=set(CONTROLLERS) - {BINDER, CLAIM_PROTECTION, VOLUME_PROTECTION},
            )
        )
        await stage.settle()
        made = claim("data", "1Gi")
        made.spec.storage_class_name = None
        await stage.client.create(made)
        await stage.client.create(Node(metadata=ObjectMeta(name="a", labels={"kubernetes.io/hostname": "host-a"})))
        await stage.settle()
        assert await bound_to(stage, "data") == ("Pending", "")  # until a Pod uses it, for whose node it is made
        selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}}
        await stage.client.patch(PersistentVolumeClaim, "data", MergePatch(selected))
        await stage.settle()
        status, name = await bound_to(stage, "data")
        assert status == "Bound"
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o777  # whoever the Pod runs as
        found = await stage.client.get(PersistentVolume, name)
        assert found.spec.node_affinity is not None
        assert found.spec.node_affinity.required is not None
        [term] = found.spec.node_affinity.required.node_selector_terms
        assert [(each.key, each.values) for each in term.match_expressions] == [("kubernetes.io/hostname", ["host-a"])]
        await stage.client.delete(PersistentVolumeClaim, "data")
        await stage.settle()
        assert await stage.client.get(PersistentVolume, name, missing=None) is None
        assert not (tmp_path / name).exists()

    on_stage(play)


def test_a_claim_in_use_is_protected_until_the_pod_has_finished() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(claim("data", "1Gi"))
        source = PersistentVolumeClaimVolumeSource(claim_name="data")
        spec = PodSpec(
            node_name="a",
            containers=[Container(name="c", image="i")],
            volumes=[Volume(name="data", persistent_volume_claim=source)],
        )
        user = await stage.client.create(Pod(metadata=ObjectMeta(name="user"), spec=spec))
        await stage.settle()
        await stage.client.delete(PersistentVolumeClaim, "data")
        await stage.settle()
        assert await stage.client.get(PersistentVolumeClaim, "data", missing=None) is not None
        await stage.set_pod_status(user, phase="Succeeded")
        await stage.settle()
        assert await stage.client.get(PersistentVolumeClaim, "data", missing=None) is None

    on_stage(play, CLAIM_PROTECTION)


def test_a_bound_volume_is_protected_until_its_claim_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(volume("disk", "2Gi"))
        await stage.client.create(claim("data", "1Gi"))
        await stage.settle()
        await stage.client.delete(PersistentVolume, "disk")
        await stage.settle()
        assert await stage.client.get(PersistentVolume, "disk", missing=None) is not None
        await stage.client.delete(PersistentVolumeClaim, "data")
        await stage.settle()
        assert await stage.client.get(PersistentVolume, "disk", missing=None) is None

    on_stage(play, BINDER, VOLUME_PROTECTION, CLAIM_PROTECTION)


def test_an_attributes_class_is_kept_until_no_volume_and_no_claim_refers_to_it() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(attributes_class("fast"))
        source = CSIPersistentVolumeSource(driver="example.com", volume_handle="1")
        disk = volume("disk", "2Gi", host_path=None, csi=source, volume_attributes_class_name="fast")
        await stage.client.create(disk)
        wanted = claim("data", "1Gi")
        wanted.spec.volume_attributes_class_name = "fast"
        await stage.client.create(wanted)
        await stage.settle()
        await stage.client.delete(VolumeAttributesClass, "fast")
        for used_by in (PersistentVolume, PersistentVolumeClaim):
            await stage.settle()
            assert await stage.client.get(VolumeAttributesClass, "fast", missing=None) is not None
            await stage.client.delete(used_by, "disk" if used_by is PersistentVolume else "data")
        await stage.settle()
        assert await stage.client.get(VolumeAttributesClass, "fast", missing=None) is None

    on_stage(play, VOLUME_PROTECTION, CLAIM_PROTECTION, "volumeattributesclass-protection-controller")


def test_the_finalizer_of_an_attributes_class_is_restored() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(attributes_class("fast"))
        await stage.client.patch(VolumeAttributesClass, "fast", MergePatch({"metadata": {"finalizers": None}}))
        await stage.settle()
        found = await stage.client.get(VolumeAttributesClass, "fast")
        assert found.metadata.finalizers == ["kubernetes.io/vac-protection"]

    on_stage(play, "volumeattributesclass-protection-controller")
