"""Mount volumes: create and fill a directory, or resolve an existing one."""

from __future__ import annotations

import os
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
from ostinato.plane.csi import CsiError
from ostinato.plane.node.volumes import payload
from ostinato.plane.node.volumes.contents import ContentError, Objects, ProjectedContents
from ostinato.plane.node.volumes.csi.claims import CsiClaims
from ostinato.plane.node.volumes.csi.sources import of_inline_volume, of_persistent_volume
from ostinato.plane.node.volumes.mounts import can_mount, mount_tmpfs, unmount_entries
from ostinato.plane.node.volumes.ownership import Owner, owner_of, set_directory_group, set_volume_group
from ostinato.plane.node.volumes.trees import remove_tree
from ostinato.world import World

_TYPES: Final = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


class MountError(Exception):
    """A volume cannot be mounted; the message is used in the event."""


class _ClaimError(Exception):
    """A claim has no usable volume."""


class MountedVolume(msgspec.Struct, frozen=True):
    """A mounted volume. `read_only`: for all containers. `image`: the image that the runtime mounts as the volume."""

    path: Path
    read_only: bool = False
    image: str = ""


class Claims(Objects, Protocol):
    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    async def persistent_volume(self, name: str) -> PersistentVolume | None: ...


class VolumeMounter:
    def __init__(
        self,
        directory: Path,
        objects: Claims,
        contents: ProjectedContents,
        csi: CsiClaims,
        world: World,
        memory: int,
    ) -> None:
        """`directory`: root of `<uid>/volumes/<name>`. `memory`: bytes of memory that Pods can use."""
        self._directory = directory
        self._objects = objects
        self._contents = contents
        self._csi = csi
        self._memory = memory
        self._ids = world.ids
        self._executor = world.executor

    async def mount(self, pod: Pod) -> dict[str, MountedVolume]:
        """Mount all volumes of a Pod and return them by name; `MountError` if one fails."""
        found = {}
        for each in (self._directory, self._directory / pod.metadata.uid, self._volumes(pod)):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        for volume in pod.spec.volumes:
            if volume.image is not None:
                found[volume.name] = MountedVolume(Path(), read_only=True, image=volume.image.reference or "")
                continue
            try:
                path = await self._mount(pod, volume)
                claim = volume.persistent_volume_claim
                found[volume.name] = MountedVolume(path, _shows_objects(volume) or bool(claim and claim.read_only))
            except _ClaimError as error:
                text = f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], unattached volumes=[], "
                raise MountError(f"{text}failed to process volumes=[{volume.name}]: {error}") from None
            except (ContentError, CsiError, OSError, APIError, TransportError) as error:
                text = f"MountVolume.SetUp failed for volume {_quoted(volume.name)} : {error}"
                raise MountError(text) from None
        return found

    async def refresh(self, pod: Pod) -> None:
        """Update projected volumes; on a missing object the old content stays."""
        for volume in pod.spec.volumes:
            home = self._home(pod, volume)
            if home.is_dir():
                with suppress(ContentError, OSError, APIError, TransportError):
                    files = await self._contents.of(pod, volume)
                    if files is not None:
                        payload.write(home, files, self._ids.suffix(10), owner_of(pod).group)

    def unmount(self, pod: Pod) -> None:
        """Remove the Pod's own volumes, after its CSI volumes are unmounted. Blocks while files are removed."""
        unmount_entries(self._volumes(pod))
        remove_tree(self._volumes(pod))
        with suppress(OSError):
            (self._directory / pod.metadata.uid).rmdir()

    def empty_directories(self, pod: Pod) -> list[tuple[Volume, Path]]:
        return [(volume, self._home(pod, volume)) for volume in pod.spec.volumes if volume.empty_dir is not None]

    def _volumes(self, pod: Pod) -> Path:
        return self._directory / pod.metadata.uid / "volumes"

    def _home(self, pod: Pod, volume: Volume) -> Path:
        return self._volumes(pod) / volume.name

    async def _mount(self, pod: Pod, volume: Volume) -> Path:
        home = self._home(pod, volume)
        if volume.empty_dir is not None:
            return self._empty_directory(pod, volume.empty_dir, home)
        if volume.host_path is not None:
            return _host_path(volume.host_path)
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim
            return await self._claimed(pod, claim.claim_name, read_only=bool(claim.read_only))
        if volume.ephemeral is not None:
            return await self._claimed(pod, f"{pod.metadata.name}-{volume.name}", read_only=False)
        if volume.csi is not None:
            return await self._csi.volumes.mount(pod, of_inline_volume(pod, volume, volume.csi), owner_of(pod))
        files = await self._contents.of(pod, volume)
        if files is None:
            raise ContentError(
                "no volume plugin matched: this node supports emptyDir, hostPath, CSI, claims, images, projected ones"
            )
        home.mkdir(exist_ok=True)
        payload.write(home, files, self._ids.suffix(10), owner_of(pod).group)
        return home

    def _empty_directory(self, pod: Pod, source: EmptyDirVolumeSource, home: Path) -> Path:
        """Create the directory; in memory, if asked for and this process may mount file systems."""
        home.mkdir(exist_ok=True)
        if source.medium == "Memory" and can_mount():
            mount_tmpfs(home, _memory_limit(pod, source, self._memory))
        set_directory_group(home, 0o777, owner_of(pod).group)
        return home

    async def _claimed(self, pod: Pod, name: str, *, read_only: bool) -> Path:
        owner = Owner() if read_only else owner_of(pod)
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
            path = _host_path(HostPathVolumeSource(path=volume.spec.local.path))
            await self._executor.run(set_volume_group, path, owner)
            return path
        source = of_persistent_volume(volume, read_only=read_only)
        if source is not None:
            path = await self._csi.volumes.mount(pod, source, owner)
            await self._csi.expand(pod, claim, source)
            return path
        raise ContentError("no volume plugin matched: this node supports persistent volumes of CSI, hostPath and local")


def _memory_limit(pod: Pod, source: EmptyDirVolumeSource, most: int) -> int:
    """Return the size of a volume in memory: at most its sizeLimit, the memory limit of the Pod, and `most`."""
    sizes = [most]
    if source.size_limit is not None and source.size_limit.value() > 0:
        sizes.append(source.size_limit.value())
    limits = [None if each.resources is None else each.resources.limits.get("memory") for each in pod.spec.containers]
    known = [each.value() for each in limits if each is not None]
    if len(known) == len(limits):  # otherwise the Pod is not limited
        sizes.append(sum(known))
    return min(sizes)


def _host_path(source: HostPathVolumeSource) -> Path:
    path, kind = Path(source.path), source.type or ""
    mode = _mode_of(path)
    if mode is None and kind == "FileOrCreate":  # O_EXCL: a dangling link is not followed
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    elif mode is None and kind in ("", "DirectoryOrCreate"):  # as container runtimes do
        path.mkdir(parents=True, mode=0o755)
    if kind in _TYPES:
        is_kind, name = _TYPES[kind]
        if not is_kind(_mode_of(path) or 0):
            raise ContentError(f"hostPath type check failed: {path} is not a {name}")
    return path


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _shows_objects(volume: Volume) -> bool:
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


def _quoted(text: str) -> str:
    return f'"{text}"'
