"""CSI volumes that Pods have by claims: their expansion on the node, and their periodic refresh."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from ostinato.plane.csi import CsiError
from ostinato.plane.node.volumes.csi.sources import CsiSource, of_inline_volume, of_persistent_volume
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes

_STORAGE: Final = "storage"
_PENDING: Final = ("NodeResizePending", "NodeResizeInProgress")
_RESIZING: Final = ("Resizing", "FileSystemResizePending", "NodeResizeError", "ControllerResizeError")
_logger = logging.getLogger(__name__)


class ClaimObjects(Protocol):
    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    async def persistent_volume(self, name: str) -> PersistentVolume | None: ...

    async def set_claim_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> None: ...


class CsiClaims:
    def __init__(self, volumes: CsiVolumes, objects: ClaimObjects) -> None:
        self.volumes = volumes
        self._objects = objects

    async def refresh(self, pod: Pod) -> list[str]:
        """Publish volumes again whose drivers ask for it, and expand those that have grown; return the latter."""
        expanded = []
        for volume in pod.spec.volumes:
            if volume.csi is None and volume.persistent_volume_claim is None and volume.ephemeral is None:
                continue
            try:
                claim, source = await self._find(pod, volume)
                if source is not None:
                    await self.volumes.republish(pod, source)
                    if claim is not None and await self.expand(pod, claim, source):
                        expanded.append(source.name)
            except (CsiError, APIError, TransportError) as error:
                where = f"{pod.metadata.namespace}/{pod.metadata.name}"
                _logger.warning("volume not refreshed pod=%s volume=%s error=%s", where, volume.name, error)
        return expanded

    async def expand(self, pod: Pod, claim: PersistentVolumeClaim, source: CsiSource) -> bool:
        """Expand a mounted volume if its claim waits for the node; return whether it did."""
        if not _waits_for_node(claim) or source.capacity is None:
            return False
        namespace, name = claim.metadata.namespace, claim.metadata.name
        in_progress = {"allocatedResourceStatuses": {_STORAGE: "NodeResizeInProgress"}}
        await self._objects.set_claim_status(namespace, name, in_progress)
        if not await self.volumes.expand(pod, source):
            raise CsiError(f"NodeExpand is not supported by the CSI driver {source.driver}")
        conditions = [to_dict(each) for each in claim.status.conditions if each.type not in _RESIZING]
        done = {
            "capacity": {_STORAGE: str(source.capacity)},
            "allocatedResourceStatuses": {_STORAGE: None},
            "conditions": conditions or None,
        }
        await self._objects.set_claim_status(namespace, name, done)
        return True

    async def _find(self, pod: Pod, volume: Volume) -> tuple[PersistentVolumeClaim | None, CsiSource | None]:
        if volume.csi is not None:
            return None, of_inline_volume(pod, volume, volume.csi)
        named = volume.persistent_volume_claim
        name = f"{pod.metadata.name}-{volume.name}" if named is None else named.claim_name
        claim = await self._objects.claim(pod.metadata.namespace, name)
        if claim is None or not claim.spec.volume_name:
            return None, None
        found = await self._objects.persistent_volume(claim.spec.volume_name)
        read_only = named is not None and bool(named.read_only)
        return claim, None if found is None else of_persistent_volume(found, read_only=read_only)


def _waits_for_node(claim: PersistentVolumeClaim) -> bool:
    """Return whether the controller has expanded the volume, and the node has not."""
    status = claim.status
    if status.allocated_resource_statuses.get(_STORAGE) in _PENDING:
        return True
    return any(each.type == "FileSystemResizePending" and each.status == "True" for each in status.conditions)
