"""Volumes of a CSI driver in a plane with the process runtime: from a claim to a file in a container, and back."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.kinds.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount
from ostinato.kinds.storage_v1 import CSIDriver, CSIDriverSpec, CSINode, StorageClass, VolumeAttachment
from ostinato.plane.node import pod_worker
from ostinato.plane.node.volumes.mounts import can_mount
from ostinato.plane.parts import PlaneSettings
from ostinato.plane.plane import Plane
from ostinato.server.standalone import Settings
from ostinato.world import World
from tests.csi.driver import Driver

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not can_mount(), reason="mounts volumes: needs root")
SECONDS = 40.0


class Cluster:
    def __init__(self, plane: Plane, client: Client, driver: Driver, state: Path) -> None:
        self.plane = plane
        self.client = client
        self.driver = driver
        self.state = state

    async def until(self, condition: Callable[[], Awaitable[Any]], what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while not await condition():  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"{what}; calls: {self.driver.methods()}")


def dictionary(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def pod(name: str, script: str, volume: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "data", **volume}],
    }
    return dictionary("Pod", name, spec)


@asynccontextmanager
async def cluster(place: Path) -> AsyncIterator[Cluster]:
    (place / "volumes").mkdir()
    driver = Driver(place / "volumes", node="disk-host-7", max_volumes=2)
    settings = PlaneSettings(
        server=Settings(state=place / "plane", port=0, store="memory"),
        nodes=1,
        runtime="process",
        csi=(place / "csi.sock",),
    )
    registry = place / "plane" / "nodes" / "node-1" / "plugins_registry"
    world = World.real()
    plane = Plane(world, settings)
    await plane.start()
    try:
        async with Client.connect(Config.load(path=plane.kubeconfig), world=world) as client:
            made = Cluster(plane, client, driver, place)
            await client.wait_for(ServiceAccount, "default", lambda account: account is not None, timeout=SECONDS)
            await made.until(lambda: asyncio.to_thread(registry.is_dir), "registry")
            async with driver.listening(place / "csi.sock", registry / "reg.sock"):
                yield made
    finally:
        await plane.stop()


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short name: paths of sockets are limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="csi-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def test_a_claim_is_provisioned_attached_mounted_expanded_and_deleted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_worker, "VOLUME_SYNC", 1.0)

    async def play() -> None:
        async with cluster(place) as made:
            client, driver = made.client, made.driver
            await client.create(
                CSIDriver(metadata=ObjectMeta(name=driver.name), spec=CSIDriverSpec(attach_required=True))
            )
            await client.create(
                StorageClass(
                    metadata=ObjectMeta(name="dirs"),
                    provisioner=driver.name,
                    allow_volume_expansion=True,
                    volume_binding_mode="WaitForFirstConsumer",
                )
            )
            claim = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "dirs",
                "resources": {"requests": {"storage": "1Mi"}},
            }
            await client.create(dictionary("PersistentVolumeClaim", "notes", claim))
            script = "echo remember >/data/file; sleep 300"
            await client.create(pod("writer", script, {"persistentVolumeClaim": {"claimName": "notes"}}))

            async def is_running() -> bool:
                found = await client.get(Pod, "writer", namespace="default")
                return found.status.phase == "Running"

            await made.until(is_running, "the Pod does not run")
            (node,) = (await client.get(CSINode, "node-1")).spec.drivers
            assert (node.name, node.node_id) == (driver.name, "disk-host-7")
            assert node.allocatable is not None
            assert node.allocatable.count == 2
            (volume,) = await client.list(PersistentVolume)
            assert volume.spec.csi is not None
            assert volume.spec.csi.volume_attributes == {"made": "1"}
            handle = volume.spec.csi.volume_handle
            await made.until(
                lambda: asyncio.to_thread((made.state / "volumes" / handle / "file").exists),
                "the file is not in the volume",
            )
            status = (await client.get(Node, "node-1")).status
            unique = f"kubernetes.io/csi/{driver.name}^{handle}"
            assert status.volumes_in_use == [unique]
            assert [each.name for each in status.volumes_attached] == [unique]
            staged = next(request for method, request in driver.calls if method == "NodeStageVolume")
            assert staged["publish_context"] == {"device": f"/dev/{handle[-4:]}"}
            assert driver.methods() == [
                "CreateVolume",
                "ControllerPublishVolume",
                "NodeStageVolume",
                "NodePublishVolume",
            ]

            more = MergePatch({"spec": {"resources": {"requests": {"storage": "2Mi"}}}})
            await client.patch(PersistentVolumeClaim, "notes", more, namespace="default")

            async def is_expanded() -> bool:
                found = await client.get(PersistentVolumeClaim, "notes", namespace="default")
                return str(found.status.capacity["storage"]) == "2Mi" and not found.status.conditions

            await made.until(is_expanded, "the claim is not expanded")
            assert driver.methods()[-2:] == ["ControllerExpandVolume", "NodeExpandVolume"]
            driver.calls.clear()

            await client.delete(Pod, "writer", namespace="default")
            await client.delete(PersistentVolumeClaim, "notes", namespace="default")

            async def is_gone() -> bool:
                left = [*await client.list(PersistentVolume), *await client.list(VolumeAttachment)]
                return not left

            await made.until(is_gone, "the volume is not deleted")
            assert driver.methods() == [
                "NodeUnpublishVolume",
                "NodeUnstageVolume",
                "ControllerUnpublishVolume",
                "DeleteVolume",
            ]
            assert driver.mounted() == []
            assert driver.violations == []
            assert (await client.get(Node, "node-1")).status.volumes_in_use == []

    asyncio.run(play())
