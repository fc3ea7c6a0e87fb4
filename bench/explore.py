"""Worlds a second of fault exploration, for the Widget example on one core: `python -m bench.explore [WORLDS]`.

CPU time is measured, of this process and of its copies, so that other programs on the machine matter less.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ostinato import ObjectMeta
from ostinato.testing import load
from ostinato.testing.explore import create, delete, edit
from ostinato.testing.explore.api import Options, run

WIDGET = Path(__file__).parents[1] / "examples" / "widget.py"


def main(worlds: int = 1000) -> None:
    widget = load(WIDGET)
    first = widget.Widget(metadata=ObjectMeta(name="a"), spec=widget.WidgetSpec(replicas=3))
    scenario = [create(first), edit(first, replicas=2), delete(first)]
    began = _cpu_seconds()
    found = run(widget.widgets, scenario, Options(worlds=worlds))
    seconds = _cpu_seconds() - began
    print(f"{found.worlds} worlds in {seconds:.1f} s of CPU time: {found.worlds / seconds:.0f} a second")
    print("\n".join(found.coverage))
    if found.failed is not None:
        print(found.failed.text())


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
