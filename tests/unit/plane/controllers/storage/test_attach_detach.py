"""Attachments of CSI volumes to nodes. The driver's attacher is played by the tests."""

from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers.storage.test_volumes import claim, volume

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import (
    Container,
    CSIPersistentVolumeSource,
    Node,
    PersistentVolume,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
)
from ostinato.kinds.storage_v1 import CSIDriver, CSIDriverSpec, VolumeAttachment
from ostinato.plane.csi import attachment_name

CONTROLLERS = ("persistentvolume-attach-detach-controller", "persistentvolume-binder-controller")
DRIVER = "dirs.csi"
UNIQUE = f"kubernetes.io/csi/{DRIVER}^disk"


def pod(name: str, node: str) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    spec = PodSpec(
        node_name=node,
        containers=[Container(name="a", image="i")],
        volumes=[Volume(name="data", persistent_volume_claim=source)],
        termination_grace_period_seconds=0,
    )
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


async def prepared(stage: Stage, **more: Any) -> None:
    """Two nodes, and a claim that is bound to a volume of the driver."""
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    for name in ("n1", "n2"):
        await stage.client.create(Node(metadata=ObjectMeta(name=name, annotations=annotations)))
    disk = CSIPersistentVolumeSource(driver=DRIVER, volume_handle="disk")
    await stage.client.create(volume("pv", "1Gi", host_path=None, csi=disk, **more))
    await stage.client.create(claim("data", "1Gi"))
    await stage.settle()


async def attachments(stage: Stage) -> list[str]:
    return sorted(each.spec.node_name for each in await stage.client.list(VolumeAttachment))


async def attached(stage: Stage, node: str) -> list[str]:
    return [each.name for each in (await stage.client.get(Node, node)).status.volumes_attached]


async def set_attached(stage: Stage, node: str) -> None:
    change = MergePatch({"status": {"attached": True}})
    await stage.client.patch(VolumeAttachment, attachment_name("disk", DRIVER, node), change, subresource="status")
    await stage.settle()


async def set_in_use(stage: Stage, node: str, *names: str) -> None:
    change = MergePatch({"status": {"volumesInUse": list(names) or None}})
    await stage.client.patch(Node, node, change, subresource="status")
    await stage.settle()


def test_a_volume_is_attached_while_a_pod_uses_it_and_the_node_has_it_mounted() -> None:
    async def play(stage: Stage) -> None:
        await prepared(stage)
        await stage.client.create(pod("p", "n1"))
        await stage.settle()
        (found,) = await stage.client.list(VolumeAttachment)
        assert found.metadata.name == attachment_name("disk", DRIVER, "n1")
        assert (found.spec.attacher, found.spec.source.persistent_volume_name) == (DRIVER, "pv")
        assert await attached(stage, "n1") == []
        await set_attached(stage, "n1")
        assert await attached(stage, "n1") == [UNIQUE]
        events = [reason for reason, _ in await stage.events("p")]
        assert events == ["SuccessfulAttachVolume"]
        await set_in_use(stage, "n1", UNIQUE)
        await stage.client.delete(Pod, "p", grace_period=0)
        await stage.settle()
        assert await attachments(stage) == ["n1"]  # the node has not unmounted it
        assert await attached(stage, "n1") == [UNIQUE]
        await set_in_use(stage, "n1")
        assert await attachments(stage) == []
        assert await attached(stage, "n1") == []

    on_stage(play, *CONTROLLERS)


def test_a_volume_for_one_node_is_attached_to_the_next_after_the_first_detached_it() -> None:
    async def play(stage: Stage) -> None:
        await prepared(stage)
        await stage.client.create(pod("p1", "n1"))
        await stage.settle()
        await set_attached(stage, "n1")
        await set_in_use(stage, "n1", UNIQUE)
        await stage.client.create(pod("p2", "n2"))
        await stage.settle()
        assert await attachments(stage) == ["n1"]
        ((reason, message),) = await stage.events("p2")
        assert reason == "FailedAttachVolume"
        assert message.startswith('Waiting for detach for volume "pv" Volume is already exclusively attached')
        await stage.client.delete(Pod, "p1", grace_period=0)
        await set_in_use(stage, "n1")
        assert await attachments(stage) == ["n2"]

    on_stage(play, *CONTROLLERS)


def test_a_shared_volume_is_attached_to_several_nodes() -> None:
    async def play(stage: Stage) -> None:
        await prepared(stage, access_modes=["ReadWriteOnce", "ReadWriteMany"])
        for name in ("1", "2"):
            await stage.client.create(pod(f"p{name}", f"n{name}"))
        await stage.settle()
        assert await attachments(stage) == ["n1", "n2"]

    on_stage(play, *CONTROLLERS)


def test_a_driver_that_does_not_attach_has_no_attachments() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(
            CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(attach_required=False))
        )
        await prepared(stage)
        await stage.client.create(pod("p", "n1"))
        await stage.settle()
        assert await attachments(stage) == []
        assert (await stage.client.get(PersistentVolume, "pv")).status.phase == "Bound"

    on_stage(play, *CONTROLLERS)


def test_a_node_that_does_not_answer_is_overruled_after_six_minutes() -> None:
    async def play(stage: Stage) -> None:
        await prepared(stage)
        await stage.client.create(pod("p", "n1"))
        await stage.settle()
        await set_attached(stage, "n1")
        await set_in_use(stage, "n1", UNIQUE)
        now = stage.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": now}
        change = MergePatch({"status": {"conditions": [ready]}})
        await stage.client.patch(Node, "n1", change, subresource="status")
        await stage.client.delete(Pod, "p", grace_period=0)
        await stage.world.clock.sleep(300)
        assert await attachments(stage) == ["n1"]
        await stage.world.clock.sleep(90)
        assert await attachments(stage) == []

    on_stage(play, *CONTROLLERS)
