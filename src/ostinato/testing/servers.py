"""Servers of a test: an API server in this process, with or without the control plane; or that of a kubeconfig."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ostinato.api.errors import AlreadyExists
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.config.config import Config, Impersonation
from ostinato.client.transport.protocol import Deadline, Transport
from ostinato.kinds.core_v1 import Namespace, Node, ServiceAccount
from ostinato.manager import Manager
from ostinato.manager.connecting import Purpose, over_http
from ostinato.server.core import Server
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.testing.errors import NotOnThisCluster
from ostinato.testing.snapshot import NAMESPACE, snapshot
from ostinato.testing.transport import Identity
from ostinato.world import World

_SECONDS: Final = 10.0  # for a condition, on a busy machine
_SECONDS_OF_PODS: Final = 30.0  # if controllers and nodes take part
_POLL: Final = 0.2  # seconds between checks of a condition, if the server is in another process
_LABEL: Final = "ostinato.dev/test"


class TestServer(ABC):
    """
    - `namespace`: of objects without one.
    - `patience`: seconds that a condition may take. Shorter in this process.
    - `narrows`: whether controllers watch the namespace only: others use the same server.
    """

    __test__ = False  # not a test class, for pytest

    namespace: str
    patience: float
    narrows: bool

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    def connect(self, identity: Identity | None, deadline: Deadline | None = None) -> Transport:
        """Return a transport for a user; None is an administrator. Requires `start`."""

    @abstractmethod
    async def changed(self) -> None:
        """Wait until objects may have changed."""

    @abstractmethod
    async def close(self) -> None:
        """Remove everything; raise the error of a component that has failed."""


class EmbeddedServer(TestServer):
    """`nodes`: number of simulated nodes of the control plane. Defaults to None: no control plane."""

    namespace = NAMESPACE
    narrows = False

    def __init__(self, world: World, nodes: int | None = None) -> None:
        self._world = world
        self._nodes = nodes
        self.patience = _SECONDS if nodes is None else _SECONDS_OF_PODS
        self._server: Server | None = None
        self._plane: Manager | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._server = Server(self._world, await snapshot(self._world))
        await self._server.start(bootstrapped=True)
        if self._nodes is not None:
            self._start_plane(self._server, self._nodes)

    def connect(self, identity: Identity | None, deadline: Deadline | None = None) -> Transport:
        assert self._server is not None, "connect() needs start()"
        return InProcessTransport(self._server, user=identity or ADMINISTRATOR, deadline=deadline)

    async def changed(self) -> None:
        assert self._server is not None, "changed() needs start()"
        await self._server.index.wait_for(self._server.index.version + 1)

    async def close(self) -> None:
        if self._plane is not None and self._serving is not None:
            self._plane.stop()
            await asyncio.wait([self._serving])
        if self._server is not None:
            await self._server.close()
        if self._serving is not None:
            self._serving.result()

    def _start_plane(self, server: Server, nodes: int) -> None:
        from ostinato.plane import scheduler  # noqa: PLC0415 - only with a control plane
        from ostinato.plane.access import identities  # noqa: PLC0415
        from ostinato.plane.controllers import Options, add_controllers  # noqa: PLC0415
        from ostinato.plane.node import fleet  # noqa: PLC0415
        from ostinato.plane.parts import manager_of_plane  # noqa: PLC0415

        def connect(purpose: Purpose) -> Transport:
            user = identities.user_and_groups(purpose.identity or identities.MANAGER)
            return InProcessTransport(server, user=user, deadline=purpose.deadline)

        plane = self._plane = manager_of_plane(connect, self._world, graceful_shutdown=0.0)
        add_controllers(plane, Options())
        scheduler.add_to(plane)
        for name, endpoint in fleet.add_to(plane, nodes, "simulated").items():
            server.nodes.add(name, endpoint)
        self._serving = asyncio.get_running_loop().create_task(plane.serve(), name="control plane")


class RemoteServer(TestServer):
    """The server of a kubeconfig; its user must be an administrator. `needs_nodes`: refuse a cluster without nodes."""

    patience = _SECONDS_OF_PODS
    narrows = True

    def __init__(self, world: World, kubeconfig: str | Path, *, needs_nodes: bool = False) -> None:
        self._world = world
        self._needs_nodes = needs_nodes
        self.namespace = f"test-{world.ids.suffix(8)}"
        self._config = Config.load(path=kubeconfig, namespace=self.namespace)

    async def start(self) -> None:
        async with self._client() as client:
            if self._needs_nodes and not any([_is_ready(node) async for node in client.list(Node)]):
                raise NotOnThisCluster("no Node of the cluster is Ready, so that Pods would not run")
            await client.create(Namespace(metadata=ObjectMeta(name=self.namespace, labels={_LABEL: "true"})))
            with suppress(AlreadyExists):  # admission requires it for Pods; kube-controller-manager may not run
                await client.create(ServiceAccount(metadata=ObjectMeta(name="default")))

    def connect(self, identity: Identity | None, deadline: Deadline | None = None) -> Transport:
        config = self._config
        if identity is not None:
            config = replace(config, impersonate=Impersonation(user=identity.user, groups=identity.groups))
        return over_http(config, self._world)(Purpose(deadline=deadline))

    async def changed(self) -> None:
        await self._world.clock.sleep(_POLL)

    async def close(self) -> None:
        async with self._client() as client:
            await client.delete(Namespace, self.namespace, missing_ok=True)

    def _client(self) -> Client:
        return Client(self.connect(None), world=self._world, namespace=self.namespace)


def _is_ready(node: Node) -> bool:
    conditions = [] if node.status is None else node.status.conditions
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
