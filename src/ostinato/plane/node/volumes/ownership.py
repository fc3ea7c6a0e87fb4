"""Who may use the files of a volume: the Pod's fsGroup, and the one user that its containers run as.

Changes go through descriptors that were opened without following links: a link that a container has planted in a volume
changes nothing outside of it.
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
_SHARED: Final = 0o2770  # of directories: new files get the directory's group


class Owner(msgspec.Struct, frozen=True):
    """`user`: of what is for one user alone, tokens; `group`: fsGroup. None changes nothing."""

    user: int | None = None
    group: int | None = None
    only_on_mismatch: bool = False  # fsGroupChangePolicy OnRootMismatch


def owner_of(pod: Pod) -> Owner:
    """Without root nothing can be given away, and every container runs as the node agent does."""
    if os.geteuid() != 0:
        return Owner()
    context = pod.spec.security_context
    group = None if context is None else context.fs_group
    policy = None if context is None else context.fs_group_change_policy
    return Owner(_one_user(pod), group, policy == "OnRootMismatch")


def _one_user(pod: Pod) -> int | None:
    """The user that all containers run as; None if one does not say, or they differ."""
    whole = pod.spec.security_context
    default = None if whole is None else whole.run_as_user
    contexts = [each.security_context for each in (*pod.spec.init_containers, *pod.spec.containers)]
    contexts += [each.security_context for each in pod.spec.ephemeral_containers]
    users = {default if own is None or own.run_as_user is None else own.run_as_user for own in contexts}
    return users.pop() if len(users) == 1 else None


def give_directory(path: str | os.PathLike[str], mode: int, group: int | None) -> None:
    """Set mode and group of a directory of the node's own; with a group, its members may write to it."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if group is not None:
            os.fchown(directory, -1, group)
            mode |= _SHARED
        os.fchmod(directory, mode)
    finally:
        os.close(directory)


def give_volume(path: str | os.PathLike[str], owner: Owner) -> None:
    """Give a volume and all that is in it to a group. Links are given themselves, what they lead to is not.

    The volume's own directory comes last: a change that was cut short is done again on the next mount.
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
    if sys.platform.startswith("linux"):  # the descriptor is for names alone: a device must not be opened
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
    except OSError:  # removed or exchanged meanwhile
        return
    try:
        known = os.fstat(found)
        if os.path.samestat(known, status):
            _give(found, known, group)
    finally:
        os.close(found)
