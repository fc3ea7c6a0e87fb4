"""The demo's control plane, with one node whose containers are processes.

- Objects are kept in memory; certificates and container files in a temporary directory that is removed.
- It needs no privileges.
- However the demo ends, its Pods are deleted first, and their processes with them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.api.errors import APIError
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.cli.page.paged_plane import PagedPlane
from ostinato.client import Client, Config, TransportError
from ostinato.client.views import MetadataOf
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from ostinato.kinds.core_v1 import Container, EnvVar, Pod, PodSpec, PodTemplateSpec
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.world import World

NAMESPACE: Final = "default"
NODE: Final = "node-1"
WEB: Final = "web"
_LABELS: Final = {"app": WEB}
_DELETE_SECONDS: Final = 10.0  # limit for the Pods' deletion

# Prints its process id; ends on SIGTERM, or when the demo's process has ended. Kubernetes expands `$$` to a dollar.
_SCRIPT: Final = (
    "trap 'exit 0' TERM; echo process $$$$ of $IMAGE; while kill -0 $DEMO 2>/dev/null; do sleep 1 & wait $!; done"
)


class DemoCluster(NamedTuple):
    plane: Plane
    paged: PagedPlane | None  # the same with a page, if it has one


@asynccontextmanager
async def demo_cluster(world: World, page: str = "", *, page_writes: bool = False) -> AsyncIterator[DemoCluster]:
    """Start a control plane; on exit remove it and its containers. `page`: address of a live page of it."""
    directory = Path(tempfile.mkdtemp(prefix="ostinato-demo-"))
    server = Settings(state=directory, port=0, store="memory")
    settings = PlaneSettings(server=server, nodes=1, runtime="process")
    paged = PagedPlane(world, settings, page, writes=page_writes) if page else None
    plane = paged.plane if paged is not None else Plane(world, settings)
    served = paged or plane
    try:
        await served.start()
        try:
            yield DemoCluster(plane, paged)
        finally:
            with suppress(APIError, TransportError, TimeoutError):
                await _delete_pods(plane, world)
            await served.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def connect(plane: Plane, world: World) -> Client:
    """Return a client that uses HTTPS and the admin kubeconfig."""
    config = Config.load(path=plane.kubeconfig, namespace=NAMESPACE)
    return Client.connect(config, world=world, field_manager="ostinato-demo")


def web(replicas: int, image: str) -> Deployment:
    """Return the Deployment of the demo; its containers run a shell script."""
    variables = [EnvVar(name="IMAGE", value=image), EnvVar(name="DEMO", value=str(os.getpid()))]
    container = Container(name="main", image=image, command=["sh", "-c", _SCRIPT], env=variables)
    # hostPID: the demo kills a container's process, and containers check that the demo's process is alive.
    pod = PodSpec(containers=[container], termination_grace_period_seconds=2, host_pid=True)
    return Deployment(
        metadata=ObjectMeta(name=WEB),
        spec=DeploymentSpec(
            replicas=replicas,
            strategy=DeploymentStrategy(  # all new Pods first, then the old ones: the fewest lines
                rolling_update=RollingUpdateDeployment(max_surge="100%", max_unavailable=0)
            ),
            selector=LabelSelector(match_labels=_LABELS),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=_LABELS), spec=pod),
        ),
    )


async def _delete_pods(plane: Plane, world: World) -> None:
    async with connect(plane, world) as client, world.clock.timeout(_DELETE_SECONDS):
        await client.delete(Deployment, WEB, propagation="Background", missing_ok=True)
        while await client.list(MetadataOf(Pod), namespace=NAMESPACE):
            await world.clock.sleep(0.05)
