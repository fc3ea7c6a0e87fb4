"""Processor time and memory of processes, from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Process:
    """Resource usage of one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def cpu(self) -> float:
        """Return the processor time in seconds."""
        return sum(map(int, _stat(self._pid)[11:13])) / _TICKS

    def memory(self, which: str = "VmRSS") -> float:
        """Return memory in MB."""
        return _memory(self._pid, which)


class Processes:
    """Resource usage of processes with their descendants, together: a program counts however many it starts."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._roots = list(pids)

    def cpu(self) -> float:
        """Return the processor time in seconds, that of ended children included."""
        return sum(sum(map(int, _stat(pid)[11:15])) for pid in self._found()) / _TICKS

    def cpu_by_program(self) -> dict[str, float]:
        """Return the processor time of the processes that run, in seconds."""
        found: dict[str, float] = {}
        for pid in self._found():
            name = _program(pid)
            found[name] = found.get(name, 0.0) + Process(pid).cpu()
        return found

    def memory(self, which: str = "VmRSS") -> float:
        """Return memory in MB."""
        return sum(_memory(pid, which) for pid in self._found())

    def _found(self) -> set[int]:
        return set().union(*map(family, self._roots))


class Peak:
    """The largest memory while the block runs, sampled: the peaks of several processes need not coincide."""

    def __init__(self, memory: Callable[[], float], every: float = 0.5) -> None:
        self.megabytes = 0.0
        self._memory = memory
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.megabytes = max(self.megabytes, self._memory())
            if self._ended.wait(self._every):
                return


def family(root: int) -> set[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for file in _PROC.glob("[0-9]*/stat"):
        pid = int(file.parent.name)
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found, waiting = set[int](), [root]
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting += children.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of `stat` after the name."""
    return _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()


def _program(pid: int) -> str:
    """Return the name of a program; of a Python module, the argument after it, such as the parts of a control plane."""
    arguments = _read(_PROC / str(pid) / "cmdline").split("\0")
    if "-m" in arguments[:-2]:
        return arguments[arguments.index("-m") + 2] or "python"
    return Path(arguments[0]).name


def _memory(pid: int, which: str) -> float:
    for line in _read(_PROC / str(pid) / "status").splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    return 0.0


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended
        return ""
