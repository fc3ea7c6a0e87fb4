"""Deterministic garbage collection.

Automatic collections, and so finalizers, depend on the number of allocations, which differs between runs. A simulation
disables them and collects at fixed steps.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def manual_collection() -> Iterator[None]:
    """Disable automatic collection, and freeze existing objects, which are not part of the simulation.

    Whoever has disabled collections before decides what is frozen: counting frozen objects takes milliseconds.
    """
    collecting = gc.isenabled()
    alone = collecting and gc.get_freeze_count() == 0
    gc.disable()
    if alone:
        gc.freeze()
    try:
        yield
    finally:
        if alone:
            gc.unfreeze()
        if collecting:
            gc.enable()
