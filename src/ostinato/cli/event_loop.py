"""The event loop of processes that serve, and their memory."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory, if uvloop is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def tune_garbage_collection() -> None:
    """Exempt the objects loaded so far from garbage collection: they live as long as the process."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
