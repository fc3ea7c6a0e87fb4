"""Garbage of worlds: collected after a number of them, as each leaves cycles that only a collection frees."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_EVERY: Final = 50  # worlds


@contextmanager
def rare_collections() -> Iterator[Callable[[], None]]:
    """Disable automatic collections within the block; call the result after each world."""
    enabled, count = gc.isenabled(), 0

    def collect() -> None:
        nonlocal count
        count += 1
        if count % _EVERY == 0:
            _collect()

    gc.disable()
    gc.freeze()
    try:
        yield collect
    finally:
        _collect()  # before `unfreeze`: only what was created since
        gc.unfreeze()
        if enabled:
            gc.enable()


def _collect() -> None:
    """Collect without warnings of coroutines that were never awaited: their process crashed before they began."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()
