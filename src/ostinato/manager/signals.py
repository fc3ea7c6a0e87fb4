"""Signals: SIGTERM and SIGINT request a graceful shutdown; the second signal ends the process immediately.

The second signal works even if the event loop is blocked.
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
    """Call `stop` on the running loop at the first signal, and `leave(1)` in the signal handler at the second."""
    loop = asyncio.get_running_loop()
    seen: list[signal.Signals] = []

    def begin(number: signal.Signals) -> None:
        _logger.info("received signal, stopping signal=%s", number.name)
        stop()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        seen.append(signal.Signals(number))
        if len(seen) == 1:
            loop.call_soon_threadsafe(begin, seen[0])
            return
        with suppress(Exception):  # the signal may interrupt logging
            _logger.warning("received second signal, exiting signal=%s", seen[-1].name)
        leave(1)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
