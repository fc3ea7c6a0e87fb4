"""Removal of what an agent leaves behind: orphaned Pods when it starts, mounts when it stops.

Orphaned Pods were deleted while no agent was running.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.csi import CsiError
from ostinato.plane.node.node_clients import ClientOf
from ostinato.plane.node.static_pods import static_pod_uids
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.plane.node.volumes.mounts import unmount_entries
from ostinato.plane.node.volumes.trees import remove_tree

_RETRY: Final = 5.0  # seconds until volumes that could not be removed are tried again


class PodInventory(Protocol):
    """A runtime that can list and remove Pods by their state on this machine."""

    async def pod_uids(self) -> list[str]:
        """Return the uids of all Pods with state on this machine."""

    async def remove(self, uid: str) -> None:
        """Kill the containers of a Pod and remove its state."""


@runtime_checkable
class HoldsMounts(Protocol):
    """A runtime with mounts that only a running agent needs."""

    def release(self) -> None:
        """Unmount them; containers keep running."""


class _Node(NamedTuple):
    directory: Path
    inventory: PodInventory
    csi: CsiVolumes


class OrphanCleanup:
    """A runnable that removes orphaned Pods once, when the agent starts, and releases mounts when it stops."""

    name = "node-cleanup"
    needs_leader_election = False

    def __init__(self, logs: Path, client_of: ClientOf) -> None:
        """`client_of`: sends requests as a node."""
        self._logs = logs
        self._client_of = client_of
        self._nodes: dict[str, _Node] = {}

    def add(self, node: str, directory: Path, inventory: PodInventory, csi: CsiVolumes) -> None:
        """Add a node with its state directory, runtime and CSI volumes."""
        self._nodes[node] = _Node(directory, inventory, csi)

    async def run(self, dependencies: Dependencies) -> None:
        try:
            await self._remove_orphans(dependencies)
            await asyncio.Event().wait()  # a runnable that returns stops the manager
        finally:
            for node in self._nodes.values():
                if isinstance(node.inventory, HoldsMounts):
                    try:
                        node.inventory.release()
                    except OSError as error:
                        dependencies.logger.warning("mount not released error=%s", error)

    async def _remove_orphans(self, dependencies: Dependencies) -> None:
        found = {
            name: {*await node.inventory.pod_uids(), *await node.csi.pod_uids()} for name, node in self._nodes.items()
        }
        logged = [*self._logs.iterdir()] if self._logs.is_dir() else []
        alive = static_pod_uids({name: node.directory / "manifests" for name, node in self._nodes.items()})
        alive |= await self._alive(dependencies)  # listed after the inventory: a Pod bound meanwhile is not an orphan
        orphans = [(name, uid) for name, uids in found.items() for uid in sorted(uids - alive)]
        for name, uid in orphans:
            dependencies.logger.info("removing orphaned Pod uid=%s", uid)
            await self._nodes[name].inventory.remove(uid)
        for each in logged:
            if each.name.rpartition("_")[2] not in alive:
                await dependencies.world.executor.run(remove_tree, each)
        while orphans:
            orphans = [each for each in orphans if not await self._remove_volumes(*each, dependencies)]
            await dependencies.world.clock.sleep(_RETRY)

    async def _remove_volumes(self, name: str, uid: str, dependencies: Dependencies) -> bool:
        """Remove the volumes of a Pod; return False if a CSI driver cannot unmount one, or is not registered yet."""
        node = self._nodes[name]
        try:
            await node.csi.unmount(uid)
        except CsiError as error:
            dependencies.logger.warning("volumes of orphaned Pod not removed, retrying uid=%s error=%s", uid, error)
            return False
        await dependencies.world.executor.run(_remove_files, node.directory / "pods" / uid)
        return True

    async def _alive(self, dependencies: Dependencies) -> set[str]:
        """Return the uids of all Pods of these nodes on the API server; retried until they can be listed."""
        while True:
            try:
                return {
                    pod.metadata.uid
                    for node in self._nodes
                    async for pod in self._client_of(node).live.list(Pod, fields={"spec.nodeName": node})
                }
            except (APIError, TransportError) as error:
                dependencies.logger.warning("cannot list the Pods of the nodes, retrying error=%s", error)
                await dependencies.world.clock.sleep(5)


def _remove_files(directory: Path) -> None:
    """Remove the volumes and messages of a Pod. Blocks."""
    unmount_entries(directory / "volumes")
    remove_tree(directory)
