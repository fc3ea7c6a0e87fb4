"""Resource limits of containers: control groups (v1 or v2) where these are writable, rlimits elsewhere.

Without control groups, memory is limited by `RLIMIT_DATA` and processes by `RLIMIT_NPROC`, which the kernel does not
enforce for root.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import Container

PROCESSES: Final = 512  # processes and threads per container
_FEWEST_SHARES: Final = 2  # CPU shares without a CPU request, as kubelet's MinShares
_PERIOD: Final = 100_000  # microseconds of the CPU quota period
_ROOT: Final = Path("/sys/fs/cgroup")
_NAME: Final = "ostinato"


class Limits(msgspec.Struct, frozen=True):
    """
    - `groups`: directories of the created control groups, which the container's processes join.
    - `processes`: rlimits by their name in the `resource` module.
    - `memory_events`: files that count OOM kills.
    """

    groups: list[str]
    processes: dict[str, int]
    memory_events: list[str]


def limits_of(container: Container, name: str) -> Limits:
    """Create the control groups of a container and return its limits. `name`: name of the control groups."""
    limits: Mapping[str, Quantity] = {} if container.resources is None else container.resources.limits
    requests: Mapping[str, Quantity] = {} if container.resources is None else container.resources.requests
    shares = max(requests["cpu"].milli_value() * 1024 // 1000 if "cpu" in requests else 0, _FEWEST_SHARES)
    memory = limits["memory"].value() if "memory" in limits else None
    milli = None if "cpu" not in limits else limits["cpu"].milli_value()
    groups, events = [], []
    processes: dict[str, int] = {}
    own = _own_groups()
    if (_ROOT / "cgroup.controllers").exists():
        parent = _below(_ROOT, own.get("", "/"))
        settings = {"pids.max": str(PROCESSES), "cpu.weight": str(1 + (shares - 2) * 9999 // 262142)}
        if memory is not None:
            settings |= {"memory.max": str(memory), "memory.swap.max": "0"}
        if milli is not None:
            settings["cpu.max"] = f"{max(milli * _PERIOD // 1000, 1000)} {_PERIOD}"
        with suppress(OSError):
            _enable(parent)
            group = _group(parent / _NAME, name, settings)
            groups.append(str(group))
            events.append(str(group / "memory.events"))
    else:
        wanted = {"pids": {"pids.max": str(PROCESSES)}, "cpu": {"cpu.shares": str(shares)}}
        if memory is not None:
            wanted["memory"] = {"memory.limit_in_bytes": str(memory)}
        if milli is not None:
            quota = str(max(milli * _PERIOD // 1000, 1000))
            wanted["cpu"] |= {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota}
        for controller, values in wanted.items():
            with suppress(OSError):
                group = _group(_below(_ROOT / controller, own.get(controller, "/")) / _NAME, name, values)
                groups.append(str(group))
                if controller == "memory":
                    events.append(str(group / "memory.oom_control"))
    if memory is not None and not events:
        processes["RLIMIT_DATA"] = memory
    if not groups and os.geteuid() != 0:
        processes["RLIMIT_NPROC"] = PROCESSES
    return Limits(groups, processes, events)


def _own_groups() -> dict[str, str]:
    """Return the control group of this process by controller; v2 has a single one, named "".

    Groups of containers are created below it, so that the agent's own limits apply to them.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _enable(parent: Path) -> None:
    (parent / _NAME).mkdir(exist_ok=True)
    for directory in (parent, parent / _NAME):
        (directory / "cgroup.subtree_control").write_text("+pids +memory +cpu")


def _group(parent: Path, name: str, settings: Mapping[str, str]) -> Path:
    group = parent / name
    group.mkdir(parents=True, exist_ok=True)
    if not (group / "cgroup.procs").exists():
        group.rmdir()
        raise FileNotFoundError(f"{parent} is not a control group")
    if not os.access(group / "cgroup.procs", os.W_OK):
        raise PermissionError(f"{group} is not writable")
    for setting, value in settings.items():
        with suppress(FileNotFoundError, PermissionError):
            (group / setting).write_text(value)
    return group
