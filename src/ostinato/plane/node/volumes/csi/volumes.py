"""CSI volumes of a node's Pods: staged once a node, published once a Pod, and undone in reverse.

- Operations on one volume run one after the other, each to its end: a Pod that is deleted meanwhile waits for the call
  of the driver that is under way, and undoes it then.
- What may be mounted is recorded on disk before the driver is called: an agent that was killed at any point leaves
  nothing that the next one does not find. Drivers' calls are idempotent, as CSI demands.
- A published volume is not published again, unless its CSIDriver says so (`requiresRepublish`).
- A driver that does not answer fails the operation after two minutes; it is repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ostinato.kinds.core_v1 import Pod
from ostinato.kinds.storage_v1 import CSIDriver
from ostinato.plane.csi import CsiError, attachment_name, unique_volume_name
from ostinato.plane.csi.volumes import NODE_EXPANDS, NODE_HAS_STATS, NODE_MOUNTS_WITH_GROUP, NODE_STAGES
from ostinato.plane.node.private_files import make_directory
from ostinato.plane.node.volumes.csi.attachments import VolumesInUse, wait_for_attachment
from ostinato.plane.node.volumes.csi.drivers import NodeDriver, NodeDrivers
from ostinato.plane.node.volumes.csi.records import Record, Records
from ostinato.plane.node.volumes.csi.requests import (
    CsiObjects,
    applies_group,
    capability_of,
    check_mode,
    publish_request,
    secrets_of,
)
from ostinato.plane.node.volumes.csi.sources import CsiSource
from ostinato.plane.node.volumes.mounts import is_mount_point
from ostinato.plane.node.volumes.ownership import Owner, set_volume_group
from ostinato.world import World

R = TypeVar("R")
_logger = logging.getLogger(__name__)


class _Use(NamedTuple):
    """A volume that a Pod uses. `described`: the CSIDriver of its driver, if it has one."""

    pod: Pod
    source: CsiSource
    owner: Owner
    described: CSIDriver | None
    driver: NodeDriver

    @property
    def is_attached(self) -> bool:
        """Whether the volume must be attached to the node first."""
        is_required = self.described is None or self.described.spec.attach_required is not False
        return is_required and not self.source.is_ephemeral


class CsiVolumes:
    """The CSI volumes of one node. `directory`: of the node's state."""

    def __init__(
        self, node: str, directory: Path, drivers: NodeDrivers, objects: CsiObjects, in_use: VolumesInUse, world: World
    ) -> None:
        self._node = node
        self._drivers = drivers
        self._objects = objects
        self._in_use = in_use
        self._records = Records(directory)
        self._clock = world.clock
        self._executor = world.executor
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._operations: dict[str, set[asyncio.Task[Any]]] = {}  # under way, by uid of the Pod
        self._mounting: Counter[str] = Counter()  # Pods whose volume is being mounted, by its unique name
        self._staged: set[tuple[str, str]] = set()  # by this agent: another one's are staged again, which is a no-op

    # Mount

    async def mount(self, pod: Pod, source: CsiSource, owner: Owner) -> Path:
        """Mount a volume for a Pod and return its path; `CsiError` if the driver fails."""
        described = await self._objects.csi_driver(source.driver)
        check_mode(source, described)
        if source.is_block:
            raise CsiError("volumeMode Block is not supported by this node")
        use = _Use(pod, source, owner, described, self._drivers.get(source.driver))
        if source.is_ephemeral:
            return await self._exclusively(pod.metadata.uid, source.volume, lambda: self._mount(use, {}))
        name = unique_volume_name(*source.volume)
        self._mounting[name] += 1
        try:
            await self._in_use.add(name, await self._executor.run(self._mounted))
            context: dict[str, str] = {}
            if use.is_attached:
                context = await wait_for_attachment(source.volume, self._node, self._objects, self._clock)
            return await self._exclusively(pod.metadata.uid, source.volume, lambda: self._mount(use, context))
        finally:
            self._mounting[name] -= 1
            await self._release(name)

    async def _mount(self, use: _Use, context: dict[str, str]) -> Path:
        source = use.source
        target = self._records.target(use.pod.metadata.uid, source.name)
        if is_mount_point(target):
            return target
        record = Record(
            spec_vol_id=source.name,
            volume_handle=source.handle,
            driver_name=source.driver,
            node_name=self._node,
            volume_lifecycle_mode="Ephemeral" if source.is_ephemeral else "Persistent",
            attachment_id=attachment_name(source.handle, source.driver, self._node),
        )
        await self._executor.run(self._records.write, target, record)
        if not source.is_ephemeral and await use.driver.has(NODE_STAGES) and source.volume not in self._staged:
            await self._stage(use, context)
        await self._publish(use, context)
        return target

    async def _stage(self, use: _Use, context: dict[str, str]) -> None:
        source = use.source
        path = self._records.staging(*source.volume)
        secrets = await secrets_of(source.stage_secret, "NodeStageSecretRef", self._objects)
        record = Record(volume_handle=source.handle, driver_name=source.driver)
        await self._executor.run(self._records.write, path, record)
        make_directory(path)
        request = {
            "volume_id": source.handle,
            "publish_context": context,
            "staging_target_path": str(path),
            "volume_capability": await capability_of(source, use.driver, use.owner),
            "secrets": secrets,
            "volume_context": dict(source.attributes),
        }
        await use.driver.service.call("NodeStageVolume", request)
        self._staged.add(source.volume)

    async def _publish(self, use: _Use, context: dict[str, str]) -> None:
        source, driver = use.source, use.driver
        target = self._records.target(use.pod.metadata.uid, source.name)
        request = {
            "volume_id": source.handle,
            "publish_context": context,
            "target_path": str(target),
            "volume_capability": await capability_of(source, driver, use.owner),
            "readonly": source.read_only,
            **await publish_request(use.pod, source, use.described, self._objects),
        }
        if not source.is_ephemeral and await driver.has(NODE_STAGES):
            request["staging_target_path"] = str(self._records.staging(*source.volume))
        await driver.service.call("NodePublishVolume", request)
        if not await driver.has(NODE_MOUNTS_WITH_GROUP) and applies_group(source, use.described, use.owner):
            await self._executor.run(set_volume_group, target, use.owner)

    async def republish(self, pod: Pod, source: CsiSource) -> None:
        """Publish a mounted volume again, if its CSIDriver says so; drivers renew tokens and contents then."""
        described = await self._objects.csi_driver(source.driver)
        target = self._records.target(pod.metadata.uid, source.name)
        if described is None or not described.spec.requires_republish or not target.exists():
            return
        use = _Use(pod, source, Owner(), described, self._drivers.get(source.driver))
        context: dict[str, str] = {}
        if use.is_attached:
            context = await wait_for_attachment(source.volume, self._node, self._objects, self._clock)
        await self._exclusively(pod.metadata.uid, source.volume, lambda: self._publish(use, context))

    # Expansion and usage

    async def expand(self, pod: Pod, source: CsiSource) -> bool:
        """Expand a mounted volume to the capacity of its PersistentVolume; False if its driver cannot on the node."""
        driver = self._drivers.get(source.driver)
        if not await driver.has(NODE_EXPANDS) or source.capacity is None:
            return False
        request: dict[str, Any] = {
            "volume_id": source.handle,
            "volume_path": str(self._records.target(pod.metadata.uid, source.name)),
            "capacity_range": {"required_bytes": source.capacity.value()},
            "volume_capability": await capability_of(source, driver, Owner()),
            "secrets": await secrets_of(source.expand_secret, "NodeExpandSecretRef", self._objects),
        }
        if await driver.has(NODE_STAGES):
            request["staging_target_path"] = str(self._records.staging(source.driver, source.handle))
        uid = pod.metadata.uid
        await self._exclusively(uid, source.volume, lambda: driver.service.call("NodeExpandVolume", request))
        return True

    async def usage(self, uid: str) -> dict[str, list[dict[str, Any]]]:
        """Return the usage of a Pod's volumes, as drivers report it, by the name of their records."""
        found = {}
        for _, target, record in await self._executor.run(self._published, uid):
            try:
                driver = self._drivers.get(record.driver_name)
                if await driver.has(NODE_HAS_STATS):
                    request = {"volume_id": record.volume_handle, "volume_path": str(target)}
                    answer = await driver.service.call("NodeGetVolumeStats", request)
                    found[record.spec_vol_id] = answer.get("usage", [])
            except CsiError as error:
                _logger.debug("no usage of volume=%s error=%s", record.spec_vol_id, error)
        return found

    # Unmount

    async def unmount(self, uid: str) -> None:
        """Unmount all volumes of a Pod; `CsiError` if a driver fails: then call it again."""
        if operations := self._operations.get(uid):
            await asyncio.wait(operations)  # of a mount that was cancelled
        for _, target, record in await self._executor.run(self._published, uid):
            await self._exclusively(uid, record.volume, partial(self._unmount, uid, target, record))

    async def _unmount(self, uid: str, target: Path, record: Record) -> None:
        driver = self._drivers.get(record.driver_name)
        request = {"volume_id": record.volume_handle, "target_path": str(target)}
        others = [
            found
            for owner, path, found in await self._executor.run(self._published, "*")
            if found.volume == record.volume and (owner, path) != (uid, target)
        ]
        await driver.service.call("NodeUnpublishVolume", request)
        if not record.is_ephemeral and not others:  # before the record is removed: it is found again if this fails
            await self._unstage(driver, record)
        await self._executor.run(self._records.remove, target)
        if not record.is_ephemeral:
            await self._release(unique_volume_name(*record.volume))

    async def _unstage(self, driver: NodeDriver, record: Record) -> None:
        path = self._records.staging(*record.volume)
        if path.exists() and await driver.has(NODE_STAGES):
            self._staged.discard(record.volume)
            request = {"volume_id": record.volume_handle, "staging_target_path": str(path)}
            await driver.service.call("NodeUnstageVolume", request)
        await self._executor.run(self._records.remove, path)

    async def pod_uids(self) -> list[str]:
        """Return the uids of the Pods that have CSI volumes on this node."""
        return sorted({uid for uid, _, _ in await self._executor.run(self._published, "*")})

    # One operation at a time

    async def _exclusively(
        self, uid: str, volume: tuple[str, str], operation: Callable[[], Coroutine[Any, Any, R]]
    ) -> R:
        """Run an operation on a Pod's volume after those before it; once begun, it ends even if the caller does not."""
        lock = self._locks.setdefault(volume, asyncio.Lock())
        await lock.acquire()
        task = asyncio.get_running_loop().create_task(operation())
        operations = self._operations.setdefault(uid, set())
        operations.add(task)

        def completed(_task: asyncio.Task[R]) -> None:
            lock.release()
            operations.discard(task)
            if not operations:
                self._operations.pop(uid, None)
            if not task.cancelled():
                task.exception()  # the caller has it, or was cancelled

        task.add_done_callback(completed)
        return await asyncio.shield(task)

    async def _release(self, name: str) -> None:
        """Report that a volume is not in use any more, unless it is."""
        mounted = await self._executor.run(self._mounted)
        if name not in mounted and not self._mounting[name]:
            del self._mounting[name]
            await self._in_use.remove(name, mounted)

    def _published(self, uid: str) -> list[tuple[str, Path, Record]]:
        return [*self._records.published(uid)]

    def _mounted(self) -> set[str]:
        """Return the unique names of all persistent volumes that are or may be mounted. Blocks."""
        published = {record.volume for _, _, record in self._records.published() if not record.is_ephemeral}
        return {
            unique_volume_name(*each) for each in published | {record.volume for _, record in self._records.staged()}
        }
