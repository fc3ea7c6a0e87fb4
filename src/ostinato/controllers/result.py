"""Results: what is to happen after a reconcile.

| a reconcile that | is |
|---|---|
| returns None or `Result()` | done; its failures are forgotten |
| returns `Result(requeue_after=30)` | done, and runs again after 30 s; its failures are forgotten |
| returns `Result(retry=True)` | not done, which is no error: it runs again after a wait that doubles each time |
| raises | failed, which is logged and counted: it runs again after a wait that doubles each time |
| raises `TerminalError` | failed for good: it runs again only when something changes |
| raises `Conflict` | overtaken by another writer: as `retry`, and counted; nobody is alarmed |
| raises `StillOwned` | the same: what it wants to have is going with an earlier object of the same name |

An error wins over everything else, and `requeue_after` over `retry`. What runs again keeps its priority unless the
result gives it another.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from datetime import timedelta
from math import isfinite

import msgspec

from ostinato.api import access
from ostinato.api.object import Object


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `requeue_after`: seconds, or a `timedelta`, after which to run again; none or less is at once. Defaults to never.
    - `retry`: run again with backoff.
    - `priority`: of the next run. Defaults to that of this one.
    """

    requeue_after: float | timedelta | None = None
    retry: bool = False
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.requeue_after is not None and not isinstance(self.requeue_after, int | float | timedelta):
            raise TypeError(f"requeue_after is a number of seconds or a timedelta, not {self.requeue_after!r}")
        if self.delay is not None and not isfinite(self.delay):
            raise ValueError(f"requeue_after: {self.requeue_after} is no time to wait")
        if self.priority is not None and not isinstance(self.priority, int):
            raise TypeError(f"priority is a whole number, as 0 and LOW_PRIORITY are, not {self.priority!r}")

    @property
    def delay(self) -> float | None:
        """`requeue_after` in seconds."""
        after = self.requeue_after
        return after.total_seconds() if isinstance(after, timedelta) else after


class TerminalError(Exception):
    """Trying again cannot help: `raise TerminalError("spec.size: there is no such size")`.

    It may be raised from another error, or wrap one: `raise TerminalError(error) from error`.
    """

    def __str__(self) -> str:
        return super().__str__() or "terminal error"


class BadResult(TerminalError):  # noqa: N818 - what is the matter
    """A reconciler returned something that is no result."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(
            f"reconciler {name} returned {_shown(value)}; return None, or Result(requeue_after=…) to run again"
        )


def is_terminal(error: BaseException) -> bool:
    """Whether it is a `TerminalError`, was raised from one, or is a group in which all are."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_terminal(each) for each in error.exceptions)
    return any(isinstance(each, TerminalError) for each in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _shown(value: object) -> str:
    if isinstance(value, Object) or (isinstance(value, dict) and "kind" in value):  # it may be a Secret
        return f"the object {access.describe(value)}"
    if isinstance(value, Coroutine):
        return f"{getattr(value, '__qualname__', 'a coroutine')}(…), which it has to await"
    text = repr(value)
    return f"{text[:80]}… ({type(value).__name__})" if len(text) > 80 else f"{text} ({type(value).__name__})"
