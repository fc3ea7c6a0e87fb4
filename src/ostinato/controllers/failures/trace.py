"""Tracebacks: reduces them to the user's code, from its first line to its last.

- Frames of the library before the user's first frame and after its last one are removed; those in between, where the
  user's code is called back, are kept.
- Causes, contexts and the errors of exception groups are reduced too. A context that was raised and caught in the
  library is not shown.
- If no line of the user's code takes part, nothing is changed.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from types import TracebackType
from typing import Final

_CALLERS: Final = (  # modules that call user code
    "ostinato.controllers.sources.handlers",
    "ostinato.controllers.sources.kind",
    "ostinato.controllers.sources.predicates",
    "ostinato.controllers.reconcilers",
    "ostinato.controllers.runnable",
    "ostinato.webhook.callback",
)
_APPLICATIONS: Final = ("ostinato.plane.", "ostinato.server.controllers.")  # use the library as users do
_LIBRARY: Final = frozenset({"ostinato", "msgspec", "uvloop"})
_STANDARD_LIBRARY: Final = (sysconfig.get_path("stdlib"), "<frozen ")


def shorten(error: BaseException) -> bool:
    """Reduce the tracebacks of an error and of all related errors to the user's code.

    Returns whether one of them contains user code; if not, nothing is changed.
    """
    found = list(_related(error))
    parts = [_users_part(each.__traceback__) for each in found]
    if all(part is None for part in parts):
        return False
    for each, part in zip(found, parts, strict=True):
        each.with_traceback(part)  # frozen exceptions refuse assignment
    for each in found:
        context = each.__context__
        if context is not None and each.__cause__ is None and context.__traceback__ is None:
            BaseException.__setattr__(each, "__suppress_context__", True)
    return True


def last_line(error: BaseException) -> tuple[str, int] | None:
    """Return file and line of the last frame of the error's traceback, or of its cause's."""
    for each in _related(error):
        trace = each.__traceback__
        if trace is not None:
            while trace.tb_next is not None:
                trace = trace.tb_next
            return trace.tb_frame.f_code.co_filename, trace.tb_lineno
    return None


def _related(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its causes and contexts and the members of groups, each once: they may contain cycles."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        waiting.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the frames from the user's first to the user's last, after the last caller of user code."""
    frames = _frames(trace)
    called = max((at for at, each in enumerate(frames) if _module(each) in _CALLERS), default=-1)
    frames = frames[called + 1 :]
    users = _users(frames)
    if not users:
        return None
    kept = frames[users[0] : users[-1] + 1]
    part: TracebackType | None = None
    for each in reversed(kept):
        part = TracebackType(part, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return part


def _users(frames: list[TracebackType]) -> list[int]:
    """Return the positions of the user's frames; the standard library belongs to its caller."""
    found: list[int] = []
    is_library = True
    for at, each in enumerate(frames):
        module = _module(each)
        root = module.partition(".")[0]
        if root in _LIBRARY:
            is_library = not module.startswith(_APPLICATIONS)
        elif not _is_standard(each.tb_frame.f_code.co_filename):
            is_library = False
        if not is_library:
            found.append(at)
    return found


def _is_standard(path: str) -> bool:
    return path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _module(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__"))
