"""The seccomp filter of the profile `RuntimeDefault`, as a program of classic BPF.

- Denies (EPERM) what the default profiles of container runtimes deny: kernel modules, mounts, namespaces, keys, clocks,
  swap, performance counters, io_uring and similar, unless the container has the capability that the kernel requires.
- Denies other architectures and the x32 ABI.
- Returns ENOSYS for calls newer than this list, and for clone3, whose flags a filter cannot inspect: libraries fall
  back to clone.

Assembled here rather than with libseccomp: the list is short, covers two architectures and needs no dependency.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Collection
from typing import Final

_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NEWEST: Final = 462  # of Linux 6.10; later numbers get ENOSYS
_X32: Final = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW: Final = 0x7FFF0000
_DENY, _NO_SUCH_CALL = 0x00050001, 0x00050026  # EPERM, ENOSYS

_NAMESPACES: Final = 0x7E020000  # clone flags that create namespaces
_VSOCK: Final = 40  # AF_VSOCK reaches the hypervisor
_PERSONALITIES: Final = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)

# Call numbers on x86_64 and aarch64 (None: no such call), by the capabilities any of which allows them.
_DENIED: Final[dict[tuple[str, ...], dict[str, tuple[int | None, int | None]]]] = {
    (): {
        "add_key": (248, 217),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "io_uring_setup": (425, 425),
        "keyctl": (250, 219),
        "nfsservctl": (180, 42),
        "pivot_root": (155, 41),
        "query_module": (178, None),
        "request_key": (249, 218),
        "swapoff": (168, 225),
        "swapon": (167, 224),
        "_sysctl": (156, None),
        "sysfs": (139, None),
        "uselib": (134, None),
        "userfaultfd": (323, 282),
        "ustat": (136, None),
    },
    ("SYS_ADMIN",): {
        "fanotify_init": (300, 262),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fsopen": (430, 430),
        "fspick": (433, 433),
        "lookup_dcookie": (212, 18),
        "mount": (165, 40),
        "mount_setattr": (442, 442),
        "move_mount": (429, 429),
        "open_tree": (428, 428),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "setdomainname": (171, 162),
        "sethostname": (170, 161),
        "setns": (308, 268),
        "umount2": (166, 39),
        "unshare": (272, 97),
    },
    ("SYS_ADMIN", "BPF"): {"bpf": (321, 280)},
    ("SYS_ADMIN", "PERFMON"): {"perf_event_open": (298, 241)},
    ("SYS_ADMIN", "SYSLOG"): {"syslog": (103, 116)},
    ("SYS_BOOT",): {"kexec_file_load": (320, 294), "kexec_load": (246, 104), "reboot": (169, 142)},
    ("SYS_MODULE",): {
        "create_module": (174, None),
        "delete_module": (176, 106),
        "finit_module": (313, 273),
        "get_kernel_syms": (177, None),
        "init_module": (175, 105),
    },
    ("SYS_NICE",): {
        "get_mempolicy": (239, 236),
        "mbind": (237, 235),
        "migrate_pages": (256, 238),
        "move_pages": (279, 239),
        "set_mempolicy": (238, 237),
        "set_mempolicy_home_node": (450, 450),
    },
    ("SYS_PACCT",): {"acct": (163, 89)},
    ("SYS_PTRACE",): {
        "kcmp": (312, 272),
        "pidfd_getfd": (438, 438),
        "process_madvise": (440, 440),
    },
    ("SYS_RAWIO",): {"ioperm": (173, None), "iopl": (172, None)},
    ("SYS_TIME",): {"clock_adjtime": (305, 266), "clock_settime": (227, 112), "settimeofday": (164, 170)},
    ("SYS_TTY_CONFIG",): {"vhangup": (153, 58)},
    ("DAC_READ_SEARCH",): {"open_by_handle_at": (304, 265)},
}
_CLONE, _CLONE3, _PERSONALITY, _SOCKET = (56, 220), (435, 435), (135, 92), (41, 198)


def default_filter(capabilities: Collection[str], machine: str | None = None) -> bytes | None:
    """Return the filter for a container with these capabilities; None on an unsupported architecture."""
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    audit, column = known
    code = [
        *(_of(_LOAD, 0, 0, _ARCHITECTURE), _of(_EQUAL, 1, 0, audit), _of(_RETURN, 0, 0, _DENY)),
        _of(_LOAD, 0, 0, _NUMBER),
        *((_of(_AT_LEAST, 0, 1, _X32), _of(_RETURN, 0, 0, _DENY)) if column == 0 else ()),
        *(_of(_AT_LEAST, 0, 1, _NEWEST + 1), _of(_RETURN, 0, 0, _NO_SUCH_CALL)),
    ]
    for allowing, calls in _DENIED.items():
        if any(each in capabilities for each in allowing):
            continue
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                code += [_of(_EQUAL, 0, 1, number), _of(_RETURN, 0, 0, _DENY)]
    if "SYS_ADMIN" not in capabilities:
        code += [_of(_EQUAL, 0, 1, _CLONE3[column]), _of(_RETURN, 0, 0, _NO_SUCH_CALL)]
        code += _when(_CLONE[column], [_of(_ANY_BIT, 0, 1, _NAMESPACES), _of(_RETURN, 0, 0, _DENY)])
    code += _when(_SOCKET[column], [_of(_EQUAL, 0, 1, _VSOCK), _of(_RETURN, 0, 0, _DENY)])
    allowed = [each for value in _PERSONALITIES for each in (_of(_EQUAL, 0, 1, value), _of(_RETURN, 0, 0, _ALLOW))]
    code += _when(_PERSONALITY[column], [*allowed, _of(_RETURN, 0, 0, _DENY)])
    return b"".join([*code, _of(_RETURN, 0, 0, _ALLOW)])


def _of(operation: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", operation, if_true, if_false, value)


def _when(number: int, checks: list[bytes]) -> list[bytes]:
    """Apply checks to the first argument of a call; allow what they do not decide."""
    inside = [_of(_LOAD, 0, 0, _FIRST_ARGUMENT), *checks, _of(_RETURN, 0, 0, _ALLOW)]
    return [_of(_EQUAL, 0, len(inside), number), *inside]
