"""`ostinato up` in its own process, which tests can kill and start again with the same state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def parts_of(pid: int) -> dict[str, int]:
    """The pids of the processes that an `ostinato up` supervises, by their parts."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid and b"ostinato.cli.processes.child" in words:
            found[words[-3].decode()] = int(directory.name)
    return found


class PlaneProcess:
    """The plane is in one process, whose start takes the least processor time, unless options say otherwise.

    `OSTINATO_PROCESSES=2 pytest tests/cluster` runs all planes of the tests in two.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = ("--processes", os.environ.get("OSTINATO_PROCESSES", "1"), *options)
        self._process: subprocess.Popen[str] | None = None
        self.kubeconfig = directory / "state" / "admin.kubeconfig"

    def start(self) -> None:
        """Start the process and wait until the API server is ready."""
        self._directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ostinato.cli", "up", "--state", str(self._directory / "state")]
        with (self._directory / "log").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0", *self._options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ},
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if ready.startswith("page: "):
            ready = self._process.stdout.readline()
        assert "https://" in ready, f"no ready line but {ready!r}; log: {self.log()[-2000:]}"

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)
        self._close()

    def stop(self) -> int:
        """Terminate the process and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(30)
        finally:
            self._process.kill()
            self._close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def parts(self) -> dict[str, int]:
        """The pids of the processes that the command supervises, by their parts."""
        return parts_of(self.pid)

    def log(self) -> str:
        return (self._directory / "log").read_text()

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
