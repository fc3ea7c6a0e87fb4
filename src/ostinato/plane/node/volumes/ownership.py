"""Ownership of volume files: the Pod's fsGroup, and the user of its containers.

Changes use descriptors that were opened without following links, so that a link in a volume changes nothing outside.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import Final

import msgspec

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.volumes.subpaths import descriptor_path
from ostinato.plane.node.volumes.trees import walk

_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_WRITE: Final = 0o660
_SHARED: Final = 0o2770  # directories with setgid: new files inherit the group


class Owner(msgspec.Struct, frozen=True):
    """`user`: owner of token files. `group`: fsGroup. None leaves them unchanged."""

    user: int | None = None
    group: int | None = None
    only_on_mismatch: bool = False  # fsGroupChangePolicy OnRootMismatch


def owner_of(pod: Pod) -> Owner:
    """Return the owner of a Pod's volumes; without root ownership cannot be changed."""
    if os.geteuid() != 0:
        return Owner()
    context = pod.spec.security_context
    group = None if context is None else context.fs_group
    policy = None if context is None else context.fs_group_change_policy
    return Owner(_one_user(pod), group, policy == "OnRootMismatch")


def _one_user(pod: Pod) -> int | None:
    """Return the user that all containers run as; None if it is unset or differs."""
    whole = pod.spec.security_context
    default = None if whole is None else whole.run_as_user
    contexts = [each.security_context for each in (*pod.spec.init_containers, *pod.spec.containers)]
    contexts += [each.security_context for each in pod.spec.ephemeral_containers]
    users = {default if own is None or own.run_as_user is None else own.run_as_user for own in contexts}
    return users.pop() if len(users) == 1 else None


def set_directory_group(path: str | os.PathLike[str], mode: int, group: int | None) -> None:
    """Set mode and group of a directory; with a group, it is group-writable and setgid."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if group is not None:
            os.fchown(directory, -1, group)
            mode |= _SHARED
        os.fchmod(directory, mode)
    finally:
        os.close(directory)


def set_volume_group(path: str | os.PathLike[str], owner: Owner) -> None:
    """Set the group of a volume recursively; links are changed themselves and not followed.

    The volume's directory is changed last, so that an interrupted change is repeated on the next mount.
    """
    if owner.group is None:
        return
    root = os.open(os.path.realpath(path), _STEP)
    try:
        known = os.fstat(root)
        if not stat.S_ISDIR(known.st_mode):
            _give(root, known, owner.group)
        elif not (owner.only_on_mismatch and known.st_gid == owner.group and known.st_mode & _SHARED == _SHARED):
            for directory, name, status in walk(root):
                if name:
                    _give_entry(directory, name, status, owner.group)
                else:
                    _give(directory, status, owner.group)
    finally:
        os.close(root)


def _give(descriptor: int, known: os.stat_result, group: int) -> None:
    mode = stat.S_IMODE(known.st_mode) | (_SHARED if stat.S_ISDIR(known.st_mode) else _READ_WRITE)
    if sys.platform.startswith("linux"):  # O_PATH: devices must not be opened
        os.chown(descriptor_path(descriptor), -1, group)
        os.chmod(descriptor_path(descriptor), mode)
    else:
        os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, mode)


def _give_entry(directory: int, name: str, status: os.stat_result, group: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        with suppress(FileNotFoundError):
            os.chown(name, -1, group, dir_fd=directory, follow_symlinks=False)
        return
    try:
        found = os.open(name, _STEP, dir_fd=directory)
    except OSError:  # removed or replaced meanwhile
        return
    try:
        known = os.fstat(found)
        if os.path.samestat(known, status):
            _give(found, known, group)
    finally:
        os.close(found)
