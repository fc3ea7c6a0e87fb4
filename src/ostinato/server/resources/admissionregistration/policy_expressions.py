"""CEL expressions of admission policies: their variables, result types and evaluation.

All expressions of a policy have the object, the old object, its namespace and the request; some also have parameters,
the authorizer and the policy's own variables, each of which is evaluated on first use.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ostinato.cel.check.declarations import Declaration, message, simple
from ostinato.cel.expression import CompileError, Expression, ProgramError
from ostinato.cel.types import BOOL, DYN, NAMED, NULL, STRING, Type, list_of
from ostinato.cel.values import CelError, CostExceededError
from ostinato.server.resources.admissionregistration.policy_messages import PATCH_TYPES
from ostinato.server.resources.admissionregistration.policy_types import NAMESPACE, REQUEST
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.rules.rule import PER_CALL

_AUTHORIZER: Final = NAMED["kubernetes.authorization.Authorizer"]
_RESOURCE_CHECK: Final = NAMED["kubernetes.authorization.ResourceCheck"]
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class ExpressionError(Exception):
    """An expression does not compile; the message is kube-apiserver's."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


class OutOfBudgetError(Exception):
    """The cost budget is exhausted."""

    def __str__(self) -> str:
        return _SPENT


class Compiler:
    """Compiles the expressions of one policy. Its variables are declared as they are compiled.

    `types`: the types of objects and parameters, if known; else they are dynamic.
    """

    def __init__(self, spec: Json, types: Mapping[str, Type] | None = None) -> None:
        self._types = types or {}
        self._params = spec.get("paramKind") is not None
        self._variables: Declaration | None = None
        if spec.get("variables"):
            self._variables = message("kubernetes.variables", ())
            self._variables.computed = True
        self.variables: dict[str, Expression | ExpressionError] = {}

    def add_variable(self, name: str, text: str) -> None:
        """Compile and declare a variable. Later expressions may use it even if it does not compile."""
        assert self._variables is not None
        found: Expression | ExpressionError
        try:
            found = self.compile(text)
        except ExpressionError as error:
            found = error
        self.variables[name] = found
        self._variables.fields[name] = simple(found.type if isinstance(found, Expression) else DYN)
        self._variables.names[name] = name
        if isinstance(found, ExpressionError):
            raise found

    def add_variables(self, spec: Json) -> None:
        """Compile all variables of a policy; a compilation error is reported where the variable is used."""
        for name, text in named_expressions(spec.get("variables")):
            with contextlib.suppress(ExpressionError):
                self.add_variable(name, text)

    def condition(self, text: str) -> Expression:
        """Compile a matchCondition; it has no access to variables."""
        return self._compiled(text, self._known(authorizer=True, variables=False), (BOOL,))

    def validation(self, text: str) -> Expression:
        return self.compile(text, BOOL)

    def message(self, text: str) -> Expression:
        return self._compiled(text, self._known(authorizer=False), (STRING,))

    def annotation(self, text: str) -> Expression:
        return self.compile(text, STRING, NULL)

    def configuration(self, text: str) -> Expression:
        return self._compiled(text, self._known(authorizer=True), (PATCH_TYPES["Object"],), PATCH_TYPES)

    def patch(self, text: str) -> Expression:
        return self._compiled(text, self._known(authorizer=True), (list_of(PATCH_TYPES["JSONPatch"]),), PATCH_TYPES)

    def issues(self, text: str) -> str:
        """The compilation errors of an expression, whatever its type; "" if there are none."""
        try:
            Expression(text, self._known(authorizer=True))
        except CompileError as error:
            return str(error)
        except ProgramError:
            return ""
        return ""

    def compile(self, text: str, *wanted: Type) -> Expression:
        return self._compiled(text, self._known(authorizer=True), wanted)

    def _known(self, *, authorizer: bool, variables: bool = True) -> dict[str, Type]:
        known = {"object": DYN, "oldObject": DYN, "namespaceObject": NAMESPACE.type, "request": REQUEST.type}
        if self._params:
            known["params"] = DYN
        known |= self._types
        if authorizer:
            known |= {"authorizer": _AUTHORIZER, "authorizer.requestResource": _RESOURCE_CHECK}
        if variables and self._variables is not None:
            known["variables"] = self._variables.type
        return known

    def _compiled(
        self,
        text: str,
        known: Mapping[str, Type],
        wanted: tuple[Type, ...],
        messages: Mapping[str, Type] | None = None,
    ) -> Expression:
        try:
            expression = Expression(text, known, messages)
        except CompileError as error:
            raise ExpressionError(f"compilation failed: {error}") from None
        except ProgramError as error:
            raise ExpressionError(f"program instantiation failed: {error}", internal=True) from None
        if wanted and not any(expression.type.same(kind) for kind in wanted):
            kinds = _shown(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(_shown, wanted))}]"
            raise ExpressionError(f"must evaluate to {kinds} but got {_shown(expression.type)}")
        return expression


class Evaluation:
    """The values of one request for the expressions of one policy, and the remaining cost budget."""

    def __init__(
        self, values: dict[str, Any], variables: Mapping[str, Expression | ExpressionError], budget: int
    ) -> None:
        self._values = values
        self._variables = variables
        self._known: dict[str, Any] = {}
        self._spent = 0  # cost of variables
        self.budget = budget
        values["variables"] = self

    def evaluate(self, expression: Expression) -> Any:
        """Evaluate an expression; CelError if it fails, OutOfBudgetError if the budget is exhausted."""
        failed: CelError | None = None
        value: Any = None
        try:
            value, cost = expression.evaluate([self._values.get(name) for name in expression.names], PER_CALL)
        except CelError as error:
            failed, cost = error, error.cost
        except CostExceededError as error:
            failed, cost = CelError(str(error)), error.cost
        spent, self._spent = cost + self._spent, 0
        if spent > self.budget:
            self.budget = -1
            raise OutOfBudgetError
        self.budget -= spent
        if failed is not None:
            raise CelError(f"expression '{expression.text}' resulted in error: {failed}")
        return value

    def field(self, name: str) -> Any:
        """The value of a variable of the policy, evaluated once."""
        if name not in self._known:
            self._known[name] = self._computed(name)
        found = self._known[name]
        if isinstance(found, CelError):
            raise found
        return found

    def _computed(self, name: str) -> Any:
        expression = self._variables[name]
        if isinstance(expression, ExpressionError):
            return CelError(f'composited variable "{name}" fails to compile: {expression}')
        try:
            value, cost = expression.evaluate([self._values.get(known) for known in expression.names], PER_CALL)
        except (CelError, CostExceededError) as error:
            self._spent += error.cost
            return CelError(f'composited variable "{name}" fails to evaluate: {error}')
        self._spent += cost
        return value


_NAMES: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def _shown(kind: Type) -> str:
    return _NAMES.get(kind.kind) or str(kind)


def named_expressions(items: Any) -> Iterator[tuple[str, str]]:
    """The names and expressions of a list of named expressions."""
    return ((item.get("name", ""), item.get("expression", "")) for item in items or ())
