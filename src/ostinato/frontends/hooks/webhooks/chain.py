"""Conversion chains: the shortest way between two versions, by steps that hooks offer.

A version may be given with or without its group: `v1` matches `example.dev/v1`. Of equally short ways, the one whose
steps were added first is taken.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

H = TypeVar("H")


class Step(NamedTuple, Generic[H]):
    before: str
    after: str
    handler: H


class Chains(Generic[H]):
    """The steps of one kind."""

    def __init__(self) -> None:
        self._steps: list[Step[H]] = []
        self._found: dict[tuple[str, str], list[Step[H]]] = {}

    def add(self, before: str, after: str, handler: H) -> None:
        self._steps.append(Step(before, after, handler))
        self._found.clear()

    def find(self, before: str, after: str) -> list[Step[H]]:
        """Return the steps from a version to another; [] if there is no way."""
        wanted = (before, after)
        if wanted not in self._found:
            self._found[wanted] = self._search(before, after)
        return self._found[wanted]

    def _search(self, before: str, after: str) -> list[Step[H]]:
        ways: deque[list[Step[H]]] = deque([[]])
        seen = {_short(before)}
        while ways:
            way = ways.popleft()
            at = way[-1].after if way else before
            for step in self._steps:
                if not same_version(step.before, at):
                    continue
                if same_version(step.after, after):
                    return [*way, step]
                if _short(step.after) not in seen:
                    seen.add(_short(step.after))
                    ways.append([*way, step])
        return []


def same_version(one: str, other: str) -> bool:
    """Whether two versions are the same; one without a group matches any."""
    if "/" in one and "/" in other:
        return one == other
    return _short(one) == _short(other)


def _short(version: str) -> str:
    return version.rpartition("/")[2]
