"""The cluster under test: `ostinato up` in a process of its own."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ostinato.plane.node.registration.machine_info import address

_STOP_SECONDS: Final = 60


@contextlib.contextmanager
def running_cluster(directory: Path, options: Sequence[str]) -> Iterator[Path]:
    """Start `ostinato up` with options and yield the kubeconfig of its administrator."""
    state = directory / "state"
    command = [sys.executable, "-m", "ostinato.cli", "up", "--state", str(state)]
    serving = ["--listen", "0.0.0.0:0", "--advertise-address", address()]  # Pods reach it at the machine's address
    with (directory / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, *serving, *options], stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        if "https://" not in process.stdout.readline():
            raise RuntimeError(f"ostinato up did not become ready; see {directory / 'up.log'}")
        yield state / "admin.kubeconfig"
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        process.kill()
        process.wait()
        process.stdout.close()
