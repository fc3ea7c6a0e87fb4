"""How much a template may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ostinato.gotemplate.errors import LimitError

MAX_TEXT: Final = 50_000_000  # characters of one printed text
MAX_PARTS: Final = 500_000  # of one value that is printed, encoded, copied or compared
MAX_ITEMS: Final = 4_000_000  # of one list that a function made
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


def check_text(length: int) -> None:
    """Refuse a text that is about to be made."""
    if length > MAX_TEXT:
        raise LimitError(f"a text of {length} characters is too long; the limit is {MAX_TEXT}")


def check_parts(value: Any) -> None:
    """Refuse a value that is large when it is written out: maps that contain each other again and again grow fast."""
    if isinstance(value, dict | list) and _parts(value, {}) > MAX_PARTS:
        raise LimitError(f"the value has more than {MAX_PARTS} parts")


def _parts(value: dict[Any, Any] | list[Any], known: dict[int, int]) -> int:
    count = len(value)
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            parts = known.get(id(item))
            if parts is None:
                parts = known[id(item)] = _parts(item, known)
            count += parts
    return count
