"""Linux system calls that Python 3.11 does not provide: namespaces, mounts, descriptors. Part of the shim.

Every function raises `OSError`, with `what` as its file name. The module can be imported on any system.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Iterable

NEW_MOUNT, NEW_CGROUP, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NETWORK = (
    *(0x00020000, 0x02000000, 0x04000000, 0x08000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8  # same values in mount(2) and mount_setattr(2)
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_DETACH = 2
_ID_MAP = 0x00100000

PARENT_DEATH_SIGNAL, _DUMPABLE, _NAME, _SECCOMP, _DROP_BOUND, _CHILD_SUBREAPER, NO_NEW_PRIVILEGES = (
    *(1, 4, 15, 22),
    *(24, 36, 38),
)
_FILTER, _INSTRUCTION = 2, 8

_CLOSE_RANGE, _OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 436, 428, 429, 442  # same numbers on all architectures
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_AT_FDCWD, _EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_CLONE_TREE = 1
_FROM_EMPTY, _TO_EMPTY = 0x04, 0x40

_libc = ctypes.CDLL(None, use_errno=True)
for _name in ("syscall", "prctl", "capset", "unshare", "setns", "sethostname", "mount", "pivot_root", "umount2"):
    getattr(_libc, _name, None)  # resolve once, before keepers are forked


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def _syscall(number: int, *arguments: object) -> int:
    """Call with integers widened to register size."""
    widened = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *widened)
    return result


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


# Descriptors


def close_all_but(kept: Iterable[int]) -> None:
    """Close all descriptors above 2 except `kept`."""
    first = 3
    for each in sorted({*kept, 1 << 20}):
        if each > first:
            _close_range(first, each - 1)
        first = max(first, each + 1)


def _close_range(first: int, last: int) -> None:
    if platform.system() != "Linux" or _syscall(_CLOSE_RANGE, first, last, 0) != 0:
        os.closerange(first, min(last, os.sysconf("SC_OPEN_MAX")) + 1)


# Processes


def prctl(option: int, value: object = 0) -> None:
    """Call prctl(2); does nothing on systems without it."""
    if hasattr(_libc, "prctl"):
        _check(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def become_subreaper() -> None:
    """Become the parent of orphaned descendants."""
    prctl(_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    prctl(_NAME, ctypes.c_char_p(name.encode()))


def hide_from_debuggers() -> None:
    """Clear the dumpable flag: only processes with CAP_SYS_PTRACE can read or trace this one and its forks."""
    prctl(_DUMPABLE, 0)


def drop_from_bound(capability: int) -> None:
    """Remove a capability from the bounding set."""
    if _libc.prctl(_DROP_BOUND, capability, 0, 0, 0) != 0 and ctypes.get_errno() != errno.EINVAL:
        _check(-1, f"capability {capability}")  # EINVAL: unknown to this kernel


def set_capabilities(mask: int) -> None:
    """Set permitted and effective capabilities; clear inheritable ones."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _check(_libc.capset(header, data), "capabilities")


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install_filter(program: bytes) -> None:
    """Install a seccomp filter (classic BPF) for this process and its children."""
    content = ctypes.create_string_buffer(program, len(program))
    filtering = _FilterProgram(len(program) // _INSTRUCTION, ctypes.addressof(content))
    _check(_libc.prctl(_SECCOMP, _FILTER, ctypes.byref(filtering), 0, 0), "seccomp filter")


def leave_session_keyring() -> None:
    """Join a new session keyring, so that keys of the node's session are not accessible."""
    number = _KEYCTL.get(platform.machine())
    if number is not None:
        _syscall(number, _JOIN_SESSION_KEYRING, None)  # fails only on kernels without keyrings


def own_new_files_as(identity: int) -> None:
    """Set the file system user and group id, which own new files."""
    _libc.setfsgid(identity)
    _libc.setfsuid(identity)


# Namespaces


def unshare(flags: int, what: str) -> None:
    _check(_libc.unshare(flags), what)


def join(process: int, flags: int, what: str) -> None:
    """Enter namespaces of a process (pidfd) or a namespace descriptor."""
    _check(_libc.setns(process, flags), what)


def set_host_name(name: str) -> None:
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), "hostname")


# Mounts


def make_mounts_private() -> None:
    _check(_libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "/")


def mount(kind: str, target: str, flags: int, data: str = "") -> None:
    """Mount a new file system of type `kind`."""
    name = kind.encode()
    _check(_libc.mount(name, os.fsencode(target), name, flags, data.encode() or None), target)


def clone_tree(source: int | str, recursive: bool) -> int:
    """Return the descriptor of a detached copy of a mount, given by an open file or a path."""
    flags = _CLONE_TREE | os.O_CLOEXEC | (_AT_RECURSIVE if recursive else 0)
    if isinstance(source, int):
        return _check(_syscall(_OPEN_TREE, source, b"", flags | _EMPTY_PATH), "bind mount")
    return _check(_syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), flags), source)


def set_attributes(tree: int, flags: int, what: str, recursive: bool = True, user_namespace: int | None = None) -> None:
    """Set mount flags and private propagation.

    `user_namespace`: descriptor of the user namespace that maps the ids of its files.
    """
    more = _ID_MAP if user_namespace is not None else 0
    wanted = _MountAttributes(flags | more, 0, _PRIVATE, 0 if user_namespace is None else user_namespace)
    at = _EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    _check(_syscall(_MOUNT_SETATTR, tree, b"", at, ctypes.byref(wanted), ctypes.sizeof(wanted)), what)


def attach_tree(tree: int, target: int | str, what: str) -> None:
    """Attach a detached mount at an open file or directory, or at a path."""
    if isinstance(target, int):
        result = _syscall(_MOVE_MOUNT, tree, b"", target, b"", _FROM_EMPTY | _TO_EMPTY)
    else:
        result = _syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _FROM_EMPTY)
    _check(result, what)


def pivot_here() -> None:
    """Make the current directory, a mount point, the root and detach the old root."""
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "the old root")
    os.chdir("/")


def run_read_only(arguments: list[str]) -> None:
    """Re-execute this interpreter from a read-only mount; returns if that fails.

    A container that opens `/proc/PID/exe` of a process that is joining it then cannot overwrite the node's interpreter
    (CVE-2019-5736).
    """
    try:
        tree = clone_tree(os.path.realpath("/proc/self/exe"), recursive=False)
        set_attributes(tree, READ_ONLY, "/proc/self/exe", recursive=False)
        os.execve(f"/proc/self/fd/{tree}", arguments, {})  # noqa: S606 - re-executes this program
    except OSError:
        return


def is_read_only(path: str) -> bool:
    """Return whether a file is on a read-only mount."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
