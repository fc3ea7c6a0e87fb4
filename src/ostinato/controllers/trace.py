"""Traces: tracebacks of what users wrote, from where their code begins.

What leads there, the loop that calls them, is the same in every traceback, and hides theirs.
"""

from __future__ import annotations

from types import TracebackType

_CALLERS = (  # the modules that call users' functions
    "ostinato.controllers.sources.handlers",
    "ostinato.controllers.sources.kind",
    "ostinato.controllers.sources.predicates",
    "ostinato.controllers.reconcilers",
    "ostinato.controllers.runnable",
    "ostinato.webhook.callback",
)


def shorten(error: BaseException) -> bool:
    """Cut what leads to the user's code off the tracebacks of an error and of its causes.

    Whether there is such code. If there is none, all stays as it is. So does what was caught below the loop, by the
    user's code or by what that calls: it begins there.
    """
    called = (each for each in _chain(error) if _is_called(each.__traceback__))
    parts = [(each, _users_part(each.__traceback__)) for each in called]
    if all(part is None for _, part in parts):
        return False
    for each, part in parts:  # None: what was made of a user's error, which tells the place
        each.with_traceback(part)  # not by assignment, which errors that are frozen refuse
    return True


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, each once: nobody keeps them from going round in circles."""
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and not any(following is each for each in found):
        found.append(following)
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return found


def _is_called(trace: TracebackType | None) -> bool:
    """Whether it leads through what calls users' functions."""
    while trace is not None:
        if _module(trace) in _CALLERS:
            return True
        trace = trace.tb_next
    return False


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """What comes after the last frame that calls users' functions; None if nothing does."""
    part: TracebackType | None = None
    while trace is not None:
        if _module(trace) in _CALLERS:
            part = trace.tb_next
        trace = trace.tb_next
    return None if part is None or _module(part).startswith("ostinato.") else part


def _module(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__"))
