"""Expressions: parse, check and compile source text to a reusable program."""

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
    """The expression is invalid; the message has positions and reasons."""


class ProgramError(ValueError):
    """The expression is valid, but a constant part of it cannot be evaluated."""


class Expression:
    """An expression with typed variables."""

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
        self.names = tuple(variables)  # of the variables, in the order of the arguments of `evaluate`
        try:
            self._program = Program(node, self.names)
        except CelError as error:
            raise ProgramError(str(error)) from None

    def uses(self, name: str) -> bool:
        """Whether the expression uses a variable."""
        return any(isinstance(node, Ident) and node.name == name for node in _nodes(self.node))

    def evaluate(self, values: Sequence[Any], limit: int) -> tuple[Any, int]:
        """Return value and cost for the values of the variables, in their order."""
        return self._program.evaluate(values, limit)


def _nodes(node: Node) -> list[Node]:
    """Iterate over a node and its descendants."""
    found = [node]
    for below in found:
        found += children(below)
    return found
