"""Validating policies: writes that break their expressions are refused, warned about, or let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.policies.matching import Attributes, Matcher
from ostinato.server.admission.policies.policies import (
    ConfigurationError,
    Failure,
    Invocation,
    Policies,
    Subject,
    compiled_or_error,
    ignores_failures,
    refused,
)
from ostinato.server.resources.policy_expressions import (
    Compiler,
    Evaluation,
    ExpressionError,
    OutOfBudgetError,
    named,
)
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.cel.expression import Expression
from ostinato.server.schema.cel.values import CelError

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.admission.objects import Kind
    from ostinato.server.resources.registry import Registry
    from ostinato.server.verbs.context import Context

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE: Final = 5 * 1024


class _Validation(NamedTuple):
    raw: Json
    expression: Expression | ExpressionError
    message: Expression | ExpressionError | None


class _Compiled:
    """A policy, its expressions compiled."""

    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        compiler = Compiler(spec)
        compiler.add_variables(spec)
        self.variables = compiler.variables
        self.conditions = [
            compiled_or_error(compiler.condition, text) for _, text in named(spec.get("matchConditions"))
        ]
        self.validations = [
            _Validation(
                raw,
                compiled_or_error(compiler.validation, raw["expression"]),
                compiled_or_error(compiler.message, raw["messageExpression"]) if raw.get("messageExpression") else None,
            )
            for raw in spec.get("validations") or ()
        ]
        self.annotations = [
            compiled_or_error(compiler.annotation, raw["valueExpression"]) for raw in spec.get("auditAnnotations") or ()
        ]


class _Refusal(NamedTuple):
    policy: Json
    binding: Json | None
    message: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        through = f" with binding '{self.binding['metadata']['name']}'" if self.binding is not None else ""
        return f"ValidatingAdmissionPolicy '{self.policy['metadata']['name']}'{through} denied request: {self.message}"


class ValidatingPolicies:
    def __init__(self, registry: Registry, kinds: tuple[Kind, Kind], namespaces: Kind, authorizer: Authorizer) -> None:
        self._matcher = Matcher(registry, namespaces)
        self._authorizer = authorizer
        self._policies = Policies(kinds, self._matcher, registry, _Compiled)

    def ask(self, attributes: Attributes) -> None:
        """Raise an APIError if a policy refuses a write."""
        context = attributes.context
        refusals: list[_Refusal] = []
        subject: Subject | None = None
        for asked in self._policies.asked(attributes):
            if isinstance(asked, Failure):
                if not ignores_failures(asked.policy):
                    refusals.append(_Refusal(asked.policy, asked.binding, asked.why))
                continue
            subject = subject or Subject(attributes, self._matcher, self._authorizer)
            for message, reason in _broken(subject, asked):
                refusals += self._acted(context, asked, message, reason)
        if refusals:
            first = refusals[0]
            error = forbidden(context, attributes.obj, str(first))
            raise refused(error, first.reason, _CODES.get(first.reason, 422), [str(first)])

    def _acted(self, context: Context, asked: Invocation[_Compiled], message: str, reason: str) -> list[_Refusal]:
        """What comes of a broken expression, by what the binding says to do."""
        actions = asked.binding["spec"].get("validationActions") or ()
        if "Warn" in actions:
            policy, binding = asked.policy["metadata"]["name"], asked.binding["metadata"]["name"]
            context.request.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}"
            )
        return [_Refusal(asked.policy, asked.binding, message, reason)] if "Deny" in actions else []


def _broken(subject: Subject, asked: Invocation[_Compiled]) -> list[tuple[str, str]]:
    """What a policy has against a write: messages with their reasons."""
    compiled, ignores = asked.compiled, ignores_failures(asked.policy)
    try:
        if not subject.conditions(compiled, asked):
            return []
    except ConfigurationError as error:
        return [] if ignores else [(str(error), "Invalid")]
    evaluation = subject.evaluation(compiled, asked)
    found: list[tuple[str, str]] = []
    try:
        for validation in compiled.validations:
            try:
                holds = _value(evaluation, validation.expression)
            except CelError as error:
                found += [] if ignores else [(str(error), "Invalid")]
                continue
            if holds is not True:
                found.append((_message(evaluation, validation), validation.raw.get("reason") or "Invalid"))
        for annotation in compiled.annotations:
            try:
                _value(evaluation, annotation)
            except CelError as error:
                found += [] if ignores else [(str(error), "Invalid")]
    except OutOfBudgetError as error:
        return [] if ignores else [(str(error), "Invalid")]
    return found


def _value(evaluation: Evaluation, expression: Expression | ExpressionError) -> Any:
    if isinstance(expression, ExpressionError):
        raise CelError(f"compilation error: {expression}")
    return evaluation.evaluate(expression)


def _message(evaluation: Evaluation, validation: _Validation) -> str:
    """What is said of a broken expression: what it computes to say, or has to say, or itself."""
    raw = validation.raw
    computed: Any = None
    if validation.message is not None:
        try:
            computed = _value(evaluation, validation.message)
        except CelError:
            computed = None
    text = computed.strip() if isinstance(computed, str) else ""
    if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE:
        text = ""
    return text or (raw.get("message") or "").strip() or f"failed expression: {raw['expression'].strip()}"
