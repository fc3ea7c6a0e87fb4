"""Building blocks of programs: functions of a frame, each with its cost.

A frame is a list: spent cost, cost limit, work without a cost, and the variables, at indexes that are assigned at
compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Frame = list[Any]
Run = Callable[[Frame], Any]
SPENT: Final = 0
LIMIT: Final = 1
WORK: Final = 2
FIRST: Final = 3  # index of the first variable


class Code(NamedTuple):
    """A compiled subexpression: a function, and the cost that it does not count itself."""

    run: Run
    cost: int
    constant: bool = False


def charged(code: Code) -> Run:
    """Return a function that counts all of the cost."""
    run, cost = code.run, code.cost
    if not cost:
        return run

    def function(frame: Frame) -> Any:
        frame[SPENT] += cost
        return run(frame)

    return function
