"""Isolation plan of a container: visible host paths, and shared or own namespaces. Applied by `shim.root`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

import ostinato
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.runtimes import Mount, ProcessOptions, StartError
from ostinato.plane.node.runtimes.pod_names import hostname_of
from ostinato.plane.node.runtimes.process.program import HOME, Program
from ostinato.plane.node.runtimes.process.security import (
    DEFAULT_CAPABILITIES,
    contexts,
    ipc_sysctls_of,
    node_capabilities,
)
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_NEW_CGROUP, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_MOUNT = 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x00020000
_NEW_NETWORK: Final = 0x40000000
_NEEDED: Final = frozenset({"SYS_ADMIN", "SYS_CHROOT", *DEFAULT_CAPABILITIES})
_OLDEST_KERNEL: Final = (5, 12)  # first with mount_setattr(2)
USERS: Final = 65536  # ids per Pod with `hostUsers: false`


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """Namespaces that a container shares.

    - `processes`: PID namespace: "own", "host", or the directory of the container whose namespace it joins.
    - `pod`: the directory of the Pod's sandbox, whose IPC and UTS namespaces it joins; None for its own.
    - `users`: the first host id of its user namespace; None for the host's user namespace.
    - `memory_peer`: the directory of a container whose /dev/shm it shares; None for that of the Pod's directory.
    - `network`: the Pod's network namespace, as the shim opens it; None for the host's.
    - `files`: contents of files that depend on the Pod's network, by path.
    """

    processes: str = "own"
    pod: str | None = None
    users: int | None = None
    memory_peer: str | None = None
    network: dict[str, Any] | None = None
    files: dict[str, str] = {}


def unsupported_reason() -> str:
    """Return why containers cannot be isolated on this machine; empty if they can."""
    if platform.system() != "Linux":
        return "this is not Linux"
    if os.geteuid() != 0:
        return "the node does not run as root"
    release = tuple(int(each) for each in platform.release().split("-")[0].split(".")[:2] if each.isdigit())
    if release < _OLDEST_KERNEL:
        return f"Linux {platform.release()} is older than 5.12"
    if missing := sorted(_NEEDED - node_capabilities()):
        return f"the node lacks the capability {missing[0]}"
    return ""


def visible_paths(options: ProcessOptions) -> list[str]:
    """Return the host paths that containers see: programs, libraries, this interpreter and exposed directories."""
    own = [sys.prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.path.abspath(ostinato.__file__))]
    wanted = [*SYSTEM, *own, *(os.path.abspath(each) for each in options.exposed)]
    found: list[str] = []
    for path in [form for each in wanted for form in (each, os.path.realpath(each))]:
        is_link = os.path.islink(path)
        inside = any(path == each or path.startswith(f"{each}/") for each in found if not os.path.islink(each))
        if os.path.isdir(path) and path != "/" and not inside and (not is_link or path not in found):
            found.append(path)
    return found


class RootSources(msgspec.Struct, frozen=True):
    """A container's directory, the lower layer of its root, visible and hidden host paths, the cluster domain."""

    directory: Path
    template: Path
    visible: Sequence[str] = ()
    hidden: Sequence[Path] = ()
    domain: str = ""


def plan_of(pod: Pod, container: Container, sources: RootSources, sharing: Sharing, program: Program) -> dict[str, Any]:
    """Return the isolation plan of a container, in the format of the shim."""
    own, _ = contexts(pod, container)
    spec = pod.spec
    of_pod = (0 if spec.host_ipc else _NEW_IPC) | (0 if spec.host_network else _NEW_UTS)
    joins = sharing.pod is not None and of_pod != 0
    unshare = _NEW_CGROUP | (0 if joins else of_pod)
    return {
        "root": str(sources.directory / "root"),
        "layer": str(sources.directory / "layer"),
        "template": str(sources.template),
        "visible": list(sources.visible),
        "files": sharing.files,
        "hidden": [os.path.realpath(each) for each in sources.hidden],
        "unshare": unshare,
        "join": _NEW_MOUNT
        | _NEW_CGROUP
        | of_pod
        | (0 if sharing.users is None else _NEW_USER)
        | (0 if sharing.network is None else _NEW_NETWORK),
        "network": sharing.network,
        "processes": sharing.processes,
        "pod": sharing.pod if joins else None,
        "of_pod": of_pod,
        "users": None if sharing.users is None else [sharing.users, USERS],
        "first_id": sharing.users or 0,
        "privileged": bool(own.privileged),
        "unmasked": own.proc_mount == "Unmasked",
        "read_only": bool(own.read_only_root_filesystem),
        "shared_memory": "/dev/shm" if spec.host_ipc else str(sources.directory.parents[2] / "shm"),  # noqa: S108
        "memory_peer": sharing.memory_peer,
        "hostname": None if spec.host_network or joins else hostname_of(pod, sources.domain),
        "sysctls": {} if spec.host_ipc or joins else ipc_sysctls_of(pod),
        "home": HOME if program.image is None else None,  # which is created
        "owner": [program.runs_as.user, program.runs_as.group],
        "directory": program.directory,
    }


def binds_of(mounts: Sequence[Mount]) -> list[tuple[str, str, str, bool]]:
    """Return (volume, subPath, target, read-only) per mount; `StartError` if a subPath leaves its volume."""
    for each in mounts:
        if each.sub_path:
            _check_sub_path(each)
    return [(str(each.source), each.sub_path, target_of(each), each.read_only) for each in mounts]


def _check_sub_path(mount: Mount) -> None:
    """Check early for a clear message. The shim opens the subPath again and binds that descriptor."""
    try:
        os.close(open_subpath(mount.source, mount.sub_path))
    except SubPathError as error:
        raise StartError("CreateContainerConfigError", str(error)) from None
    except OSError as error:
        text = f"mountPath {mount.target}: subPath {mount.sub_path}: {error.strerror}"
        raise StartError("CreateContainerConfigError", text) from None


def target_of(mount: Mount) -> str:
    """Return the normalized mountPath; `StartError` if it is invalid."""
    target = os.path.normpath(mount.target)
    if not target.startswith("/") or target in ("/", "//"):
        raise StartError("CreateContainerError", f"mountPath {mount.target}: want an absolute path below the root")
    return target.replace("//", "/")


def first_free_range(taken: Sequence[int]) -> int:
    """Return the first id of an unused range, above the ids of the host's own users."""
    number = USERS
    while number in taken:
        number += USERS
    return number
