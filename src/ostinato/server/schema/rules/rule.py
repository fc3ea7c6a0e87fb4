"""Validation rules (`x-kubernetes-validations`): compiled once, with their estimated cost.

A rule is an expression over `self`, the value of its node, and `oldSelf`, the old value. A rule that does not compile
keeps its error; validation rejects a definition that has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ostinato.cel.check.declarations import MOST_REQUEST_BYTES, Declaration
from ostinato.cel.cost.estimate import estimate
from ostinato.cel.expression import CompileError, Expression, ProgramError
from ostinato.cel.types import BOOL, STRING, Type, optional_of
from ostinato.server.schema.rules.field_paths import FieldPathError, normal_path

PER_CALL: Final = 1_000_000  # cost limit of one evaluation
PER_OBJECT: Final = 10_000_000  # cost limit of all rules of an object


class Rule:
    """One rule of a schema."""

    __slots__ = (
        "error",
        "expression",
        "max_cost",
        "message",
        "message_cost",
        "message_error",
        "optional_old",
        "path",
        "raw",
        "uses_old",
    )

    def __init__(self, raw: Mapping[str, Any], schema: Mapping[str, Any], declaration: Declaration) -> None:
        self.raw = raw
        self.error = ""  # the compilation error
        self.message_error = ""  # the compilation error of `messageExpression`
        self.expression: Expression | None = None
        self.message: Expression | None = None
        self.max_cost = self.message_cost = 0
        self.uses_old = False
        self.optional_old = bool(raw.get("optionalOldSelf"))
        self.path = ""
        if not (raw.get("rule") or "").strip():
            return
        old = optional_of(declaration.type) if self.optional_old else declaration.type
        variables = {"self": declaration.type, "oldSelf": old}
        known = {"self": declaration, "oldSelf": declaration}
        found = _compiled(raw["rule"], variables, BOOL, "cel expression must evaluate to a bool", "")
        if isinstance(found, str):
            self.error = found
            return
        self.expression = found
        self.uses_old = found.uses("oldSelf")
        self.max_cost = estimate(found.node, known).most
        if raw.get("messageExpression"):
            why = "messageExpression must evaluate to a string"
            compiled = _compiled(raw["messageExpression"], variables, STRING, why, "messageExpression ")
            if isinstance(compiled, str):
                self.message_error = compiled
            else:
                self.message = compiled
                self.message_cost = estimate(compiled.node, known).most
        if raw.get("fieldPath"):
            try:
                self.path = normal_path(raw["fieldPath"], schema)
            except FieldPathError:
                self.path = ""  # a definition with such a path is rejected

    @property
    def text(self) -> str:
        """The rule in error messages."""
        return (self.raw.get("message") or "").strip() or self.raw["rule"].strip()

    @property
    def default_message(self) -> str:
        """The default message of a violation."""
        return (self.raw.get("message") or "").strip() or f"failed rule: {self.text}"


def rules_of(schema: Mapping[str, Any], declaration: Declaration) -> list[Rule]:
    """The rules of a schema node, without those below it."""
    return [Rule(raw, schema, declaration) for raw in schema.get("x-kubernetes-validations") or ()]


def cardinality(declaration: Declaration) -> int:
    """The maximum number of values in a request, if nothing else bounds it."""
    return MOST_REQUEST_BYTES // (declaration.min_size + 1)


def _compiled(text: str, variables: Mapping[str, Type], wanted: Type, mistyped: str, what: str) -> Expression | str:
    try:
        expression = Expression(text, variables)
    except CompileError as error:
        return f"{what}compilation failed: {error}"
    except ProgramError as error:
        return f"{what or 'program '}instantiation failed: {error}"
    return expression if expression.type.same(wanted) else mistyped
