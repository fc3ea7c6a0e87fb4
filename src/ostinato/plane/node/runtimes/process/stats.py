"""CPU and memory usage of a container's processes, from /proc."""

from __future__ import annotations

import os
from typing import Final

from ostinato.plane.node.runtimes import Usage
from ostinato.world.machine_time import processor_time

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def usage_of(keeper: int) -> Usage:
    """Return the usage of all descendants of a keeper, including waited-for children.

    The time of waited-for children is in ticks (10 ms), that of the others exact: metrics-server drops containers
    without any processor time. So the sum may decrease by some ticks when a child ends.
    """
    exact = 0.0
    ticks = pages = 0
    todo = _children(keeper)
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            exact += processor_time(pid)
        except OSError:
            continue
        ticks += sum(int(each) for each in fields[13:15])
        pages += int(fields[21])
        todo += _children(pid)
    return Usage(exact + ticks / _TICKS, pages * _PAGE)


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(each) for each in file.read().split()]
    except OSError:
        return []
