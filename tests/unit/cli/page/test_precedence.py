"""Precedence: scheduling class and niceness of the page's process. Real ones, of threads that end with their test."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ostinato.cli.page import precedence
from ostinato.cli.page.precedence import Precedence

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="scheduling classes of Linux")

Seen = list[tuple[float, int]]


def in_thread(work: Callable[[], Any]) -> Any:
    """Run in a thread of its own: Linux has a niceness and a class for each."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def current() -> tuple[int, int]:
    return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)


class LateClock:
    """Wakes sleepers later than they asked for, by the given seconds each; cancels them when these have run out."""

    def __init__(self, *late: float) -> None:
        self._now = 100.0
        self._late = iter(late)
        self.seen: Seen = []  # how long each sleep was to be, and the class during it

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.seen.append((seconds, os.sched_getscheduler(0)))
        late = next(self._late, None)
        if late is None:
            raise asyncio.CancelledError
        self._now += seconds + late


def slept(*late: float) -> Seen:
    """How a precedence sleeps with a clock that is late."""
    clock = LateClock(*late)

    def run() -> None:
        lowered = Precedence(clock)  # type: ignore[arg-type] - it needs no more of a clock
        lowered.yield_()
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(lowered.run())

    in_thread(run)
    return clock.seen


@pytest.fixture
def privileged() -> None:
    if not precedence._may_return():
        pytest.skip("needs the right to leave SCHED_IDLE: root, or a limit of niceness")


def lowered() -> tuple[int, int]:
    Precedence(LateClock()).yield_()  # type: ignore[arg-type]
    return current()


@pytest.mark.usefixtures("privileged")
def test_it_runs_where_others_leave_the_processor_idle() -> None:
    _, niceness = in_thread(current)
    assert in_thread(lowered) == (os.SCHED_IDLE, min(19, niceness + 15))


def test_without_the_right_to_return_it_has_the_lowest_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "_may_return", lambda: False)
    assert in_thread(lowered) == (os.SCHED_BATCH, 19)
    before = in_thread(lambda: asyncio.run(Precedence(LateClock()).run()))  # type: ignore[arg-type]
    assert before is None  # it has nothing to do


@pytest.mark.usefixtures("privileged")
def test_while_it_is_granted_too_little_it_has_more_weight() -> None:
    idle, batch = os.SCHED_IDLE, os.SCHED_BATCH
    assert slept(0.0, 0.9, 1.0, 3.0, 0.0) == [
        (0.25, idle),
        (0.25, idle),
        (0.25, idle),
        (10.0, batch),
        (0.25, idle),
        (0.25, idle),
    ]


def test_the_right_to_return_is_that_of_the_kernel() -> None:
    """Asked in a process of its own, which may lose its rights."""
    code = (
        "import os, resource, sys; from ostinato.cli.page import precedence\n"
        "os.getuid() or os.setuid(65534)\n"
        "resource.setrlimit(resource.RLIMIT_NICE, (0, 0)) if os.getuid() else None\n"
        "expected = precedence._may_return(); os.nice(15); os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
        "try: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); found = True\n"
        "except PermissionError: found = False\n"
        "sys.exit(0 if expected == found else f'{expected=} {found=}')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
