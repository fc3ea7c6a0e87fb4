"""Closures, and the errors that they raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ostinato.gotemplate.errors import ExecutionError, LimitError, TemplateError
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.tree import Node
from ostinato.gotemplate.values import Value

APPEND: Final = 0  # indexes in a frame
STATE: Final = 1
ROOT: Final = 2  # the variable $

Frame = list[Any]
Run = Callable[[Frame, Value], Value]


class Code(NamedTuple):
    """A compiled expression.

    `last` is the node that Go names in an error that occurs right after the evaluation: the last that was visited.
    None if that is only known in execution: the state has it then.
    """

    run: Run
    last: Node | None


def failure(frame: Frame, node: Node | None, message: str, *, limit: bool = False) -> TemplateError:
    """The error of an execution, with its place."""
    place = frame[STATE].last if node is None else node
    text = f"template: {place.tree.location(place)}: executing {quote(place.tree.name)} at <{place}>: {message}"
    return LimitError(text) if limit else ExecutionError(text)


def failing(node: Node, message: str) -> Run:
    """A closure for what is known to be wrong before the execution."""

    def run(frame: Frame, _: Value) -> Value:
        raise failure(frame, node, message)

    return run
