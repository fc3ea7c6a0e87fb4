"""Stacks of threads and asyncio tasks, as text and as samples in the collapsed format.

The collapsed format has a line for each distinct stack, outermost frame first, and how often it was seen:

    MainThread;main (app.py:3);work (app.py:9) 42

speedscope, flamegraph.pl and inferno read it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from ostinato.world import Clock
from ostinato.world.thread_names import current_thread_id, thread_names

Stack = tuple[str, ...]  # outermost frame first


async def sample(clock: Clock, seconds: float, rate: float) -> Counter[Stack]:
    """Sample the stacks of all other threads `rate` times a second. A thread that waits is sampled as well."""
    found: Counter[Stack] = Counter()
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        found.update(thread_stacks().values())
        await clock.sleep(1 / rate)
    return found


def thread_stacks() -> dict[int, Stack]:
    """Return the current stack of each thread but this one, by its id; the first element is its name."""
    names = thread_names()
    own = current_thread_id()
    frames = {ident: frame for ident, frame in sys._current_frames().items() if ident != own}
    return {ident: (names.get(ident, f"thread {ident}"), *_frames(frame)) for ident, frame in frames.items()}


def task_stacks(loop: asyncio.AbstractEventLoop) -> Counter[Stack]:
    """Return the stacks on which the tasks of a loop wait, with the number of tasks; the first element is its name."""
    return Counter((_task_name(task), *_awaits(task.get_coro())) for task in asyncio.all_tasks(loop))


def collapsed(stacks: Mapping[Stack, int]) -> str:
    """Return samples in the collapsed format."""
    lines = (f"{';'.join(each.replace(';', ',') for each in stack)} {count}\n" for stack, count in stacks.items())
    return "".join(sorted(lines))


def listed(stacks: Iterable[tuple[Stack, int]]) -> str:
    """Return stacks as text, innermost frame first."""
    return "\n".join(
        "\n    ".join([f"{stack[0]}{f' ({count})' if count > 1 else ''}", *reversed(stack[1:])]) + "\n"
        for stack, count in stacks
    )


def _frames(frame: FrameType | None) -> list[str]:
    found = []
    while frame is not None:
        found.append(_line(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]


def _awaits(waiting: Any) -> Iterator[str]:
    """Return the chain of coroutines and generators that a task awaits."""
    while waiting is not None:
        for kind in ("cr", "gi", "ag"):
            code: CodeType | None = getattr(waiting, f"{kind}_code", None)
            if code is not None:
                frame: FrameType | None = getattr(waiting, f"{kind}_frame")
                yield _line(code, code.co_firstlineno if frame is None else frame.f_lineno)
                following = getattr(waiting, f"{kind}_await", None)
                waiting = getattr(waiting, "gi_yieldfrom", None) if kind == "gi" else following
                break
        else:
            return


def _line(code: CodeType, line: int | None) -> str:
    parts = code.co_filename.replace("\\", "/").rsplit("/", 3)
    return f"{code.co_qualname} ({'/'.join(parts[-3:])}:{line or code.co_firstlineno})"


def _task_name(task: asyncio.Task[Any]) -> str:
    name = task.get_name()
    return "Task" if name.removeprefix("Task-").isdecimal() else name  # so that tasks with equal stacks are counted
