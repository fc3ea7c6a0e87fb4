"""The process of an operator: resource usage and termination."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Self

import msgspec

from bench.operators.contenders import ROOT

_TICKS = os.sysconf("SC_CLK_TCK")


class Figures(msgspec.Struct):
    """Resource usage of one run."""

    rate: float  # objects a second
    cpu: float  # milliseconds of processor an object, the start of the process included
    memory: float  # megabytes, at the worst

    def or_better(self, other: Figures) -> Figures:
        return Figures(max(self.rate, other.rate), min(self.cpu, other.cpu), min(self.memory, other.memory))


class OperatorProcess:
    """A running operator; `async with` starts and stops it."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._command = command
        self._environment = environment
        self._log = log

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=ROOT, env=self._environment, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log
            )
        return self

    def tell(self) -> None:
        """Write a line to the operator's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(20):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def ended(self) -> str:
        """Wait until the process ends unexpectedly; return the end of its output."""
        code = await self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"it ended with {code}: {lines[-1] if lines else 'it said nothing'}"

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def most_memory(self) -> float:
        """Return the peak memory in megabytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))
