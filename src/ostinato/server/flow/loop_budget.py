"""Loop budget: the cost that one call may have on the event loop before it is repeated in a worker thread.

The cost of a CEL rule is known only after its evaluation. Rules are therefore evaluated on the event loop with a small
budget, which nearly all of them keep. A rule that exceeds it raises `LoopBudgetExceeded`, and the caller repeats the
call in the worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

LOOP_BUDGET = 2000  # CEL cost units; a thousand take about a millisecond

_limited: ContextVar[bool] = ContextVar("ostinato.server.flow.loop_budget", default=False)


class LoopBudgetExceeded(Exception):  # noqa: N818
    """The call exceeds the budget of the event loop."""


def has_loop_budget() -> bool:
    """Whether the current call must raise LoopBudgetExceeded when it exceeds the budget."""
    return _limited.get()


def within_loop_budget(function: Callable[[], T]) -> T:
    """Call a function on the event loop. After LoopBudgetExceeded it must be possible to call it again."""
    token = _limited.set(True)
    try:
        return function()
    finally:
        _limited.reset(token)
