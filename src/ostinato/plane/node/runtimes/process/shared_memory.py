"""Shared memory of Pods: the tmpfs that the containers of a Pod have at /dev/shm.

It is mounted at `shm` in the Pod's directory while the agent runs. A stopping agent unmounts it: the running containers
keep it, and those that the next agent starts get it from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.plane.node.runtimes.process.container import has_keeper, read_state
from ostinato.plane.node.volumes.mounts import can_mount, is_mount_point, mount_tmpfs, unmount

_BYTES: Final = 64 << 20  # as other runtimes
_OPEN_TO_ALL: Final = 0o1777


def provide(pod: Path) -> Path | None:
    """Mount the shared memory of a Pod, unless a running container has it; return the directory of that container.

    `pod`: the Pod's directory.
    """
    place = pod / "shm"
    place.mkdir(exist_ok=True)
    if is_mount_point(place):
        return None
    for container in sorted(pod.glob("containers/*/*")):
        if container.name.isdigit() and has_keeper(container) and read_state(container) is not None:
            return container
    mount_tmpfs(place, _BYTES, _OPEN_TO_ALL)
    return None


def release(pods: Path) -> None:
    """Unmount the shared memory of all Pods; `pods`: the parent of their directories."""
    if can_mount():
        for place in pods.glob("*/shm"):
            unmount(place)
