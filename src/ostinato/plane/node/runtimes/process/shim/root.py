"""Build the root file system of a container in its own mount namespace. Part of the shim.

- The root is a writable overlay layer over a template with a few files of /etc.
- MountedVolume into it: host programs, libraries and exposed directories (read-only, nosuid, nodev), a new /proc, /sys
  (read-only), a /dev with a few devices, and the Pod's volumes. The node's state, other Pods' files and home
  directories are not visible.
- Sources are cloned as detached mounts before pivot_root, volumes by descriptor. Targets are resolved after it, so that
  no symbolic link leads out of the container's root.
- With a user namespace, mounts are id-mapped: new files belong to the container's root user.
- Device files work only in /dev, unless the container is privileged.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import Any

from shim import kernel  # type: ignore[import-not-found]
from subpaths import open_subpath  # type: ignore[import-not-found]

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_OWN = frozenset({"pts", "shm", "mqueue", "console", "fd", "stdin", "stdout", "stderr", "ptmx"})
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_MASKED = (
    *("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
    "/sys/devices/virtual/powercap",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_CGROUPS = "/sys/fs/cgroup"
_UNMAPPED = "hostUsers: false needs a file system with id-mapped mounts (ext4, xfs, btrfs, tmpfs)"
_SAFE = kernel.NO_SUID | kernel.NO_DEVICES
_INERT = _SAFE | kernel.NO_EXEC


def enter(plan: dict[str, Any], binds: list[tuple[str, str, str, bool]], processes: int | None) -> None:
    """Enter a new mount namespace with the container's root file system.

    `binds`: (volume, subPath, target, read-only) per volume mount. `processes`: mount to attach at /proc; None for a
    new one of this process's PID namespace. An `OSError` names what could not be mounted.
    """
    privileged = plan["privileged"]
    no_devices = 0 if privileged else kernel.NO_DEVICES
    volumes = [(target, _volume(source, part, target, read_only, plan)) for source, part, target, read_only in binds]
    shared_memory = _shared_memory(plan)
    kernel.unshare(plan["unshare"] | kernel.NEW_MOUNT, "namespaces")
    kernel.make_mounts_private()
    trees = [(path, _tree(path, kernel.READ_ONLY | _SAFE)) for path in plan["visible"] if _is_directory(path)]
    system = _system(plan)
    devices, device_links = _devices(privileged)
    _mount_root(plan, no_devices)
    os.chdir(plan["root"])
    kernel.pivot_here()
    kernel.own_new_files_as(plan["first_id"])
    for path in ("/proc", "/sys", "/dev"):
        _make_mount_point(path)
    for path, content in plan["files"].items():
        _make_parents(path)
        if os.path.islink(path):  # of an image
            os.unlink(path)
        with open(path, "w") as file:
            file.write(content)
    for path, tree in trees:
        _attach(tree, path)
    for path in plan["hidden"]:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, kernel.READ_ONLY | _INERT, "size=0")
    if processes is None:
        kernel.mount("proc", "/proc", _INERT)
    else:
        kernel.set_attributes(processes, _INERT, "/proc", recursive=False)
        _attach(processes, "/proc", own=True)
    _attach_system(plan, system)
    _fill_dev(devices, device_links, shared_memory, plan["first_id"])
    if not privileged and not plan["unmasked"]:
        _mask()
    if plan["home"] is not None:
        _make_home(plan)
    for target, tree in volumes:
        _attach(tree, target)
    with suppress(OSError):  # chdir reports the error later
        os.makedirs(plan["directory"], exist_ok=True)
    kernel.own_new_files_as(0)
    if plan["hostname"] is not None:
        kernel.set_host_name(plan["hostname"])
    for name, value in plan["sysctls"].items():
        _set(name, value)
    if not privileged and not plan["unmasked"]:
        for path in _READ_ONLY:
            if os.path.exists(path):
                _attach(_tree(path, kernel.READ_ONLY | _INERT), path, own=True)
    if plan["read_only"]:
        here = os.open("/", os.O_PATH | os.O_CLOEXEC)
        kernel.set_attributes(here, kernel.READ_ONLY, "readOnlyRootFilesystem", recursive=False)
        os.close(here)


# Sources, before pivot_root


def _tree(path: str, flags: int, recursive: bool = True, users: int | None = None) -> int:
    tree: int = kernel.clone_tree(path, recursive)
    kernel.set_attributes(tree, flags, path if users is None else _UNMAPPED, recursive, users)
    return tree


def _volume(source: str, part: str, target: str, read_only: bool, plan: dict[str, Any]) -> int:
    try:
        found = open_subpath(source, part)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"mountPath {target}") from None
    try:
        tree: int = kernel.clone_tree(found, recursive=True)
    finally:
        os.close(found)
    flags = (kernel.READ_ONLY if read_only else 0) | (0 if plan["privileged"] else kernel.NO_DEVICES)
    what = f"mountPath {target}" if plan["users"] is None else f"mountPath {target}: {_UNMAPPED}"
    kernel.set_attributes(tree, flags, what, user_namespace=plan["users"])
    return tree


def _shared_memory(plan: dict[str, Any]) -> int:
    """Return the mount for /dev/shm: that of the node, or of another container of the Pod."""
    peer = plan["memory_peer"]
    if peer is None:
        return _tree(plan["shared_memory"], _INERT, users=plan["users"])
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kernel.join(peer, kernel.NEW_MOUNT, "shared memory of the Pod")
        try:
            found = os.open("/dev/shm", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)  # noqa: S108
            try:
                tree: int = kernel.clone_tree(found, recursive=False)
            finally:
                os.close(found)
        finally:
            kernel.join(own, kernel.NEW_MOUNT, "the node's mounts")
            os.fchdir(here)
    finally:
        os.close(here)
        os.close(own)
    kernel.set_attributes(tree, _INERT, "shared memory of the Pod", recursive=False)  # its ids are mapped already
    return tree


def _mount_root(plan: dict[str, Any], flags: int) -> None:
    """Mount an overlay over the template; where overlays are not supported, use a copy of the template."""
    root = plan["root"]
    if plan["users"] is None:
        layers = {
            "lowerdir": plan["template"],
            "upperdir": f"{plan['layer']}/upper",
            "workdir": f"{plan['layer']}/work",
        }
        os.mkdir(layers["upperdir"])
        os.mkdir(layers["workdir"])
        options = ",".join(f"{name}={_escaped(path)}" for name, path in layers.items())
        with suppress(OSError):  # e.g. the state directory is itself on an overlay
            kernel.mount("overlay", root, flags, options)
            return
    shutil.copytree(plan["template"], root, symlinks=True, dirs_exist_ok=True)
    kernel.attach_tree(_tree(root, flags, recursive=False, users=plan["users"]), root, "/")


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _is_directory(path: str) -> bool:
    """Return whether the path is a directory and not a symbolic link."""
    return os.path.isdir(path) and not os.path.islink(path)


def _system(plan: dict[str, Any]) -> int | None:
    """Return the mount for /sys; with a network namespace of its own, of the control groups for privileged containers.

    /sys shows the network interfaces of the namespace in which it was mounted: a Pod with its own needs a new one.
    """
    if plan["network"] is None:
        flags = _INERT | (0 if plan["privileged"] else kernel.READ_ONLY)
        return _tree("/sys", flags, recursive=plan["privileged"])
    return _tree(_CGROUPS, _INERT) if plan["privileged"] and os.path.isdir(_CGROUPS) else None


def _devices(privileged: bool) -> tuple[dict[str, int], dict[str, str]]:
    """Return detached mounts of devices by name, and links: all for privileged containers, else a safe set."""
    if not privileged:
        there = [name for name in _DEVICES if os.path.exists(f"/dev/{name}")]
        return {name: _tree(f"/dev/{name}", kernel.NO_SUID | kernel.NO_EXEC) for name in there}, _LINKS
    names = [name for name in os.listdir("/dev") if name not in _OWN]
    links = {name: os.readlink(f"/dev/{name}") for name in names if os.path.islink(f"/dev/{name}")}
    return {name: _tree(f"/dev/{name}", 0) for name in names if name not in links}, _LINKS | links


# Targets, in the container's root


def _attach(tree: int, target: str, own: bool = False) -> None:
    """Attach a mount at a path, which is created. `own`: allow targets in /proc, for mounts of this module."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        _make_parents(target)
        with suppress(FileExistsError):
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    place = os.open(target, os.O_PATH | os.O_CLOEXEC)
    try:
        really = os.readlink(f"/proc/self/fd/{place}") if os.path.isdir("/proc/self") else target
        if not own and f"{really}/".startswith("/proc/"):
            raise OSError(1, "mounting in /proc is not allowed", f"mountPath {target}")
        kernel.attach_tree(tree, place, f"mountPath {target}")
    finally:
        os.close(place)
        os.close(tree)


def _attach_system(plan: dict[str, Any], system: int | None) -> None:
    if plan["network"] is not None:
        kernel.mount("sysfs", "/sys", _INERT | (0 if plan["privileged"] else kernel.READ_ONLY))
    if system is not None:
        _attach(system, "/sys" if plan["network"] is None else _CGROUPS)


def _make_mount_point(path: str) -> None:
    """Create a directory; a link of an image would have the mount cover another place, and this one stay open."""
    if os.path.islink(path):
        raise OSError(40, "is a symbolic link in the image", path)
    os.makedirs(path, exist_ok=True)


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)


def _mask() -> None:
    """Mask files of /proc and /sys that expose the host or allow changing it."""
    for path in _MASKED:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, kernel.READ_ONLY | _INERT, "size=0")
        elif os.path.exists(path):
            _attach(_tree("/dev/null", kernel.NO_SUID | kernel.NO_EXEC), path, own=True)


def _fill_dev(devices: dict[str, int], links: dict[str, str], shared_memory: int, owner: int) -> None:
    kernel.mount("tmpfs", "/dev", _INERT, f"mode=755,size=1m,uid={owner},gid={owner}")
    for name, tree in devices.items():
        _attach(tree, f"/dev/{name}")
    for name, to in links.items():
        os.symlink(to, f"/dev/{name}")
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"/dev/{name}")
    kernel.mount("devpts", "/dev/pts", kernel.NO_SUID | kernel.NO_EXEC, "newinstance,ptmxmode=0666,mode=0620")
    with suppress(OSError):  # kernel without message queues
        kernel.mount("mqueue", "/dev/mqueue", _INERT)
    _attach(shared_memory, "/dev/shm")  # noqa: S108


def _make_home(plan: dict[str, Any]) -> None:
    user, group = plan["owner"]
    os.makedirs(plan["home"], exist_ok=True)
    kernel.own_new_files_as(0)  # restores CAP_CHOWN, which setfsuid cleared
    os.chown(plan["home"], plan["first_id"] + user, plan["first_id"] + group)
    os.chmod(plan["home"], 0o700)
    kernel.own_new_files_as(plan["first_id"])


def _set(name: str, value: str) -> None:
    try:
        with open(f"/proc/sys/{name.replace('.', '/')}", "w") as file:
            file.write(value)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"sysctl {name}") from None
