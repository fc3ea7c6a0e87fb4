"""A control plane whose node runs processes, and examples that run on it with the roles that are derived for them."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from ostinato import Manager, NamespacedName
from ostinato.cli.program.loading import find, load
from ostinato.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.client.views import MetadataOf
from ostinato.crd import roles_of
from ostinato.crd.program import access_of_managers, definitions_of_managers
from ostinato.kinds.apps_v1 import Deployment, StatefulSet
from ostinato.kinds.batch_v1 import CronJob, Job
from ostinato.kinds.core_v1 import Pod
from ostinato.manager.connecting import Purpose
from ostinato.manager.hosting import Host
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.standalone import Settings
from ostinato.world import World

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS = 60
_NONE: Mapping[str, str] = MappingProxyType({})
_ACCOUNT = NamespacedName("default", "example")
_USER = ("system:serviceaccount:default:example", ("system:serviceaccounts", "system:authenticated"))


def example(name: str) -> Any:
    """Load an example as `ostinato run` does."""
    return load(find(str(EXAMPLES / f"{name}.py")), Host())


@asynccontextmanager
async def running(server: Server, *runnables: Any) -> AsyncIterator[Manager]:
    """Run controllers with their definitions installed, as a service account that has the derived roles only."""

    def connect(purpose: Purpose) -> Transport:
        return InProcessTransport(server, user=_USER, user_agent=purpose.name, deadline=purpose.deadline)

    manager = Manager(connect=connect, world=server.world).add(*runnables)
    async with Client(InProcessTransport(server), world=server.world, field_manager="admin") as admin:
        roles = roles_of(access_of_managers([manager], namespace="default"), name="example", service_account=_ACCOUNT)
        for document in [*definitions_of_managers([manager]), *roles]:
            await admin.create(document)
    serving = asyncio.get_running_loop().create_task(manager.serve())
    try:
        yield manager
    finally:
        manager.stop()
        await serving


@asynccontextmanager
async def plane_with(directory: Path, *runnables: Any) -> AsyncIterator[Client]:
    """A plane in this process; Pods are processes, and are deleted at the end."""
    world = World.real()
    server = Settings(state=directory, port=0, store="memory")
    plane = Plane(world, PlaneSettings(server=server, nodes=1, runtime="process"))
    await plane.start()
    core = plane._server.core
    assert core is not None
    try:
        async with Client(plane.connect(Purpose()), world=world, namespace="default", field_manager="user") as user:
            try:
                async with asyncio.timeout(SECONDS), running(core, *runnables):
                    yield user
            finally:
                async with asyncio.timeout(SECONDS):
                    await _delete_workloads(user)
    finally:
        await plane.stop()
        world.executor.close()


async def _delete_workloads(user: Client) -> None:
    """Delete what has Pods, and wait for the end of their processes."""
    for kind in (CronJob, Job, Deployment, StatefulSet):
        await user.delete_all_of(kind, namespace="default", propagation="Background")
    while await user.list(MetadataOf(Pod)):
        await user.delete_all_of(Pod, namespace="default", grace_period=1)
        await asyncio.sleep(0.05)


async def fetch(url: str, method: str = "GET", body: str | None = None, headers: Mapping[str, str] = _NONE) -> str:
    """Send an HTTP request and return the body of the response."""

    def send() -> str:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=SECONDS)
        try:
            connection.request(method, parts._replace(scheme="", netloc="").geturl() or "/", body, headers)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(send)
