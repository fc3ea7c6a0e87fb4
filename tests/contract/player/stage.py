"""Stage: a server, its observer, and its nodes, either simulated or with agents."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contract.player.kubectl import Kubectl
from tests.contract.player.nodes import PlayedNodes
from tests.contract.player.observer import Observer
from tests.contract.player.server import Server


class Stage:
    def __init__(self, server: Server, observer: Observer, nodes: PlayedNodes, kubectl: Kubectl | None) -> None:
        self.server = server
        self.observer = observer
        self.nodes = nodes
        self._kubectl = kubectl
        self.agents = False  # whether the nodes have agents instead of being simulated
        self.pool: list[str] = []  # nodes that all scenarios share
        self.patience, self.quiet = 15.0, 1.5  # timeout of a wait, and seconds without writes for a settle

    @property
    def kubectl(self) -> Kubectl:
        if self._kubectl is None:
            raise TypeError("this stage was opened without a kubectl")
        return self._kubectl

    @asynccontextmanager
    async def common_nodes(self) -> AsyncIterator[None]:
        """Add three large nodes, for scenarios without their own."""
        pool = [f"pool-{i}-{random.randrange(16**6):06x}" for i in range(1, 4)]
        self.pool = pool
        await self.nodes.add({name: {"capacity": {"cpu": "64", "memory": "256Gi"}} for name in pool})
        try:
            yield
        finally:
            for name in pool:
                await self.nodes.remove(name)


@asynccontextmanager
async def plane(kubeconfig: Path) -> AsyncIterator[Stage]:
    """A server with controllers and a scheduler; its nodes are simulated."""
    async with Server.of_kubeconfig(kubeconfig) as server:
        nodes = PlayedNodes(server)
        observer = Observer(server, nodes.observe)
        try:
            await observer.start()
            yield Stage(server, observer, nodes, None)
        finally:
            await observer.stop()
            await nodes.close()


@asynccontextmanager
async def cluster(kubeconfig: Path, kubectl: Kubectl) -> AsyncIterator[Stage]:
    """A server that has a ready node with an agent."""
    async with Server.of_kubeconfig(kubeconfig) as server:
        observer = Observer(server)
        stage = Stage(server, observer, PlayedNodes(server), kubectl)
        stage.agents = True
        stage.pool = await server.ready_nodes()
        stage.patience, stage.quiet = 60.0, 2.5
        assert stage.pool, f"{kubeconfig}: the server has no ready node"
        try:
            await observer.start()
            yield stage
        finally:
            await observer.stop()
