"""Expressions: parse, check and compile a text to a program that can be evaluated any number of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.cel.check.checker import Scope, check
from ostinato.cel.check.literal_rules import check_literals
from ostinato.cel.evaluate.program import Program
from ostinato.cel.parse.parser import parse
from ostinato.cel.tree import Ident, Node, children
from ostinato.cel.types import Type
from ostinato.cel.values import CelError


class CompileError(ValueError):
    """A text is no expression; the message shows where and why."""


class ProgramError(ValueError):
    """An expression is well formed, but a part of it can never be evaluated."""


class Expression:
    """An expression over variables with types."""

    def __init__(self, text: str, variables: Mapping[str, Type], messages: Mapping[str, Type] | None = None) -> None:
        node, issues = parse(text)
        if not issues:
            check(node, issues, Scope(variables, messages))
        if not issues:
            check_literals(node, issues)
        if issues:
            raise CompileError(str(issues))
        self.text = text
        self.node = node
        self.type = node.type
        self.names = tuple(variables)  # of the variables, in the order in which evaluation wants their values
        try:
            self._program = Program(node, self.names)
        except CelError as error:
            raise ProgramError(str(error)) from None

    def uses(self, name: str) -> bool:
        """Whether a variable is named."""
        return any(isinstance(node, Ident) and node.name == name for node in _nodes(self.node))

    def evaluate(self, values: Sequence[Any], limit: int) -> tuple[Any, int]:
        """The value for values of the variables, in their order, and what it cost."""
        return self._program.evaluate(values, limit)


def _nodes(node: Node) -> list[Node]:
    """A node and all that are below it."""
    found = [node]
    for below in found:
        found += children(below)
    return found
