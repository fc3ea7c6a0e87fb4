"""Forks of a simulation: copies of the whole process, each of which continues in the middle of the same step.

A simulation has neither threads nor sockets, so that its state is the memory of its process, and a copy of the process
is a copy of the simulation. Not available on Windows.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from typing import NoReturn


def is_available() -> bool:
    return hasattr(os, "fork")


def fork() -> int:
    """Copy this process; return 0 in the copy, and its process id in the original.

    The copy ends with `leave`, and never returns to what has started the simulation.
    """
    loop = asyncio._get_running_loop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, none of which the simulation uses
        process = os.fork()
    if process == 0:
        asyncio._set_running_loop(loop)  # asyncio remembers the process that has set it
    return process


def fork_to(work: Callable[[], None]) -> int:
    """Call a function in a copy of this process; return its process id."""
    process = fork()
    if process != 0:
        return process
    code = 1
    try:
        work()
        code = 0
    finally:
        leave(code)


def leave(code: int = 0) -> NoReturn:
    """End a copy at once, without cleanup: what is to be cleaned up belongs to the original."""
    os._exit(code)


def wait_for(process: int) -> int:
    """Wait for the end of a copy; return its exit code, or the negative number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
