"""Programs that run controllers, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60


class Running:
    """A program, and what it says on standard output."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log
        self.said: list[str] = []

    def wait_until_it_says(self, text: str) -> str:
        """The line with a text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended with {self.process.wait(SECONDS)} and never said {text!r}: {self.log()}")

    def log(self) -> str:
        """What it has said on standard error."""
        return self._log.read_text()

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        self.process.terminate()
        return self.process.wait(SECONDS)


@contextmanager
def running(log: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """`python ARGUMENTS`, ended afterwards if it has not ended by itself."""
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            yield Running(process, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(SECONDS)
            if process.stdout is not None:
                process.stdout.close()
