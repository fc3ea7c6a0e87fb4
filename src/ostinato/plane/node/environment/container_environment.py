"""Container environment: everything that a container is launched with, and the files that it writes to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ostinato.kinds.core_v1 import Container, Pod, Service, VolumeMount
from ostinato.plane.node.containers.log_paths import directory_of, log_of
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.plane.node.environment.service_variables import service_variables
from ostinato.plane.node.environment.variables import PodFacts, environment_of
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.runtimes import Launch, Mount, StartError
from ostinato.plane.node.volumes import MountedVolume, SubPathError, open_subpath
from ostinato.plane.node.volumes.trees import remove_tree
from ostinato.world import World


class ContainerEnvironment:
    """Builds launch requests for the containers of one node."""

    def __init__(self, config: NodeConfig, objects: ObjectReader, world: World) -> None:
        self._config = config
        self._objects = objects
        self._executor = world.executor

    async def launch(
        self,
        pod: Pod,
        container: Container,
        attempt: int,
        pod_ips: Sequence[str],
        volumes: Mapping[str, MountedVolume],
    ) -> Launch:
        """Return the launch request of a container; `StartError` if something that it refers to is missing."""
        facts = PodFacts(
            self._config.addresses,
            pod_ips,
            self._config.allocatable,
            self._service_variables(await self._objects.services(pod), pod_ips),
            {name: each.path for name, each in volumes.items()},
        )
        environment = await environment_of(pod, container, self._objects, facts)
        return Launch(
            pod=pod,
            container=container,
            attempt=attempt,
            command=[expand(each, environment) for each in container.command],
            arguments=[expand(each, environment) for each in container.args],
            environment=environment,
            mounts=[_mount(each, container, volumes, environment) for each in container.volume_mounts],
            log=self.log(pod, container.name, attempt),
            message=self._create_termination_message(pod, container.name, attempt),
        )

    async def runtime_handler(self, name: str) -> str:
        """Return the handler of a RuntimeClass; `NotFound` if it does not exist."""
        return await self._objects.runtime_handler(name)

    def _service_variables(self, services: list[Service], pod_ips: Sequence[str]) -> dict[str, str]:
        """Return the variables of Services. Pods on the machine's network get the API server's own address.

        There the address of its Service may not answer, or lead to another cluster on the same machine.
        """
        variables = service_variables(services)
        server = urlsplit(self._config.api_server)
        if [*pod_ips[:1]] == [self._config.address] and server.hostname and "KUBERNETES_SERVICE_HOST" in variables:
            port = str(server.port or 443)
            variables |= {
                "KUBERNETES_SERVICE_HOST": server.hostname,
                "KUBERNETES_SERVICE_PORT": port,
                "KUBERNETES_SERVICE_PORT_HTTPS": port,
            }
        return variables

    def log(self, pod: Pod, container: str, attempt: int) -> Path:
        """Return the log file of an attempt."""
        return log_of(self._config.logs, pod, container, attempt)

    def termination_message(self, pod: Pod, container: str, attempt: int) -> Path:
        """Return the termination message file of an attempt."""
        return self._messages(pod) / f"{container}-{attempt}"

    async def discard(self, pod: Pod) -> None:
        """Remove the termination message files of a terminated Pod; its logs stay until it is deleted."""
        await self._executor.run(remove_tree, self._messages(pod))

    def remove_logs(self, pod: Pod) -> None:
        """Remove the logs of a deleted Pod. Blocks."""
        remove_tree(directory_of(self._config.logs, pod))

    def _messages(self, pod: Pod) -> Path:
        return self._config.directory / "pods" / pod.metadata.uid / "messages"

    def _create_termination_message(self, pod: Pod, container: str, attempt: int) -> Path:
        path = self.termination_message(pod, container, attempt)
        for each in (path.parent.parent, path.parent):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        created = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(created, 0o666)  # writable by any user of the container; the directory is private to the node
        finally:
            os.close(created)
        return path


def _mount(
    asked: VolumeMount, container: Container, volumes: Mapping[str, MountedVolume], environment: Mapping[str, str]
) -> Mount:
    if asked.name not in volumes:
        message = f"cannot find volume {asked.name!r} to mount into container {container.name!r}"
        raise StartError("CreateContainerConfigError", message.replace("'", '"'))
    volume, sub_path = volumes[asked.name], asked.sub_path or ""
    if asked.sub_path_expr:
        missing: list[str] = []
        sub_path = expand(asked.sub_path_expr, environment, missing)
        if missing:
            raise StartError("CreateContainerConfigError", f"missing value for {missing[0]}")
    if sub_path and not volume.image:
        try:
            os.close(open_subpath(volume.path, sub_path, make=True))
        except SubPathError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except OSError:  # the error would expose host paths to the Pod's author
            text = f'failed to prepare subPath for volumeMount "{asked.name}" of container "{container.name}"'
            raise StartError("CreateContainerConfigError", text) from None
    return Mount(volume.path, asked.mount_path, bool(asked.read_only) or volume.read_only, sub_path, volume.image)
