"""Signals: SIGTERM and SIGINT ask for a graceful end; the second one ends the process at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_logger = logging.getLogger("ostinato.manager")


@contextmanager
def stop_on_signals(stop: Callable[[], object], leave: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Call `stop` at the first signal, on the running loop, and `leave(1)` at the second."""
    loop = asyncio.get_running_loop()
    seen: list[signal.Signals] = []

    def handle(number: signal.Signals) -> None:
        seen.append(number)
        if len(seen) > 1:
            _logger.warning("%s again: leaving at once", number.name)
            leave(1)
            return
        _logger.info("%s: stopping", number.name)
        stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
