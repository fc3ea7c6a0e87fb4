"""The launcher: one process per node, from which the keepers of all containers are forked. Part of the shim.

Its standard input is a socket of the agent. A line is the name of a container's directory; the keeper that is forked
for it answers on the same socket with a line of JSON. The kernel tells the agent which process sent it (the agent
asks for SCM_CREDENTIALS), so an answer of another process than the keeper is not believed. No other descriptor is left
open: neither those of the agent nor, in containers, the socket.

Whoever started the launcher may end; the launcher ends with it, and keepers stay.
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

_AGAIN = "again"  # it was executed from a read-only mount, or that was tried


def main() -> None:
    kernel.close_all_but(())
    if os.geteuid() == 0 and _AGAIN not in sys.argv and not kernel.is_read_only("/proc/self/exe"):
        kernel.run_read_only([sys.executable, "-I", "-S", sys.argv[0], _AGAIN])
    os.umask(0o077)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are on their own
    gc.disable()
    gc.freeze()  # what keepers share with this process stays shared
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
        except Exception as error:  # noqa: BLE001 - told to the agent, who would wait
            keeper.fail(error)
    finally:
        os._exit(1)
