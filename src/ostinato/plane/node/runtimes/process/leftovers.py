"""Kill the processes of a container whose keeper was killed.

They are identified by what a container cannot change: its first process, which ends its PID namespace, and its control
groups. Where it has neither, by an environment variable that its processes inherit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

_ROUNDS: Final = 20


def kill_leftovers(directory: Path, mark: str) -> None:
    """Kill all processes of the container of a directory. `mark`: its marker variable as NAME=VALUE."""
    wanted = mark.encode()
    _kill_first(_read(directory / "state.json"))
    groups = _read(directory / "launch.json").get("groups", [])
    for _ in range(_ROUNDS):  # they may fork while they are being killed
        found = {*_in_cgroups(groups), *(pid for pid in _processes() if wanted in _environment(pid))}
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _kill_first(state: dict[str, Any]) -> None:
    """Kill the container's first process, unless its process id has been reused (the start times differ)."""
    pid, start_ticks = state.get("pid"), state.get("start_ticks")
    if not pid or not start_ticks or not hasattr(os, "pidfd_open"):
        return
    with suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[19]) == start_ticks:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _in_cgroups(groups: list[str]) -> Iterator[int]:
    for group in groups:
        with suppress(OSError):
            yield from (int(each) for each in Path(group, "cgroup.procs").read_text().split() if each != "0")


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return {}


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
