"""Building blocks of programs: functions of a frame, each with its cost.

A frame is a list: what was spent, what may be spent, the work that has no cost of its own, and the variables, each in a
place that is known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Frame = list[Any]
Run = Callable[[Frame], Any]
SPENT: Final = 0
LIMIT: Final = 1
WORK: Final = 2
FIRST: Final = 3  # the place of the first variable


class Code(NamedTuple):
    """A part of a program: what to run, and what running it costs beyond what it counts itself."""

    run: Run
    cost: int
    constant: bool = False


def charged(code: Code) -> Run:
    """What to run so that all of the cost is counted."""
    run, cost = code.run, code.cost
    if not cost:
        return run

    def function(frame: Frame) -> Any:
        frame[SPENT] += cost
        return run(frame)

    return function
