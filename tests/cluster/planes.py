"""`ostinato up` in its own process, which tests can kill and start again with the same state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


class PlaneProcess:
    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
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

    def log(self) -> str:
        return (self._directory / "log").read_text()

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
