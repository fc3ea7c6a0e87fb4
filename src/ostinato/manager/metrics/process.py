"""Metrics of this process, as every program that Prometheus watches has them. Where there is no /proc, fewer."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from ostinato.queue import Family, Sample

_PROC: Final = Path("/proc")


def process_families(proc: Path = _PROC) -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime
    yield _single("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", seconds)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _single("process_max_fds", "gauge", "Maximum number of open file descriptors.", most)
    with suppress(OSError, ValueError, IndexError, StopIteration):
        yield from _from_proc(proc)


def _from_proc(proc: Path) -> list[Family]:
    # The command, in parentheses, may hold anything: fields are counted from behind it.
    fields = (proc / "self" / "stat").read_text().rpartition(")")[2].split()
    booted = next(line for line in (proc / "stat").read_text().splitlines() if line.startswith("btime "))
    started = int(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    files = len(os.listdir(proc / "self" / "fd"))
    return [
        _single("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident),
        _single("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", int(fields[20])),
        _single("process_open_fds", "gauge", "Number of open file descriptors.", files),
        _single(
            "process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.", started
        ),
    ]


def _single(name: str, kind: Literal["counter", "gauge"], text: str, value: float) -> Family:
    return Family(name, kind, text, [Sample(name, {}, value)])
