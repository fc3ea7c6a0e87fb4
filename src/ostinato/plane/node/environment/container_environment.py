"""Supplies: what containers are given by their node: variables, volumes, and places to write to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ostinato.api.object import Object
from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.client.client import Client
from ostinato.kinds.core_v1 import (
    ConfigMap,
    Container,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
    ServiceAccountTokenProjection,
    VolumeMount,
)
from ostinato.plane.node.containers.log_paths import directory_of, log_of
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.environment.service_variables import service_variables
from ostinato.plane.node.environment.variables import Whereabouts, environment_of
from ostinato.plane.node.runtimes import Launch, Mount, StartError
from ostinato.plane.node.static_pods import SEEN, SOURCE
from ostinato.plane.node.volumes import Mounted, SubPathError, VolumeMounter, open_subpath
from ostinato.plane.node.volumes.contents import Contents
from ostinato.plane.node.volumes.tokens import PodTokens
from ostinato.plane.node.volumes.trees import remove_tree, size_of
from ostinato.world import World

Kind = TypeVar("Kind", bound=Object)

_LEAST_FREE: Final = 0.05  # of a disk, below which those go that have written much
_MUCH: Final = 100 << 20  # bytes


class Larder(msgspec.Struct, frozen=True):
    """Of a node: where it keeps what Pods are given, its address, and what there is to be used."""

    directory: Path
    logs: Path
    address: str
    allocatable: Mapping[str, Quantity]


class Supplies:
    """Of one node. Objects are read as they are now: a Pod may have come right after them."""

    def __init__(self, larder: Larder, client: Client, world: World) -> None:
        self._larder = larder
        self._client = client
        self._world = world
        self._tokens = PodTokens(client, world)
        contents = Contents(self, larder.address, larder.allocatable)
        self._mounter = VolumeMounter(larder.directory / "pods", self, contents, world)

    # What a life asks for

    async def mount(self, pod: Pod, seen: Time) -> dict[str, Mounted]:
        """The Pod's volumes, by name. A `MountError` if one is not there."""
        return await self._mounter.mount(_marked(pod, seen))

    async def refresh(self, pod: Pod, seen: Time) -> None:
        """Bring volumes that show objects up to date."""
        await self._mounter.refresh(_marked(pod, seen))

    async def overfull(self, pod: Pod) -> str:
        """What is wrong with a Pod whose volume holds more than it may, or much on a disk that is full; else empty."""
        if all(volume.empty_dir is None for volume in pod.spec.volumes):
            return ""
        return await self._world.executor.run(self._overfull, pod)

    def _overfull(self, pod: Pod) -> str:
        disk = shutil.disk_usage(self._larder.directory)
        is_low = disk.free < disk.total * _LEAST_FREE
        for volume, home in self._mounter.empty_directories(pod):
            assert volume.empty_dir is not None
            limit = volume.empty_dir.size_limit
            if limit and size_of(home, limit.value()) > limit.value():
                return f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}". '
            if is_low and size_of(home, _MUCH) > _MUCH:
                return "The node was low on resource: ephemeral-storage. "
        return ""

    async def launch(
        self, pod: Pod, container: Container, attempt: int, pod_ip: str, volumes: Mapping[str, Mounted]
    ) -> Launch:
        """All that it takes to start a container. A `StartError` if something is missing."""
        known = Whereabouts(
            self._larder.address,
            pod_ip,
            self._larder.allocatable,
            service_variables(await self._services(pod)),
            {name: each.path for name, each in volumes.items()},
        )
        environment = await environment_of(pod, container, self, known)
        return Launch(
            pod=pod,
            container=container,
            attempt=attempt,
            command=[expand(each, environment) for each in container.command],
            arguments=[expand(each, environment) for each in container.args],
            environment=environment,
            mounts=[_mount(each, container, volumes, environment) for each in container.volume_mounts],
            log=self.log(pod, container.name, attempt),
            message=self._message(pod, container.name, attempt),
        )

    def log(self, pod: Pod, container: str, attempt: int) -> Path:
        return log_of(self._larder.logs, pod, container, attempt)

    def message(self, pod: Pod, container: str, attempt: int) -> Path:
        """The file of a container's last words."""
        return self._larder.directory / "pods" / pod.metadata.uid / "messages" / f"{container}-{attempt}"

    def _message(self, pod: Pod, container: str, attempt: int) -> Path:
        path = self.message(pod, container, attempt)
        for each in (path.parent.parent, path.parent):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        created = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(created, 0o666)  # whoever the container runs as; its directory is the node's alone
        finally:
            os.close(created)
        return path

    async def discard(self, pod: Pod) -> None:
        """Volumes and last words go when a Pod is over; its logs stay until it is gone."""
        await self._world.executor.run(remove_tree, self._larder.directory / "pods" / pod.metadata.uid / "messages")
        await self._world.executor.run(self._mounter.unmount, pod)
        self._tokens.forget(pod)

    def forget(self, pod: Pod) -> None:
        """The Pod is gone."""
        remove_tree(directory_of(self._larder.logs, pod))

    # What the volumes and variables are made of

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return await self._get(ConfigMap, name, namespace)

    async def secret(self, namespace: str, name: str) -> Secret | None:
        return await self._get(Secret, name, namespace)

    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return await self._get(PersistentVolumeClaim, name, namespace)

    async def persistent_volume(self, name: str) -> PersistentVolume | None:
        return await self._get(PersistentVolume, name, "")

    async def token(self, pod: Pod, asked: ServiceAccountTokenProjection) -> str:
        return await self._tokens.of(pod, asked)

    async def _services(self, pod: Pod) -> list[Service]:
        own = []
        if pod.spec.enable_service_links is not False:
            own = [*await self._client.list(Service, namespace=pod.metadata.namespace)]
        api = await self._get(Service, "kubernetes", "default")
        if api is not None and all(each.metadata.name != "kubernetes" for each in own):
            own.append(api)
        return own

    async def _get(self, kind: type[Kind], name: str, namespace: str) -> Kind | None:
        if not name:
            return None
        return await self._client.get(kind, name, namespace=namespace, missing=None)


def _mount(
    asked: VolumeMount, container: Container, volumes: Mapping[str, Mounted], environment: Mapping[str, str]
) -> Mount:
    if asked.name not in volumes:
        message = f"cannot find volume {asked.name!r} to mount into container {container.name!r}"
        raise StartError("CreateContainerConfigError", message.replace("'", '"'))
    volume, part = volumes[asked.name], asked.sub_path or ""
    if asked.sub_path_expr:
        missing: list[str] = []
        part = expand(asked.sub_path_expr, environment, missing)
        if missing:
            raise StartError("CreateContainerConfigError", f"missing value for {missing[0]}")
    if part:
        try:
            os.close(open_subpath(volume.path, part, make=True))
        except SubPathError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except OSError:  # what is wrong with a path of this machine is not for a Pod's author to know
            text = f'failed to prepare subPath for volumeMount "{asked.name}" of container "{container.name}"'
            raise StartError("CreateContainerConfigError", text) from None
    return Mount(volume.path, asked.mount_path, bool(asked.read_only) or volume.read_only, part)


def _marked(pod: Pod, seen: Time) -> Pod:
    """The Pod as its node has it: with when and from where it came."""
    if not pod.spec.volumes:
        return pod
    annotations = {**pod.metadata.annotations, SEEN: str(seen), SOURCE: pod.metadata.annotations.get(SOURCE, "api")}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))
