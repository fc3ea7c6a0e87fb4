"""Memory of the process: what it has, the most frequent types, and what is allocated during some seconds."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ostinato.metrics import process_families
from ostinato.world import Clock

_MOST: Final = 40


def summary() -> str:
    """Return the sizes of the process and the most frequent types of objects.

    Objects that were frozen at the start (`ostinato.manager.running`) are counted, but not by type.
    """
    lines = [f"{name:<34} {value:>16,.0f}\n" for name, value in _sizes()]
    counts = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    lines += [f"\n{'objects':>10}  type\n", *(f"{count:>10,}  {name}\n" for name, count in counts.most_common(_MOST))]
    return "".join(lines)


async def allocations(clock: Clock, seconds: float) -> str:
    """Return the lines that allocated most in the next seconds, of what is alive at their end.

    Python is slower meanwhile: it records each allocation.
    """
    tracemalloc.start()
    try:
        await clock.sleep(seconds)
        found = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    own = tracemalloc.Filter(inclusive=False, filename_pattern=tracemalloc.__file__)
    statistics = found.filter_traces([own]).statistics("lineno")[:_MOST]
    rows = (f"{each.size:>12,} {each.count:>9,}  {each.traceback}\n" for each in statistics)
    return "".join([f"{'bytes':>12} {'blocks':>9}  line\n", *rows])


def _sizes() -> Iterator[tuple[str, float]]:
    for family in process_families():
        if family.name.endswith("_bytes"):
            for each in family.samples:
                yield family.name, each.value
    yield "python_allocated_blocks", sys.getallocatedblocks()
    yield "python_frozen_objects", gc.get_freeze_count()
    for generation, statistics in enumerate(gc.get_stats()):
        yield f"python_gc_collections_generation_{generation}", statistics["collections"]
