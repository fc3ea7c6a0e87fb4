"""Programs that run controllers, each in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60


class Running:
    """A running program; `output` has the lines of its standard output."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log
        self.output: list[str] = []

    def wait_for_output(self, text: str) -> str:
        """Wait for a line with a text and return it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            if text in line:
                return line
        raise AssertionError(f"exited with {self.process.wait(SECONDS)} without printing {text!r}: {self.log()}")

    def log(self) -> str:
        """Return its standard error."""
        return self._log.read_text()

    def stop(self) -> int:
        """Terminate it and return its exit code."""
        self.process.terminate()
        return self.process.wait(SECONDS)


@contextmanager
def running(log: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run `python ARGUMENTS`; kill it at the end of the block if it is still running."""
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
