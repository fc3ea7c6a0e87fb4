"""Removal of orphaned Pods when an agent starts: Pods that were deleted while no agent was running."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.node_clients import ClientOf
from ostinato.plane.node.static_pods import static_pod_uids
from ostinato.plane.node.volumes.mounts import unmount_entries
from ostinato.plane.node.volumes.trees import remove_tree


class PodInventory(Protocol):
    """A runtime that can list and remove Pods by their state on this machine."""

    async def pod_uids(self) -> list[str]:
        """Return the uids of all Pods with state on this machine."""

    async def remove(self, uid: str) -> None:
        """Kill the containers of a Pod and remove its state."""


class OrphanCleanup:
    """A runnable that removes orphaned Pods once, when the agent starts."""

    name = "node-cleanup"
    needs_leader_election = False

    def __init__(self, logs: Path, client_of: ClientOf) -> None:
        """`client_of`: sends requests as a node."""
        self._logs = logs
        self._client_of = client_of
        self._nodes: dict[str, tuple[Path, PodInventory]] = {}

    def add(self, node: str, directory: Path, inventory: PodInventory) -> None:
        """Add a node with its state directory and runtime."""
        self._nodes[node] = (directory, inventory)

    async def run(self, dependencies: Dependencies) -> None:
        found = {name: await inventory.pod_uids() for name, (_, inventory) in self._nodes.items()}
        logged = [*self._logs.iterdir()] if self._logs.is_dir() else []
        alive = static_pod_uids({name: directory / "manifests" for name, (directory, _) in self._nodes.items()})
        alive |= await self._alive(dependencies)  # listed after the inventory: a Pod bound meanwhile is not an orphan
        for name, (directory, inventory) in self._nodes.items():
            for uid in found[name]:
                if uid not in alive:
                    dependencies.logger.info("removing orphaned Pod uid=%s", uid)
                    await inventory.remove(uid)
                    await dependencies.world.executor.run(_remove_files, directory / "pods" / uid)
        for each in logged:
            if each.name.rpartition("_")[2] not in alive:
                await dependencies.world.executor.run(remove_tree, each)
        await asyncio.Event().wait()  # a runnable that returns stops the manager

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
