"""How much a template may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ostinato.gotemplate.errors import LimitError

MAX_TEXT: Final = 50_000_000  # characters of one printed text
_READ: Final = 256  # characters or elements that a function reads in the time of a step


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one rendering, with all templates that it includes.

    - `steps`: operands that are evaluated; arguments of functions count by their size.
    - `size`: characters of output, and of results of functions that are not small, in all.
    - `depth`: templates inside templates. Python's own recursion limit may stop a template before that.
    """

    steps: int = 5_000_000
    size: int = 100_000_000
    depth: int = 1_000


class Budget:
    """What is left of the limits."""

    __slots__ = ("_limits", "depth", "max_depth", "size", "steps")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.steps = limits.steps
        self.size = limits.size
        self.max_depth = limits.depth
        self.depth = 0

    def charge(self, amount: int) -> None:
        """Count characters or elements that are about to be made, or were made."""
        self.size -= amount
        if self.size < 0:
            raise LimitError(f"template results exceed {self._limits.size} characters")

    def read(self, amount: int) -> None:
        """Count characters or elements that a function may read."""
        self.steps -= amount // _READ
        if self.steps < 0:
            raise self.out_of_steps()

    def out_of_steps(self) -> LimitError:
        return LimitError(f"template takes more than {self._limits.steps} steps")

    def too_deep(self) -> LimitError:
        return LimitError(f"exceeded maximum template depth ({self._limits.depth})")


def joined(parts: Sequence[str]) -> str:
    """The parts as one text, unless it is too long."""
    if sum(map(len, parts)) > MAX_TEXT:
        raise LimitError(f"printed text has more than {MAX_TEXT} characters")
    return "".join(parts)
