"""The expressions of admission policies: which variables they see, what they must give, and how they are evaluated.

All of a policy's expressions see the object, what it was, its namespace and the request; some see parameters, the
authorizer, and the variables that the policy defines, each of which is evaluated when it is first asked for.
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
from ostinato.server.schema.rules import PER_CALL

_AUTHORIZER: Final = NAMED["kubernetes.authorization.Authorizer"]
_RESOURCE_CHECK: Final = NAMED["kubernetes.authorization.ResourceCheck"]
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class ExpressionError(Exception):
    """An expression does not compile; the message is what is told of it."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


class OutOfBudgetError(Exception):
    """Nothing more may be evaluated."""

    def __str__(self) -> str:
        return _SPENT


class Compiler:
    """Compiles the expressions of one policy; the variables that it defines are added as they are compiled.

    `types` are those of objects and parameters, where they are known; else these may be anything.
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
        """Compile a variable, which those after it may use even if it does not compile."""
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
        """Compile all variables of a policy; what is wrong with one is told when it is used."""
        for name, text in named(spec.get("variables")):
            with contextlib.suppress(ExpressionError):
                self.add_variable(name, text)

    def condition(self, text: str) -> Expression:
        """What says whether the policy is for a request: it sees no variables."""
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
        """What is wrong with an expression, whatever it gives; "" if nothing is."""
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
    """The values of one request for the expressions of one policy, and what is left to spend on them."""

    def __init__(
        self, values: dict[str, Any], variables: Mapping[str, Expression | ExpressionError], budget: int
    ) -> None:
        self._values = values
        self._variables = variables
        self._known: dict[str, Any] = {}
        self._spent = 0  # on variables
        self.budget = budget
        values["variables"] = self

    def evaluate(self, expression: Expression) -> Any:
        """The value of an expression; CelError if it fails, OutOfBudgetError if nothing is left to spend."""
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
        """A variable of the policy, evaluated once."""
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


def named(items: Any) -> Iterator[tuple[str, str]]:
    """The names and expressions of a list of such."""
    return ((item.get("name", ""), item.get("expression", "")) for item in items or ())
