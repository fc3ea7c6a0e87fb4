"""Recordings as regression tests: what `ostinato run --record` wrote is asked again, and must be answered equally.

@pytest.mark.parametrize("recording", recordings("tests/recordings"), ids=str)
def test_the_answers_have_not_changed(recording: Recorded) -> None:
    replay(recording, operator)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ostinato.frontends.kernel import recording as kernel


class Recorded(NamedTuple):
    """A recorded call of a front end."""

    name: str  # the file, below the directory
    call: kernel.Recording

    def __str__(self) -> str:
        return self.name


def recordings(directory: str | Path) -> list[Recorded]:
    """Read the recordings below a directory, in order. Raises ValueError with the file that is not one."""
    root = Path(directory)
    return [Recorded(str(path.relative_to(root)), found) for path, found in kernel.recordings(root)]


def replay(recording: Recorded, front_end: Any, *, ignore: Iterable[str] = ()) -> None:
    """Ask what was recorded again; AssertionError with a diff if the answer differs.

    - `front_end`: one that has deciders, or a decider itself.
    - `ignore`: fields of the answer that are not compared, such as "status.lastRun". Default to none.
    """
    decider: Any = front_end
    if hasattr(front_end, "deciders"):
        controller, deciders = recording.call.request.controller, front_end.deciders()
        if controller not in deciders:
            raise ValueError(f"{recording}: recorded from {controller}; {front_end.name} has {', '.join(deciders)}")
        decider = deciders[controller]
    difference = asyncio.run(kernel.replayed(recording.call, decider, ignore=ignore))
    if difference:
        raise AssertionError(f"{recording}: the answer differs\n{difference}")
