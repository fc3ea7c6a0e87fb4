"""Division of the control plane among processes, as data.

The API server has the most work, about half of it, and so always a process of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ostinato.cli.error import CommandError

APISERVER: Final = "apiserver"
PAGE: Final = "page"  # the live page, a process besides the others

# By the number of processes: the parts of each.
DIVISIONS: Final[dict[int, Sequence[Sequence[str]]]] = {
    2: ([APISERVER], ["controllers", "scheduler", "nodes"]),
    3: ([APISERVER], ["controllers", "scheduler"], ["nodes"]),
    4: ([APISERVER], ["controllers"], ["scheduler"], ["nodes"]),
}


def default_processes(cores: int) -> int:
    """Return the number of processes for a number of cores."""
    return min(cores, 3)


def divide(processes: int, without: Collection[str] = ()) -> Sequence[Sequence[str]]:
    """Return the parts of each process; empty if there is only one. `without`: parts that do not run.

    CommandError if there are not as many parts.
    """
    if not 1 <= processes <= max(DIVISIONS):
        raise CommandError(f"--processes {processes}: want a number from 1 to {max(DIVISIONS)}")
    if processes == 1:
        return []
    found = [[part for part in parts if part not in without] for parts in DIVISIONS[processes]]
    return [parts for parts in found if parts]
