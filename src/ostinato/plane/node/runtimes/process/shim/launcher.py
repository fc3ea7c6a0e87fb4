"""The launcher: one process per node that forks the keepers of all containers. Part of the shim.

- Its standard input is a socket to the agent. Each line names a container's directory; the forked keeper replies on the
  same socket with a line of JSON.
- The agent enables SCM_CREDENTIALS and accepts a reply only from the keeper that it names.
- No other descriptor stays open: neither those of the agent nor, in containers, the socket.
- The launcher exits when the agent closes the socket; keepers keep running.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from typing import NoReturn

from shim import kernel  # type: ignore[import-not-found]
from shim.keeper import Keeper  # type: ignore[import-not-found]

_REEXECUTED = "again"  # argument after the attempt to re-execute from a read-only mount


def main() -> None:
    kernel.close_all_but(())
    if os.geteuid() == 0 and _REEXECUTED not in sys.argv and not kernel.is_read_only("/proc/self/exe"):
        kernel.run_read_only([sys.executable, "-I", "-S", sys.argv[0], _REEXECUTED])
    os.umask(0o077)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    gc.disable()
    gc.freeze()  # keep memory pages shared with forked keepers
    agent = socket.socket(fileno=0)
    lines = agent.makefile("rb")
    while line := lines.readline():
        if os.fork() == 0:
            _keep(os.fsdecode(line.rstrip(b"\n")), agent)


def _keep(directory: str, agent: socket.socket) -> NoReturn:
    try:
        keeper = Keeper(directory, agent)
        try:
            keeper.keep()
        except Exception as error:  # noqa: BLE001 - reported to the agent, which waits for a reply
            keeper.fail(error)
    finally:
        os._exit(1)
