"""CEL expressions over token claims (`claims`) and the mapped user (`user`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ostinato.cel.expression import CompileError, Expression, ProgramError
from ostinato.cel.tree import Call, Ident, Literal, Node, Select, children
from ostinato.cel.types import BOOL, DYN, STRING, Type, map_of
from ostinato.cel.values import CelError, CostExceededError
from ostinato.server.request import User
from ostinato.server.resources.admissionregistration.policy_types import REQUEST

_LIMIT: Final = 1_000_000  # cost of one expression, as kube-apiserver's per call limit
_CLAIMS: Final = {"claims": map_of(STRING, DYN)}
_USER: Final = {"user": REQUEST.fields["userInfo"].type}


class ExpressionError(Exception):
    """The expression is invalid. `internal`: it compiles but the program cannot be created."""

    def __init__(self, why: str, *, internal: bool = False) -> None:
        super().__init__(why)
        self.internal = internal


class EvaluationError(Exception):
    """Evaluation of an expression failed."""


def compile_mapping(text: str) -> Expression:
    """Compile a claim mapping; the result type is checked at evaluation."""
    return _compiled(text, _CLAIMS, None)


def compile_claim_rule(text: str) -> Expression:
    return _compiled(text, _CLAIMS, BOOL)


def compile_user_rule(text: str) -> Expression:
    return _compiled(text, _USER, BOOL)


def evaluate(expression: Expression, value: Any) -> Any:
    """Evaluate for claims, or for a user (`user_value`)."""
    try:
        return expression.evaluate([value], _LIMIT)[0]
    except (CelError, CostExceededError) as error:
        raise EvaluationError(f"expression '{expression.text}' resulted in error: {error}") from None


def user_value(user: User) -> Mapping[str, Any]:
    """The `user` variable. Empty fields are present, as in kube-apiserver."""
    return {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }


def selects(expression: Expression, variable: str, field: str) -> bool:
    """Whether an expression selects a field of a variable."""
    return any(_selects(node, variable, field) for node in _nodes(expression.node))


def _selects(node: Node, variable: str, field: str) -> bool:
    if isinstance(node, Select):
        return isinstance(node.operand, Ident) and (node.operand.name, node.field) == (variable, field)
    if isinstance(node, Call) and node.function == "_?._":
        operand, name = node.args
        is_named = isinstance(name, Literal) and name.value == field
        return isinstance(operand, Ident) and operand.name == variable and is_named
    return False


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for below in children(node):
        yield from _nodes(below)


def _compiled(text: str, variables: Mapping[str, Type], wanted: Type | None) -> Expression:
    try:
        expression = Expression(text, variables)
    except CompileError as error:
        raise ExpressionError(f"compilation failed: {error}") from None
    except ProgramError as error:
        raise ExpressionError(f"program instantiation failed: {error}", internal=True) from None
    if wanted is not None and not expression.type.same(wanted):
        raise ExpressionError(f"must evaluate to {wanted}")
    return expression
