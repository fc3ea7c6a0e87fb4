"""Signals: SIGTERM and SIGINT ask for a graceful end; the second one ends the process at once.

The second one is heard though the event loop is blocked: that may be why somebody sends it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_logger = logging.getLogger("ostinato.manager")


@contextmanager
def stop_on_signals(stop: Callable[[], object], leave: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Call `stop` at the first signal, on the running loop, and `leave(1)` at the second, wherever it comes."""
    loop = asyncio.get_running_loop()
    seen: list[signal.Signals] = []

    def begin(number: signal.Signals) -> None:
        _logger.info("%s: stopping", number.name)
        stop()

    def hear(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as it is called
        seen.append(signal.Signals(number))
        if len(seen) == 1:
            loop.call_soon_threadsafe(begin, seen[0])
            return
        with suppress(Exception):  # it may come in the midst of writing to the log
            _logger.warning("%s again: leaving at once", seen[-1].name)
        leave(1)

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
