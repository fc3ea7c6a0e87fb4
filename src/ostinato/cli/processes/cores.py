"""The number of cores that this process may use: its affinity, and the CPU quotas of its cgroups."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def usable_cores(root: Path = _ROOT, own: Path = _OWN) -> int:
    """Return the number of cores, at least 1. A quota of a part of a core counts as one.

    `root`, `own`: where cgroups are mounted, and the file that names those of this process.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([available, *(math.ceil(each) for each in _quotas(root, own))]))


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """Return the quotas, in cores, of the visible cgroups of this process and of their ancestors."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base = root
        elif "cpu" in controllers.split(","):
            base = root / "cpu"
        else:
            continue
        inside = Path(path.strip("/"))
        for each in (inside, *inside.parents):
            if (found := _quota(base / each)) is not None:
                yield found


def _quota(cgroup: Path) -> float | None:
    try:
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota = (cgroup / "cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu.cfs_period_us").read_text().strip()
        return None if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
