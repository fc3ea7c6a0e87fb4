"""Three-way merge of texts by lines.

- A change of one side is taken; equal changes of both sides are taken once.
- Different changes of the same or of adjacent lines are a conflict: both are kept, between markers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

OURS: Final = "<<<<<<< "
SEPARATOR: Final = "=======\n"
THEIRS: Final = ">>>>>>> "


class Merged(NamedTuple):
    text: str
    conflicts: int


def merge(base: str, ours: str, theirs: str, *, labels: tuple[str, str]) -> Merged:
    """Merge the changes from `base` to `ours` and to `theirs`. `labels`: names of the two sides in markers."""
    lines = [_lines(text) for text in (base, ours, theirs)]
    merged: list[str] = []
    conflicts = 0
    for region in _regions(*lines):
        chosen = _choose(region)
        if chosen is not None:
            merged += chosen
            continue
        conflicts += 1
        before, mine, other, after = _trimmed(region)
        merged += [
            *before,
            f"{OURS}{labels[0]}\n",
            *map(_ended, mine),
            SEPARATOR,
            *map(_ended, other),
            f"{THEIRS}{labels[1]}\n",
            *after,
        ]
    return Merged("".join(merged), conflicts)


def has_markers(text: str) -> bool:
    """Whether a text contains an unresolved conflict."""
    return any(line.startswith((OURS, THEIRS)) for line in text.splitlines())


class _Region(NamedTuple):
    """Lines of the three texts that correspond to each other."""

    base: Sequence[str]
    ours: Sequence[str]
    theirs: Sequence[str]


class _Hunk(NamedTuple):
    """A changed range: lines [start, end) of the base are lines [first, last) of the other text."""

    start: int
    end: int
    first: int
    last: int


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _hunks(base: Sequence[str], other: Sequence[str]) -> list[_Hunk]:
    matcher = SequenceMatcher(None, base, other, autojunk=False)
    return [_Hunk(*span) for tag, *span in matcher.get_opcodes() if tag != "equal"]


def _regions(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[_Region]:
    """Yield unchanged and changed regions in order; hunks that overlap or touch are one region."""
    mine, other = _hunks(base, ours), _hunks(base, theirs)
    at, shift_ours, shift_theirs = 0, 0, 0  # position in the base; offsets of the other texts at it
    while mine or other:
        start = min(hunk.start for hunk in (*mine[:1], *other[:1]))
        end = start
        mine_here, other_here = 0, 0
        while True:
            if mine_here < len(mine) and mine[mine_here].start <= end:
                end = max(end, mine[mine_here].end)
                mine_here += 1
            elif other_here < len(other) and other[other_here].start <= end:
                end = max(end, other[other_here].end)
                other_here += 1
            else:
                break
        yield _Region(base[at:start], base[at:start], base[at:start])
        first_ours, first_theirs = start + shift_ours, start + shift_theirs
        if mine_here:
            shift_ours = mine[mine_here - 1].last - mine[mine_here - 1].end
        if other_here:
            shift_theirs = other[other_here - 1].last - other[other_here - 1].end
        yield _Region(base[start:end], ours[first_ours : end + shift_ours], theirs[first_theirs : end + shift_theirs])
        at = end
        del mine[:mine_here], other[:other_here]
    yield _Region(base[at:], base[at:], base[at:])


def _choose(region: _Region) -> Sequence[str] | None:
    """Return the lines that the sides agree on; None for a conflict."""
    if region.theirs in (region.ours, region.base):
        return region.ours
    return region.theirs if region.ours == region.base else None


def _trimmed(region: _Region) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
    """Return the common first lines of both sides, the rest of each, and the common last lines."""
    ours, theirs = region.ours, region.theirs
    shortest = min(len(ours), len(theirs))
    head = next((n for n in range(shortest) if ours[n] != theirs[n]), shortest)
    rest = shortest - head
    tail = next((n for n in range(rest) if ours[-1 - n] != theirs[-1 - n]), rest)
    return ours[:head], ours[head : len(ours) - tail], theirs[head : len(theirs) - tail], ours[len(ours) - tail :]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"
