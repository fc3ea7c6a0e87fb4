"""Garbage collection that does not depend on what else the process has done.

The collector runs after so many allocations, and finalisers with it: at another moment in every run. A simulation
switches that off and collects at moments of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def manual_collection() -> Iterator[None]:
    """Stop automatic collection, and set aside what the process has allocated before: it is not the simulation's."""
    collecting = gc.isenabled()
    alone = gc.get_freeze_count() == 0
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
