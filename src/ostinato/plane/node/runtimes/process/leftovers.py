"""Processes that a container left behind when its keeper was killed: found by a variable that all of them have."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Final

_ROUNDS: Final = 20


def kill_leftovers(mark: str) -> None:
    """Kill all processes with a variable, given as NAME=VALUE; where processes cannot be listed, none."""
    wanted = mark.encode()
    for _ in range(_ROUNDS):  # they may make others while they are being killed
        found = [pid for pid in _processes() if wanted in _environment(pid)]
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


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
