"""Tracebacks: removes the frames of the controller loop, which precede the user's code in every traceback."""

from __future__ import annotations

from types import TracebackType

_CALLERS = (  # modules that call user code
    "ostinato.controllers.sources.handlers",
    "ostinato.controllers.sources.kind",
    "ostinato.controllers.sources.predicates",
    "ostinato.controllers.reconcilers",
    "ostinato.controllers.runnable",
    "ostinato.webhook.callback",
)


def shorten(error: BaseException) -> bool:
    """Remove the frames before the user's code from the tracebacks of an error and of its causes.

    Returns whether a traceback contains user code; if not, nothing is changed. Tracebacks of causes that were caught
    below the loop begin there and are not changed.
    """
    called = (each for each in _chain(error) if _is_called(each.__traceback__))
    parts = [(each, _users_part(each.__traceback__)) for each in called]
    if all(part is None for _, part in parts):
        return False
    for each, part in parts:  # None: the error was raised from a user's error, which has the traceback
        each.with_traceback(part)  # frozen exceptions refuse assignment
    return True


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, each once: the chain may contain cycles."""
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and not any(following is each for each in found):
        found.append(following)
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return found


def _is_called(trace: TracebackType | None) -> bool:
    """Return whether the traceback contains a caller of user code."""
    while trace is not None:
        if _module(trace) in _CALLERS:
            return True
        trace = trace.tb_next
    return False


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback after the last caller of user code; None if it ends there."""
    part: TracebackType | None = None
    while trace is not None:
        if _module(trace) in _CALLERS:
            part = trace.tb_next
        trace = trace.tb_next
    return None if part is None or _module(part).startswith("ostinato.") else part


def _module(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__"))
