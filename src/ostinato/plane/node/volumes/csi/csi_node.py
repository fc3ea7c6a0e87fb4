"""What a node publishes of its CSI drivers: the CSINode, and annotation and topology labels of the Node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ostinato.api.errors import AlreadyExists, Conflict
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import reference_to
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.kinds.core_v1 import Node
from ostinato.kinds.storage_v1 import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from ostinato.plane.csi import CsiError

_NODE_ID: Final = "csi.volume.kubernetes.io/nodeid"
_MOST_VOLUMES: Final = (1 << 31) - 1
_ATTEMPTS: Final = 5  # at a write that conflicts with another


class CsiNodePublisher:
    """Writes for one node."""

    def __init__(self, node: str, client: Client) -> None:
        self._node = node
        self._client = client

    async def ensure(self) -> CSINode:
        """Return the CSINode; create it if it does not exist."""
        found = await self._client.get(CSINode, self._node, missing=None)
        if found is not None:
            return found
        owner = reference_to(await self._client.get(Node, self._node))
        metadata = ObjectMeta(name=self._node, owner_references=[owner])
        try:
            return await self._client.create(CSINode(metadata=metadata, spec=CSINodeSpec(drivers=[])))
        except AlreadyExists:
            return await self._client.get(CSINode, self._node)

    async def publish(self, driver: str, info: Mapping[str, Any]) -> None:
        """Publish a driver. `info`: its NodeGetInfoResponse."""
        identity = info.get("node_id", "")
        if not identity:
            raise CsiError("error adding CSI driver node info: driverNodeID must not be empty")
        topology: dict[str, str] = info.get("accessible_topology", {}).get("segments", {})
        await self._publish_on_node(driver, identity, topology)
        limit = min(info.get("max_volumes_per_node", 0), _MOST_VOLUMES)
        wanted = CSINodeDriver(
            name=driver,
            node_id=identity,
            topology_keys=sorted(topology),
            allocatable=VolumeNodeResources(count=limit) if limit > 0 else None,
        )
        await self._write_drivers(driver, wanted)

    async def withdraw(self, driver: str) -> None:
        """Remove a driver; its topology labels stay, as kubelet's do: other drivers may share them."""
        await self._publish_on_node(driver, None, {})
        await self._write_drivers(driver, None)

    async def _publish_on_node(self, driver: str, identity: str | None, topology: Mapping[str, str]) -> None:
        for _ in range(_ATTEMPTS):
            node = await self._client.get(Node, self._node)
            text = node.metadata.annotations.get(_NODE_ID, "")
            known = msgspec.json.decode(text, type=dict[str, str]) if text else {}
            wanted = {name: value for name, value in known.items() if name != driver}
            if identity is not None:
                wanted[driver] = identity
            for key, value in topology.items():
                if node.metadata.labels.get(key, value) != value:
                    raise CsiError(
                        f"detected topology value collision: driver reported {key!r}:{value!r} but existing "
                        f"label is {key!r}:{node.metadata.labels[key]!r}"
                    )
            if wanted == known and topology.items() <= node.metadata.labels.items():
                return
            encoded = msgspec.json.encode(dict(sorted(wanted.items()))).decode() if wanted else None
            metadata = {
                "resourceVersion": node.metadata.resource_version,
                "annotations": {_NODE_ID: encoded},
                "labels": dict(topology),
            }
            try:
                await self._client.patch(Node, self._node, MergePatch({"metadata": metadata}))
            except Conflict:
                continue
            return
        raise CsiError(f"Node {self._node}: the node id of {driver} was not written: too many conflicts")

    async def _write_drivers(self, driver: str, wanted: CSINodeDriver | None) -> None:
        for _ in range(_ATTEMPTS):
            found = await self.ensure()
            others = [each for each in found.spec.drivers if each.name != driver]
            drivers = others if wanted is None else [*others, wanted]
            if sorted(drivers, key=lambda each: each.name) == sorted(found.spec.drivers, key=lambda each: each.name):
                return
            found.spec.drivers = drivers
            try:
                await self._client.update(found)
            except Conflict:
                continue
            return
        raise CsiError(f"CSINode {self._node}: the driver {driver} was not written: too many conflicts")
