"""The stage: a plane for the length of a play, with one node whose containers are processes, of which nothing is left.

It keeps its objects in memory, and its certificates and the containers' files in a directory that it removes. It needs
no privileges. However the play ends, its Pods are deleted first, and their processes with them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.meta import LabelSelector, ObjectMeta
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
_CLEARED: Final = 10.0  # seconds that Pods get to be gone

# It says which process it is, and ends when it is told to, or when the play is no more. `$$` is a dollar to Kubernetes.
_SCRIPT: Final = (
    "trap 'exit 0' TERM; echo process $$$$ of $IMAGE; while kill -0 $PLAY 2>/dev/null; do sleep 1 & wait $!; done"
)


@asynccontextmanager
async def stage(world: World) -> AsyncIterator[Plane]:
    """A plane that has started; afterwards neither it nor its containers are there."""
    directory = Path(tempfile.mkdtemp(prefix="ostinato-demo-"))
    server = Settings(state=directory, port=0, store="memory")
    plane = Plane(world, PlaneSettings(server=server, nodes=1, runtime="process"))
    try:
        await plane.start()
        try:
            yield plane
        finally:
            with suppress(APIError, TransportError, TimeoutError):
                await _clear(plane, world)
            await plane.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def connected(plane: Plane, world: World) -> Client:
    """A client as any other."""
    config = Config.load(path=plane.kubeconfig, namespace=NAMESPACE)
    return Client.connect(config, world=world, field_manager="ostinato-demo")


def web(replicas: int, image: str) -> Deployment:
    """What is applied: containers of nothing but a shell."""
    variables = [EnvVar(name="IMAGE", value=image), EnvVar(name="PLAY", value=str(os.getpid()))]
    container = Container(name="main", image=image, command=["sh", "-c", _SCRIPT], env=variables)
    # The machine's process ids, for the play kills one of them, and containers look after the play's.
    pod = PodSpec(containers=[container], termination_grace_period_seconds=2, host_pid=True)
    return Deployment(
        metadata=ObjectMeta(name=WEB),
        spec=DeploymentSpec(
            replicas=replicas,
            strategy=DeploymentStrategy(  # all that are new at once, then the old away: the shortest to tell
                rolling_update=RollingUpdateDeployment(max_surge="100%", max_unavailable=0)
            ),
            selector=LabelSelector(match_labels=_LABELS),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=_LABELS), spec=pod),
        ),
    )


async def _clear(plane: Plane, world: World) -> None:
    async with connected(plane, world) as client, world.clock.timeout(_CLEARED):
        await client.delete(Deployment, WEB, propagation="Background", missing_ok=True)
        while await client.list(MetadataOf(Pod), namespace=NAMESPACE):
            await world.clock.sleep(0.05)
