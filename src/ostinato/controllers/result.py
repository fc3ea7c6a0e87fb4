"""Results: whether and when a key is requeued after a reconcile.

| a reconcile that | effect |
|---|---|
| returns None or `Result()` | done; resets the backoff |
| returns `Result(requeue_after=30)` | requeued after 30 s; resets the backoff |
| returns `Result(retry=True)` | requeued with backoff; not an error |
| raises | counted as an error and reported (`failures`); requeued with backoff |
| raises `TemporaryError("…", delay=30)` | counted as an error and reported; requeued after 30 s |
| raises `PermanentError` | counted as an error and reported; not requeued until an event: the object changes |
| fails more than `max_retries` times in a row | as with `PermanentError` |
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
        if self.requeue_after is not None:
            _seconds("requeue_after", self.requeue_after)
        if self.priority is not None and not isinstance(self.priority, int):
            raise TypeError(f"priority must be an integer such as 0 or LOW_PRIORITY, not {self.priority!r}")

    @property
    def delay(self) -> float | None:
        """`requeue_after` in seconds."""
        after = self.requeue_after
        return after.total_seconds() if isinstance(after, timedelta) else after


class Unsettled(Result, frozen=True, kw_only=True):
    """Neither a success nor a failure: the backoff and the reports of earlier failures stay as they are."""


class TemporaryError(Exception):
    """A retry is expected to help: `raise TemporaryError("the database starts", delay=30)`.

    - `delay`: seconds, or a `timedelta`, until the retry. Defaults to None: the backoff of the controller.
    - Any code that a reconcile calls may raise it; other errors may be raised from it.
    """

    def __init__(self, *args: object, delay: float | timedelta | None = None) -> None:
        super().__init__(*args)
        self.delay = None if delay is None else _seconds("delay", delay)

    def __str__(self) -> str:
        return super().__str__() or "temporary error"


class PermanentError(Exception):
    """A retry cannot help: `raise PermanentError("spec.size: unknown size")`. `TerminalError` is the same class.

    Can be raised from another error or wrap one: `raise PermanentError(error) from error`.
    """

    def __str__(self) -> str:
        return super().__str__() or "permanent error"


TerminalError = PermanentError
"""The name in controller-runtime."""


class BadResult(PermanentError):  # noqa: N818
    """A reconciler returned something other than None or a `Result`."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(
            f"reconciler {name} returned {_shown(value)}; return None, or Result(requeue_after=…) to requeue"
        )


def is_permanent(error: BaseException) -> bool:
    """Return whether the error is a `PermanentError`, was raised from one, or is a group of such errors only."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_permanent(each) for each in error.exceptions)
    return isinstance(_policy(error), PermanentError)


def delay_of(error: BaseException) -> float | None:
    """Return the delay of a `TemporaryError`, or of one that the error was raised from; None without.

    Of a group, the shortest; None if one of its errors asks for none, as the backoff may be shorter.
    """
    if isinstance(error, BaseExceptionGroup):
        delays = [delay_of(each) for each in error.exceptions if not is_permanent(each)]
        return min((each for each in delays if each is not None), default=None) if None not in delays else None
    found = _policy(error)
    return found.delay if isinstance(found, TemporaryError) else None


def _policy(error: BaseException) -> TemporaryError | PermanentError | None:
    """Return the error, or the nearest of its causes, that decides on the retry."""
    return next((each for each in _causes(error) if isinstance(each, TemporaryError | PermanentError)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _seconds(name: str, value: object) -> float:
    """Return a number of seconds or a timedelta in seconds; raises if it is something else, or not finite."""
    if not isinstance(value, int | float | timedelta):
        raise TypeError(f"{name} must be a number of seconds or a timedelta, not {value!r}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not isfinite(seconds):
        raise ValueError(f"{name}: {value} is not a finite number of seconds")
    return seconds


def _shown(value: object) -> str:
    if isinstance(value, Object) or (
        isinstance(value, dict) and "kind" in value
    ):  # not its content: it may be a Secret
        return f"the object {access.describe(value)}"
    if isinstance(value, Coroutine):
        return f"{getattr(value, '__qualname__', 'a coroutine')}(…), which is never awaited"
    text = repr(value)
    return f"{text[:80]}… ({type(value).__name__})" if len(text) > 80 else f"{text} ({type(value).__name__})"
