"""Description of where tasks wait: the chain of awaits from the task's coroutine to the innermost one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from types import FrameType

_SHOWN = 20  # tasks


def describe(tasks: Iterable[asyncio.Task[object]]) -> str:
    """Return one line per task."""
    lines = [f"  {task.get_name()} waits at {where(task)}" for task in tasks]
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = [f"  and {len(lines) - _SHOWN} more"]
    return "\n".join(lines) or "  none"


def where(task: asyncio.Task[object]) -> str:
    places = [_place(frame) for frame in _frames(task.get_coro())]
    return " > ".join(places) or "an unknown place"


def _frames(awaited: object) -> Iterator[FrameType]:
    # Coroutines, generators and asynchronous generators name the same two things differently.
    seen = 0
    while awaited is not None and seen < 50:
        seen += 1
        for prefix, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            if hasattr(awaited, inner):
                frame = getattr(awaited, f"{prefix}_frame", None)
                if frame is not None:
                    yield frame
                awaited = getattr(awaited, inner)
                break
        else:
            return


def _place(frame: FrameType) -> str:
    path = PurePath(frame.f_code.co_filename)
    return f"{frame.f_code.co_qualname} ({path.parent.name}/{path.name}:{frame.f_lineno})"
