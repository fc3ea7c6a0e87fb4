"""Volumes of a CSI driver on a node: in which order the driver is called, and what is left when something fails."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.csi.driver import Driver, Refusal

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.grpc import Code
from ostinato.kinds.core_v1 import (
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    LocalObjectReference,
    PersistentVolume,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Secret,
    SecretReference,
    Volume,
)
from ostinato.kinds.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    TokenRequest,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from ostinato.plane.csi import CsiError, attachment_name
from ostinato.plane.node.volumes.contents import Token
from ostinato.plane.node.volumes.csi.drivers import NodeDrivers
from ostinato.plane.node.volumes.csi.sources import CsiSource, of_inline_volume, of_persistent_volume
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.plane.node.volumes.mounts import can_mount, unmount
from ostinato.plane.node.volumes.ownership import Owner
from ostinato.world import World


class Objects:
    """What the API server has."""

    def __init__(self) -> None:
        self.drivers: dict[str, CSIDriver] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.attached: set[str] = set()  # status.volumesAttached
        self.secrets: dict[str, dict[str, bytes]] = {}

    async def secret(self, namespace: str, name: str) -> Secret | None:
        data = self.secrets.get(f"{namespace}/{name}")
        return None if data is None else Secret(data=data)

    async def csi_driver(self, name: str) -> CSIDriver | None:
        return self.drivers.get(name)

    async def volume_attachment(self, name: str) -> VolumeAttachment | None:
        return self.attachments.get(name)

    async def volumes_attached(self, node: str) -> set[str]:
        return self.attached

    async def issue_token(self, pod: Pod, asked: Any) -> Token:
        return Token(f"token for {asked.audience}", Time.parse("2026-01-02T03:04:05Z"))

    def describe(self, **spec: Any) -> None:
        spec = {"attach_required": False} | spec
        self.drivers[Driver.name] = CSIDriver(metadata=ObjectMeta(name=Driver.name), spec=CSIDriverSpec(**spec))


class InUse:
    """`status.volumesInUse`."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def add(self, name: str, mounted: set[str]) -> None:
        self.names |= mounted | {name}

    async def remove(self, name: str, mounted: set[str]) -> None:
        self.names.discard(name)


class Node:
    def __init__(self, directory: Path, driver: Driver) -> None:
        self.directory = directory
        self.driver = driver
        self.objects = Objects()
        self.in_use = InUse()
        self.drivers = NodeDrivers(World.real().clock)
        self.objects.describe()
        self.volumes = self.start()

    def start(self) -> CsiVolumes:
        """Start an agent, in place of an earlier one."""
        self.volumes = CsiVolumes(
            "node-1",
            self.directory,
            self.drivers,
            self.objects,
            self.in_use,  # type: ignore[arg-type]
            World.real(),
        )
        return self.volumes

    def left(self) -> list[str]:
        """Files and mounts that remain."""
        files = [str(each) for each in self.directory.rglob("vol_data.json")]
        return files + self.driver.mounted() + sorted(self.in_use.names)


def pod(uid: str = "u1", **spec: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name=f"p-{uid}", namespace="default", uid=uid), spec=PodSpec(containers=[], **spec))


def source(name: str = "pv-1", **more: Any) -> CsiSource:
    csi = {"driver": Driver.name, "volume_handle": name, "fs_type": "ext4"} | more
    modes = ["ReadWriteOnce"]
    spec = PersistentVolumeSpec(
        csi=CSIPersistentVolumeSource(**csi), access_modes=modes, capacity={"storage": Quantity("1Gi")}
    )
    found = of_persistent_volume(PersistentVolume(metadata=ObjectMeta(name=name), spec=spec), read_only=False)
    assert found is not None
    return found


Play = Callable[[Node], Awaitable[None]]


@pytest.fixture
def on_node(tmp_path: Path) -> Iterator[Callable[..., None]]:
    made: list[Driver] = []

    def run(play: Play, **options: Any) -> None:
        (tmp_path / "volumes").mkdir()
        driver = Driver(tmp_path / "volumes", **options)
        made.append(driver)

        async def whole() -> None:
            async with driver.listening(tmp_path / "csi.sock"):
                node = Node(tmp_path / "node", driver)
                await node.drivers.add(driver.name, driver.socket)
                await play(node)
                await node.drivers.close()

        asyncio.run(whole())
        assert driver.violations == []

    yield run
    for driver in made:
        for path in driver.mounted():
            if can_mount():
                unmount(Path(path))


def test_a_volume_is_staged_once_and_published_for_each_pod(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        first = await node.volumes.mount(pod("u1"), source(), Owner())
        second = await node.volumes.mount(pod("u2"), source(), Owner())
        assert first != second
        assert node.in_use.names == {f"kubernetes.io/csi/{Driver.name}^pv-1"}
        await node.volumes.unmount("u1")
        await node.volumes.unmount("u2")
        assert node.driver.methods() == [
            "NodeStageVolume",
            "NodePublishVolume",
            "NodePublishVolume",
            "NodeUnpublishVolume",
            "NodeUnpublishVolume",
            "NodeUnstageVolume",
        ]
        assert node.left() == []

    on_node(play)


def test_requests_contain_what_the_volume_and_its_csi_driver_say(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.objects.describe(pod_info_on_mount=True, token_requests=[TokenRequest(audience="vault")])
        node.objects.secrets |= {"ns/stage": {"key": b"s"}, "ns/publish": {"key": b"p"}}
        wanted = source(
            volume_attributes={"a": "b"},
            node_stage_secret_ref=SecretReference(namespace="ns", name="stage"),
            node_publish_secret_ref=SecretReference(namespace="ns", name="publish"),
        )
        target = await node.volumes.mount(pod(service_account_name="robot"), wanted, Owner())
        stage, publish = (request for method, request in node.driver.calls if method.endswith("Volume"))
        staging = stage["staging_target_path"]
        assert staging.startswith(f"{node.directory}/plugins/kubernetes.io/csi/{Driver.name}/")
        capability = {"mount": {"fs_type": "ext4"}, "access_mode": {"mode": 1}}
        assert stage == {
            "volume_id": "pv-1",
            "staging_target_path": staging,
            "volume_capability": capability,
            "secrets": {"key": "s"},
            "volume_context": {"a": "b"},
        }
        assert str(target) == f"{node.directory}/pods/u1/volumes/kubernetes.io~csi/pv-1/mount"
        assert publish == {
            "volume_id": "pv-1",
            "staging_target_path": staging,
            "target_path": str(target),
            "volume_capability": capability,
            "readonly": False,
            "secrets": {"key": "p"},
            "volume_context": {
                "a": "b",
                "csi.storage.k8s.io/ephemeral": "false",
                "csi.storage.k8s.io/pod.name": "p-u1",
                "csi.storage.k8s.io/pod.namespace": "default",
                "csi.storage.k8s.io/pod.uid": "u1",
                "csi.storage.k8s.io/serviceAccount.name": "robot",
                "csi.storage.k8s.io/serviceAccount.tokens": (
                    '{"vault":{"token":"token for vault","expirationTimestamp":"2026-01-02T03:04:05Z"}}'
                ),
            },
        }
        await node.volumes.unmount("u1")

    on_node(play)


def test_an_inline_volume_is_published_alone_with_a_handle_of_its_own(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.objects.describe(volume_lifecycle_modes=["Ephemeral"])
        node.objects.secrets["default/s"] = {"k": b"v"}
        csi = CSIVolumeSource(driver=Driver.name, node_publish_secret_ref=LocalObjectReference(name="s"))
        wanted = of_inline_volume(pod(), Volume(name="scratch", csi=csi), csi)
        await node.volumes.mount(pod(), wanted, Owner())
        (published,) = [request for method, request in node.driver.calls if method == "NodePublishVolume"]
        assert published["volume_id"] == f"csi-{hashlib.sha256(b'u1scratch').hexdigest()}"
        assert published["secrets"] == {"k": "v"}
        assert "staging_target_path" not in published
        await node.volumes.unmount("u1")
        assert node.driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
        assert node.left() == []

    on_node(play)


def test_a_driver_without_a_csidriver_has_no_inline_volumes(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.objects.drivers.clear()
        csi = CSIVolumeSource(driver=Driver.name)
        with pytest.raises(CsiError, match=r"'Ephemeral' not supported by driver .* \(no CSIDriver object\)"):
            await node.volumes.mount(pod(), of_inline_volume(pod(), Volume(name="v", csi=csi), csi), Owner())

    on_node(play)


def test_a_volume_waits_until_it_is_attached_and_gets_the_publish_context(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.objects.describe(attach_required=True)
        mounting = asyncio.ensure_future(node.volumes.mount(pod(), source(), Owner()))
        await asyncio.sleep(0.05)
        assert node.driver.methods() == []
        assert node.in_use.names  # before the attachment is relied upon
        name = attachment_name("pv-1", Driver.name, "node-1")
        spec = VolumeAttachmentSpec(
            attacher=Driver.name, node_name="node-1", source=VolumeAttachmentSource(persistent_volume_name="pv-1")
        )
        status = VolumeAttachmentStatus(attached=True, attachment_metadata={"device": "/dev/x"})
        node.objects.attachments[name] = VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec, status=status)
        await asyncio.sleep(0.3)
        assert node.driver.methods() == []  # the controller may be about to detach it
        node.objects.attached = {f"kubernetes.io/csi/{Driver.name}^pv-1"}
        await mounting
        contexts = [request["publish_context"] for _, request in node.driver.calls if "publish_context" in request]
        assert contexts == [{"device": "/dev/x"}] * 2
        await node.volumes.unmount("u1")
        assert node.left() == []

    on_node(play)


def test_a_pod_that_is_deleted_while_its_volume_is_attached_uses_it_no_more(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.objects.describe(attach_required=True)
        mounting = asyncio.ensure_future(node.volumes.mount(pod(), source(), Owner()))
        await asyncio.sleep(0.05)
        mounting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mounting
        assert node.left() == []

    on_node(play)


def test_unmounting_waits_for_the_call_of_a_cancelled_mount(on_node: Callable[..., None]) -> None:
    """Otherwise the driver would publish after it has unpublished."""

    async def play(node: Node) -> None:
        for number in range(30):
            mounting = asyncio.ensure_future(node.volumes.mount(pod(), source(), Owner()))
            for _ in range(number):
                await asyncio.sleep(0)
            mounting.cancel()
            await asyncio.gather(mounting, return_exceptions=True)
            await node.volumes.unmount("u1")
            assert node.left() == []

    on_node(play)


def test_an_agent_that_was_killed_leaves_what_the_next_one_finds(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        node.driver.calls.clear()
        node.start()
        await node.volumes.mount(pod(), source(), Owner())  # the Pod had no container yet
        if can_mount():
            assert node.driver.methods() == []  # it is mounted
        node.start()
        assert await node.volumes.pod_uids() == ["u1"]
        await node.volumes.unmount("u1")
        assert node.driver.methods()[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        assert node.left() == []

    on_node(play)


@pytest.mark.parametrize("method", ["NodeStageVolume", "NodePublishVolume"])
def test_a_failed_mount_is_repeated_and_undone(method: str, on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.driver.fail[method] = Refusal(Code.INTERNAL, "disk on fire")
        with pytest.raises(CsiError, match="rpc error: code = Internal desc = disk on fire"):
            await node.volumes.mount(pod(), source(), Owner())
        await node.volumes.unmount("u1")  # the Pod is deleted
        assert node.left() == []
        node.driver.fail.clear()
        await node.volumes.mount(pod(), source(), Owner())
        await node.volumes.unmount("u1")
        assert node.left() == []

    on_node(play)


@pytest.mark.parametrize("method", ["NodeUnpublishVolume", "NodeUnstageVolume"])
def test_a_failed_unmount_keeps_its_record_until_it_succeeds(method: str, on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        node.driver.fail[method] = Refusal(Code.ABORTED, "busy")
        with pytest.raises(CsiError, match="busy"):
            await node.volumes.unmount("u1")
        assert node.in_use.names
        node.driver.fail.clear()
        await node.volumes.unmount("u1")
        assert node.left() == []

    on_node(play)


def test_a_driver_that_is_not_registered_keeps_the_volume(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        await node.drivers.remove(Driver.name)
        with pytest.raises(CsiError, match="not found in the list of registered CSI drivers"):
            await node.volumes.unmount("u1")
        await node.drivers.add(Driver.name, node.driver.socket)
        await node.volumes.unmount("u1")
        assert node.left() == []

    on_node(play)


def test_a_hanging_call_of_one_volume_delays_no_other(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        node.driver.hang.add("NodeStageVolume")
        hanging = asyncio.ensure_future(node.volumes.mount(pod("u1"), source("pv-1"), Owner()))
        await node.driver.hung.wait()
        node.driver.hang.clear()
        await node.volumes.mount(pod("u2"), source("pv-2"), Owner())
        await node.volumes.unmount("u2")
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        unmounting = asyncio.ensure_future(node.volumes.unmount("u1"))
        await asyncio.sleep(0.02)
        assert not unmounting.done()  # it waits for the driver
        await node.drivers.close()  # the driver dies
        with pytest.raises(CsiError):
            await unmounting
        await node.drivers.add(Driver.name, node.driver.socket)
        await node.volumes.unmount("u1")
        assert node.left() == []

    on_node(play)


def test_a_driver_that_does_not_stage_is_only_asked_to_publish(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        await node.volumes.unmount("u1")
        assert node.driver.methods() == ["NodePublishVolume", "NodeUnpublishVolume"]
        assert node.left() == []

    on_node(play, node_capabilities=frozenset())


def test_a_volume_is_published_again_if_its_driver_requires_it(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        await node.volumes.republish(pod(), source())
        node.objects.describe(requires_republish=True)
        await node.volumes.republish(pod(), source())
        assert node.driver.methods().count("NodePublishVolume") == 2
        await node.volumes.unmount("u1")

    on_node(play)


def test_usage_and_expansion_are_the_drivers(on_node: Callable[..., None]) -> None:
    async def play(node: Node) -> None:
        await node.volumes.mount(pod(), source(), Owner())
        (usage,) = (await node.volumes.usage("u1"))["pv-1"]
        assert usage["total"] > usage["used"] > 0
        assert await node.volumes.expand(pod(), source())
        method, request = node.driver.calls[-1]
        assert (method, request["capacity_range"]) == ("NodeExpandVolume", {"required_bytes": 1 << 30})
        await node.volumes.unmount("u1")

    on_node(play)
