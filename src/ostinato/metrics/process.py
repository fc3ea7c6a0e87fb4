"""Metrics of the process, under the names that Prometheus' client libraries use. Without /proc only some of them."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.metrics.families import Family, counter, gauge

_PROC: Final = Path("/proc")


def process_families(proc: Path = _PROC) -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime
    yield counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", seconds)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("process_max_fds", "Maximum number of open file descriptors.", most)
    with suppress(OSError, ValueError, IndexError, StopIteration):
        yield from _from_proc(proc)


def _from_proc(proc: Path) -> list[Family]:
    # The command, in parentheses, may contain anything: count the fields after it.
    fields = (proc / "self" / "stat").read_text().rpartition(")")[2].split()
    booted = next(line for line in (proc / "stat").read_text().splitlines() if line.startswith("btime "))
    started = int(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    files = len(os.listdir(proc / "self" / "fd"))
    return [
        gauge("process_resident_memory_bytes", "Resident memory size in bytes.", resident),
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", int(fields[20])),
        gauge("process_open_fds", "Number of open file descriptors.", files),
        gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", started),
    ]
