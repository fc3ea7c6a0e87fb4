"""Cluster of a test: an API server, clients, managers and faults.

    async with Cluster() as cluster:
        await cluster.manager().start(widgets)
        await cluster.client.create(Widget(...))
        await cluster.eventually(Deployment, "a")

- It starts when it is first used, and belongs to one test: nothing is left of it after `close`.
- `close` raises `UnexpectedErrors` if a controller failed and the test did not expect it.
- On a real cluster the test has a namespace of its own, which `close` deletes. CustomResourceDefinitions stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.client.client import Client
from ostinato.client.transport.protocol import Deadline, Transport
from ostinato.crd.definition import crd_of
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.testing.cleanup import delete_objects
from ostinato.testing.clock import VirtualClock
from ostinato.testing.errors import UnexpectedErrors
from ostinato.testing.events import Events
from ostinato.testing.eventually import Eventually
from ostinato.testing.faults import AnyError, Fault, Faults, Match
from ostinato.testing.manager import ClusterManager
from ostinato.testing.servers import EmbeddedServer, RemoteServer, TestServer
from ostinato.testing.transport import ClusterTransport, Identity
from ostinato.world import World

_FIELD_MANAGER = "ostinato-testing"
_ESTABLISHED_SECONDS = 30.0


class MatchOptions(TypedDict, total=False):
    """
    - `on`: the kind of the object, or its resource: "pods", "pods/status". Defaults to all.
    - `verb`: get, list, watch, create, update, patch, apply, delete or deletecollection. Defaults to all.
    - `name`, `namespace`: of the object. Default to all.
    - `subresource`: such as "status"; "" is the object itself. Defaults to both.
    """

    on: Any
    verb: str
    name: str
    namespace: str
    subresource: str | None


class Cluster:
    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        nodes: int | None = None,
        world: World | None = None,
    ) -> None:
        """
        - `kubeconfig`: of a real cluster. Defaults to a server in this process.
        - `nodes`: run controllers, scheduler and so many simulated nodes, so that Pods run. Defaults to None: the API
          server alone. A real cluster has nodes of its own; without one it raises `NotOnThisCluster`.
        - `world`: a `Simulation` for virtual time. Defaults to real time.
        """
        self._owns_world = world is None
        self.world = world or World.real()
        self._server: TestServer = EmbeddedServer(self.world, nodes)
        if kubeconfig is not None:
            self._server = RemoteServer(self.world, kubeconfig, needs_nodes=nodes is not None)
        self._faults = Faults(self.world)
        self._starting: asyncio.Task[None] | None = None
        self._clients: list[Client] = []
        self._managers: list[ClusterManager] = []
        self._installed: dict[str, Any] = {}  # definitions by name
        self._closed = False
        self.client: Client = self._new_client(ClusterTransport(self._opener(None)))
        """Client of an administrator. Faults do not affect it."""
        self.eventually = Eventually(self)
        self.events = Events(self)

    @property
    def namespace(self) -> str:
        """Namespace of objects without one: "default", or the test's own on a real cluster."""
        return self._server.namespace

    @property
    def is_real(self) -> bool:
        """Whether it is a cluster outside of this process."""
        return self._server.narrows

    @property
    def patience(self) -> float:
        """Seconds that `eventually` waits: 10, with a control plane 30."""
        return self._server.patience

    @property
    def managers(self) -> Sequence[ClusterManager]:
        return self._managers

    @property
    def clock(self) -> VirtualClock:
        """The clock of a cluster in virtual time; `NotOnThisCluster` in real time."""
        return VirtualClock(self.world)

    def client_as(self, user: str, *groups: str) -> Client:
        """Return a client of another user, whose requests RBAC decides. Faults affect it."""
        identity = Identity(user, (*groups, "system:authenticated"))
        return self._new_client(ClusterTransport(self._opener(identity), faults=self._faults))

    def manager(self, *, rbac: bool = True, **options: Any) -> ClusterManager:  # Any: options of Manager
        """Return a new manager; call its `start`.

        - `rbac`: its controllers have only the permissions that `ostinato manifests` derives. With False they are
          administrators. Defaults to True.
        - `options`: those of `ostinato.Manager`.
        """
        name = "controllers" if not self._managers else f"controllers-{len(self._managers) + 1}"
        made = ClusterManager(self, name, rbac=rbac, **options)
        self._managers.append(made)
        return made

    async def install(self, *definitions: Any) -> None:  # Any: a kind's class, a CustomResourceDefinition, a file
        """Install CustomResourceDefinitions: of classes, as objects, or from YAML files and directories."""
        await self.start()
        wanted = {each["metadata"]["name"]: each for given in definitions for each in _definitions(given)}
        for name, definition in wanted.items():
            if self._installed.get(name) == definition:
                continue
            await self.client.apply(definition, force=True, field_manager=_FIELD_MANAGER)
            await self.client.wait_for(CustomResourceDefinition, name, "Established", timeout=_ESTABLISHED_SECONDS)
            self._installed[name] = definition

    def fail(
        self,
        *,
        next: AnyError,  # noqa: A002 - reads as English
        times: int | None = 1,
        processed: bool = False,
        **match: Unpack[MatchOptions],
    ) -> Fault:
        """Let the next matching request of a controller fail.

        - `next`: class or instance of an API error (`Conflict`), or of another error (`ConnectionLost`).
        - `times`: number of requests. Defaults to 1; None is every request.
        - `processed`: the server processes the request; only its response is lost. Defaults to False.
        - Conflict, AlreadyExists and Invalid match only writes, unless `verb` says otherwise.
        """
        return self._faults.fail(next, Match(**match), times, processed=processed)

    def delay(self, seconds: float, *, times: int | None = 1, **match: Unpack[MatchOptions]) -> Fault:
        """Delay the next matching request of a controller."""
        return self._faults.delay(seconds, Match(**match), times)

    def lose_watches(self, **match: Unpack[MatchOptions]) -> int:
        """End the open watches of controllers, as a lost connection does; return their number."""
        return self._faults.lose_watches(Match(**match))

    # Lifecycle

    async def start(self) -> None:
        """Start the cluster. No effect if it has started."""
        if self._closed:
            raise RuntimeError("the cluster is closed; each test needs a cluster of its own")
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._server.start(), name="test cluster")
        await asyncio.shield(self._starting)

    async def close(self) -> None:
        """Stop everything; raise `UnexpectedErrors` if something failed in the background. No effect if closed."""
        if self._closed:
            return
        try:
            if self._starting is not None and self.is_real:
                await delete_objects(self.client, self.namespace, self._installed.values(), self.world)
            for manager in reversed(self._managers):
                await manager.end()
            problems = [text for manager in self._managers for text in manager.unread_errors()]
            problems += [
                f"cluster.{fault}: no request matched; remove it, or correct it" for fault in self._faults.unused
            ]
        finally:
            await self._release()
        if problems:
            raise UnexpectedErrors("\n".join(problems))

    async def _release(self) -> None:
        self._closed = True
        try:
            for client in self._clients:
                await client.close()
            if self._starting is not None:
                await asyncio.wait([self._starting])
                if self._starting.exception() is None:
                    await self._server.close()
        finally:
            if self._owns_world:
                self.world.executor.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self._release()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except UnexpectedErrors as problems:
            if error is None:
                raise
            if str(problems) not in str(error):
                error.add_note(str(problems))  # the test's own failure comes first

    async def changed(self) -> None:
        """Wait until objects may have changed."""
        await self._server.changed()

    def opener(self, identity: Identity | None) -> Callable[[Deadline | None], Awaitable[Transport]]:
        """Return what opens a transport for a user, after the cluster has started; for managers."""
        return self._opener(identity)

    @property
    def faults(self) -> Faults:
        return self._faults

    def _opener(self, identity: Identity | None) -> Callable[[Deadline | None], Awaitable[Transport]]:
        async def open_(deadline: Deadline | None) -> Transport:
            await self.start()
            return self._server.connect(identity, deadline)

        return open_

    def _new_client(self, transport: ClusterTransport) -> Client:
        client = Client(transport, world=self.world, namespace=self.namespace, field_manager="test")
        self._clients.append(client)
        return client


def _definitions(given: Any) -> Iterable[dict[str, Any]]:
    if isinstance(given, type):
        return [crd_of(given)]
    if isinstance(given, str | Path):
        path = Path(given)
        files = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        found = [each for file in files for each in decode_yaml_documents(file.read_bytes())]
        return [each for each in found if each and each.get("kind") == "CustomResourceDefinition"]
    return [given]
