"""Volume manager: mounts the volumes of a node's Pods, refreshes projected ones, and detects excessive usage."""

from __future__ import annotations

import shutil
from typing import Final

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.static_pods import SEEN, SOURCE
from ostinato.plane.node.volumes.contents import ProjectedContents
from ostinato.plane.node.volumes.csi.claims import CsiClaims
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.plane.node.volumes.mounter import MountedVolume, VolumeMounter
from ostinato.plane.node.volumes.trees import size_of
from ostinato.world import World

_MINIMUM_FREE: Final = 0.05  # fraction of the disk below which Pods with large volumes are evicted
_LARGE: Final = 100 << 20  # bytes


class VolumeManager:
    """Manages the volumes of one node. `objects`: source of projected content. `csi`: the volumes of CSI drivers."""

    def __init__(self, config: NodeConfig, objects: ObjectReader, csi: CsiVolumes, world: World) -> None:
        self._config = config
        self._objects = objects
        self._csi = CsiClaims(csi, objects)
        self._executor = world.executor
        contents = ProjectedContents(objects, config.addresses, config.allocatable)
        memory = config.allocatable.get("memory", Quantity(0)).value()
        self._mounter = VolumeMounter(config.directory / "pods", objects, contents, self._csi, world, memory)

    async def mount(self, pod: Pod, seen: Time) -> dict[str, MountedVolume]:
        """Mount the volumes of a Pod and return them by name; `MountError` if one is not available."""
        return await self._mounter.mount(_with_source(pod, seen))

    async def refresh(self, pod: Pod, seen: Time) -> list[str]:
        """Update volumes of objects and of CSI drivers; return the PersistentVolumes that were expanded."""
        await self._mounter.refresh(_with_source(pod, seen))
        return await self._csi.refresh(pod)

    async def unmount(self, pod: Pod) -> None:
        """Remove the volumes and cached tokens of a terminated Pod; `CsiError` if a driver cannot unmount one."""
        await self._csi.volumes.unmount(pod.metadata.uid)
        await self._executor.run(self._mounter.unmount, pod)
        self._objects.forget_tokens(pod)

    async def eviction_message(self, pod: Pod) -> str:
        """Return why a Pod must be evicted for the size of its emptyDir volumes; empty if it need not."""
        if all(volume.empty_dir is None for volume in pod.spec.volumes):
            return ""
        return await self._executor.run(self._eviction_message, pod)

    def _eviction_message(self, pod: Pod) -> str:
        disk = shutil.disk_usage(self._config.directory)
        is_low = disk.free < disk.total * _MINIMUM_FREE
        for volume, directory in self._mounter.empty_directories(pod):
            assert volume.empty_dir is not None
            limit = volume.empty_dir.size_limit
            if limit and size_of(directory, limit.value()) > limit.value():
                return f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}". '
            if is_low and size_of(directory, _LARGE) > _LARGE:
                return "The node was low on resource: ephemeral-storage. "
        return ""


def _with_source(pod: Pod, seen: Time) -> Pod:
    """Return the Pod with the annotations that kubelet sets: when it was seen, and its source."""
    if not pod.spec.volumes:
        return pod
    annotations = {**pod.metadata.annotations, SEEN: str(seen), SOURCE: pod.metadata.annotations.get(SOURCE, "api")}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))
