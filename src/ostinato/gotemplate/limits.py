"""How much a template may do."""

from __future__ import annotations

from dataclasses import dataclass

from ostinato.gotemplate.errors import LimitError


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one rendering, with all templates that it includes.

    - `steps`: nodes of templates that are executed.
    - `size`: characters of output, and of large results of functions, in all.
    - `depth`: templates inside templates. Python's own recursion limit may stop a template before that.
    """

    steps: int = 10_000_000
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
        """Count characters or elements that are about to be made."""
        self.size -= amount
        if self.size < 0:
            raise LimitError(f"template results exceed {self._limits.size} characters")

    def out_of_steps(self) -> LimitError:
        return LimitError(f"template takes more than {self._limits.steps} steps")

    def too_deep(self) -> LimitError:
        return LimitError(f"exceeded maximum template depth ({self._limits.depth})")
