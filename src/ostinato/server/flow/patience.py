"""Patience: how much one call may cost on the event loop before it is made again in a worker thread.

What a rule in CEL costs is known only when it is evaluated. So it is evaluated on the loop with a small budget: nearly
all rules end within it. One that does not raises `TooLongError`, and whoever called makes the same call again aside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

HURRIED_COST = 2000  # in units of CEL, of which a thousand take about a millisecond

_hurried: ContextVar[bool] = ContextVar("ostinato.server.flow.hurried", default=False)


class TooLongError(Exception):
    """The call costs more than it may on the event loop."""


def hurried() -> bool:
    """Whether the call under way should raise TooLongError instead of costing much."""
    return _hurried.get()


def in_a_hurry(function: Callable[[], T]) -> T:
    """Call a function on the event loop. It has to be one that can be called again after TooLongError."""
    token = _hurried.set(True)
    try:
        return function()
    finally:
        _hurried.reset(token)
