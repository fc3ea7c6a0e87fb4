"""What each volume of a Pod is: a directory that is made and filled, or one that is there already."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import (
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Volume,
)
from ostinato.plane.node.volumes import payload
from ostinato.plane.node.volumes.contents import ContentError, Contents, Objects
from ostinato.world import Ids

_SHARED: Final = 0o2000  # new files get the directory's group


class MountError(Exception):
    """A volume is not there; the message is that of an event."""


class _ClaimError(Exception):
    """A claim that gives no volume."""


class Mounted(msgspec.Struct, frozen=True):
    """A volume that is there; `read_only`: whoever mounts it."""

    path: Path
    read_only: bool = False


class Claims(Objects, Protocol):
    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    async def persistent_volume(self, name: str) -> PersistentVolume | None: ...


class VolumeMounter:
    def __init__(self, directory: Path, objects: Claims, contents: Contents, ids: Ids) -> None:
        """`directory` is where Pods have theirs: `<uid>/volumes/<name>`."""
        self._directory = directory
        self._objects = objects
        self._contents = contents
        self._ids = ids

    async def mount(self, pod: Pod) -> dict[str, Mounted]:
        """Have all volumes of a Pod there, by their names. A `MountError` if one cannot be."""
        found = {}
        for volume in pod.spec.volumes:
            try:
                path = await self._mount(pod, volume)
                claim = volume.persistent_volume_claim
                found[volume.name] = Mounted(path, _shows_objects(volume) or bool(claim and claim.read_only))
            except _ClaimError as error:
                text = f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], unattached volumes=[], "
                raise MountError(f"{text}failed to process volumes=[{volume.name}]: {error}") from None
            except (ContentError, OSError, APIError, TransportError) as error:
                text = f"MountVolume.SetUp failed for volume {_quoted(volume.name)} : {error}"
                raise MountError(text) from None
        return found

    async def refresh(self, pod: Pod) -> None:
        """Bring what shows objects up to date. What is missing now stays as it was."""
        for volume in pod.spec.volumes:
            home = self._home(pod, volume)
            if home.is_dir():
                with suppress(ContentError, OSError, APIError, TransportError):
                    files = await self._contents.of(pod, volume)
                    if files is not None:
                        payload.write(home, files, self._ids.suffix(10))

    def unmount(self, pod: Pod) -> None:
        shutil.rmtree(self._directory / pod.metadata.uid / "volumes", ignore_errors=True)
        with suppress(OSError):
            (self._directory / pod.metadata.uid).rmdir()

    def empty_directories(self, pod: Pod) -> list[tuple[Volume, Path]]:
        return [(volume, self._home(pod, volume)) for volume in pod.spec.volumes if volume.empty_dir is not None]

    def _home(self, pod: Pod, volume: Volume) -> Path:
        return self._directory / pod.metadata.uid / "volumes" / volume.name

    async def _mount(self, pod: Pod, volume: Volume) -> Path:
        home = self._home(pod, volume)
        if volume.empty_dir is not None:
            return _empty_directory(pod, home, volume.empty_dir)
        if volume.host_path is not None:
            return _host_path(volume.host_path)
        if volume.persistent_volume_claim is not None:
            return await self._claimed(pod, volume.persistent_volume_claim.claim_name)
        if volume.ephemeral is not None:
            return await self._claimed(pod, f"{pod.metadata.name}-{volume.name}")
        files = await self._contents.of(pod, volume)
        if files is None:
            raise ContentError("no volume plugin matched: this node knows volumes of its own and of objects alone")
        home.mkdir(parents=True, exist_ok=True)
        payload.write(home, files, self._ids.suffix(10))
        return home

    async def _claimed(self, pod: Pod, name: str) -> Path:
        claim = await self._objects.claim(pod.metadata.namespace, name)
        whose = f"error processing PVC {pod.metadata.namespace}/{name}: "
        if claim is None:
            text = f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
            raise _ClaimError(whose + text)
        if claim.status.phase != "Bound" or not claim.spec.volume_name:
            raise _ClaimError(f"{whose}PVC is not bound")
        volume = await self._objects.persistent_volume(claim.spec.volume_name)
        if volume is None:
            raise ContentError(f'persistentvolume "{claim.spec.volume_name}" not found')
        if volume.spec.host_path is not None:
            return _host_path(volume.spec.host_path)
        if volume.spec.local is not None:
            return _host_path(HostPathVolumeSource(path=volume.spec.local.path))
        raise ContentError("no volume plugin matched: this node knows persistent volumes of its own files alone")


def _empty_directory(pod: Pod, home: Path, _: EmptyDirVolumeSource) -> Path:
    if not home.is_dir():
        home.mkdir(parents=True)
        context = pod.spec.security_context
        group = None if context is None else context.fs_group
        if group is not None and os.geteuid() == 0:
            os.chown(home, -1, group)
        home.chmod(0o777 | (_SHARED if group is not None else 0))
    return home


def _host_path(source: HostPathVolumeSource) -> Path:
    path, kind = Path(source.path), source.type or ""
    failed = f"hostPath type check failed: {path} is not a "
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    elif kind == "FileOrCreate" and not path.exists():
        path.touch(mode=0o644)
    mode = path.stat().st_mode if path.exists() else 0
    wanted = {
        "Directory": (stat.S_ISDIR, "directory"),
        "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
        "File": (stat.S_ISREG, "file"),
        "FileOrCreate": (stat.S_ISREG, "file"),
        "Socket": (stat.S_ISSOCK, "socket file"),
        "CharDevice": (stat.S_ISCHR, "character device"),
        "BlockDevice": (stat.S_ISBLK, "block device"),
    }
    if kind in wanted:
        is_kind, name = wanted[kind]
        if not is_kind(mode):
            raise ContentError(failed + name)
    elif not path.exists():
        path.mkdir(parents=True, mode=0o755)  # as a container runtime does for what it is told to bind
    return path


def _shows_objects(volume: Volume) -> bool:
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


def _quoted(text: str) -> str:
    return f'"{text}"'
