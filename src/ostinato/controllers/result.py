"""Results: whether and when a key is requeued after a reconcile.

| a reconcile that | effect |
|---|---|
| returns None or `Result()` | done; resets the backoff |
| returns `Result(requeue_after=30)` | requeued after 30 s; resets the backoff |
| returns `Result(retry=True)` | requeued with backoff; not an error |
| raises | counted as an error and reported (`failures`); requeued with backoff |
| raises `TerminalError` | counted as an error and reported; not requeued, runs again on the next event |
| raises `Conflict` | counted as a conflict, logged at debug level; requeued with backoff |
| raises `StillOwned` | as `Conflict`: an object of a deleted owner of the same name is not garbage-collected yet |

`requeue_after` takes precedence over `retry`. A requeued key keeps its priority unless the result sets another.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from datetime import timedelta
from math import isfinite

import msgspec

from ostinato.api import accessors as access
from ostinato.api.object import Object


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `requeue_after`: seconds, or a `timedelta`, after which the key is requeued; 0 or less is immediately. Defaults to
      None: not requeued.
    - `retry`: requeue with backoff. Defaults to False.
    - `priority`: of the requeued key. Defaults to its current priority.
    """

    requeue_after: float | timedelta | None = None
    retry: bool = False
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.requeue_after is not None and not isinstance(self.requeue_after, int | float | timedelta):
            raise TypeError(f"requeue_after must be a number of seconds or a timedelta, not {self.requeue_after!r}")
        if self.delay is not None and not isfinite(self.delay):
            raise ValueError(f"requeue_after: {self.requeue_after} is not a finite number of seconds")
        if self.priority is not None and not isinstance(self.priority, int):
            raise TypeError(f"priority must be an integer such as 0 or LOW_PRIORITY, not {self.priority!r}")

    @property
    def delay(self) -> float | None:
        """`requeue_after` in seconds."""
        after = self.requeue_after
        return after.total_seconds() if isinstance(after, timedelta) else after


class TerminalError(Exception):
    """A retry cannot help: `raise TerminalError("spec.size: unknown size")`.

    Can be raised from another error or wrap one: `raise TerminalError(error) from error`.
    """

    def __str__(self) -> str:
        return super().__str__() or "terminal error"


class BadResult(TerminalError):  # noqa: N818
    """A reconciler returned something other than None or a `Result`."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(
            f"reconciler {name} returned {_shown(value)}; return None, or Result(requeue_after=…) to requeue"
        )


def is_terminal(error: BaseException) -> bool:
    """Return whether the error is a `TerminalError`, was raised from one, or is a group of terminal errors only."""
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
    if isinstance(value, Object) or (
        isinstance(value, dict) and "kind" in value
    ):  # not its content: it may be a Secret
        return f"the object {access.describe(value)}"
    if isinstance(value, Coroutine):
        return f"{getattr(value, '__qualname__', 'a coroutine')}(…), which is never awaited"
    text = repr(value)
    return f"{text[:80]}… ({type(value).__name__})" if len(text) > 80 else f"{text} ({type(value).__name__})"
