"""Worlds a second of fault exploration, for the Widget example: `python -m bench.explore [WORLDS] [PROCESSES]`.

- CPU time is measured, of this process and of its copies, so that other programs on the machine matter less. The first
  worlds, with which modules are loaded, are not counted.
- With several processes, each runs a part of the worlds; CPU time per world should not depend on their number.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ostinato import ObjectMeta
from ostinato.testing import load
from ostinato.testing.explore import create, delete, edit
from ostinato.testing.explore.api import Explored, Options, run
from ostinato.world.simulated import forks

WIDGET = Path(__file__).parents[1] / "examples" / "widget.py"


def main(worlds: int = 300, processes: int = 1) -> None:
    widget = load(WIDGET)
    first = widget.Widget(metadata=ObjectMeta(name="a"), spec=widget.WidgetSpec(replicas=3))
    scenario = [create(first), edit(first, replicas=2), delete(first)]

    def explored(worlds: int, part: int = 0) -> Explored:
        return run(widget.widgets, scenario, Options(worlds=worlds, part=(part, processes)))

    explored(1)
    began, cpu = time.monotonic(), _cpu_seconds()
    others = [forks.fork_to(lambda part=part: explored(worlds // processes, part)) for part in range(1, processes)]  # type: ignore[misc]
    found = explored(worlds // processes)
    for other in others:
        forks.wait_for(other)
    seconds, elapsed = _cpu_seconds() - cpu, time.monotonic() - began
    count = found.worlds * processes
    print(f"{count} worlds in {seconds:.1f} s of CPU time: {count / seconds:.0f} a second and core")
    print(f"{elapsed:.1f} s with {processes} process(es): {count / elapsed:.0f} a second")
    print("\n".join(found.coverage))
    if found.failed is not None:
        print(found.failed.text())


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
