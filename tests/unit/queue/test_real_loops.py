"""The work queue on real clocks and event loops, whose timers may fire slightly early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ostinato.queue import WorkQueue
from ostinato.world import World


def uvloop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop])
def test_no_key_is_added_before_its_delay_has_passed(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    clock = World.real().clock

    async def main() -> None:
        queue: WorkQueue[float] = WorkQueue(clock)
        begun = clock.monotonic()
        delays = [0.0123, 0.0031, 0.0004, 0.0077, 0.0005]
        for delay in delays:
            queue.add_after(delay, delay)
        for expected in sorted(delays):
            assert await queue.get() == expected
            assert clock.monotonic() - begun >= expected

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
