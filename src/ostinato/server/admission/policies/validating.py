"""ValidatingAdmissionPolicy: deny, warn about or audit writes that fail validations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ostinato.cel.expression import Expression
from ostinato.cel.values import CelError
from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.policies.matching import Attributes, Matcher
from ostinato.server.admission.policies.policies import (
    ConfigurationError,
    Decisions,
    Failure,
    Invocation,
    Policies,
    PolicyActivation,
    compiled_or_error,
    evaluate_with_authorizer,
    has_failure_policy_ignore,
    refused,
)
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Compiler,
    Evaluation,
    ExpressionError,
    OutOfBudgetError,
    named_expressions,
)
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE: Final = 5 * 1024
_LONGEST_ANNOTATION: Final = 10 * 1024
_VALIDATION_FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"


class _Validation(NamedTuple):
    raw: Json
    expression: Expression | ExpressionError
    message: Expression | ExpressionError | None


class _Compiled:
    """A policy with compiled expressions."""

    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        compiler = Compiler(spec)
        compiler.add_variables(spec)
        self.variables = compiler.variables
        self.conditions = [
            compiled_or_error(compiler.condition, text) for _, text in named_expressions(spec.get("matchConditions"))
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
            (raw["key"], compiled_or_error(compiler.annotation, raw["valueExpression"]))
            for raw in spec.get("auditAnnotations") or ()
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
    def __init__(
        self, registry: Registry, kinds: tuple[Lister, Lister], namespaces: Lister, authorizer: Authorizer
    ) -> None:
        self._matcher = Matcher(registry, namespaces)
        self._authorizer = authorizer
        self._policies = Policies(kinds, self._matcher, registry, _Compiled)

    async def validate(self, attributes: Attributes) -> None:
        """APIError if a policy denies the write."""
        warnings = attributes.context.request.warnings
        count = len(warnings)

        def evaluate(decisions: Decisions) -> None:
            del warnings[count:]  # of an evaluation that is restarted
            self._validate(attributes, decisions)

        await evaluate_with_authorizer(self._authorizer, evaluate)

    def _validate(self, attributes: Attributes, decisions: Decisions) -> None:
        context = attributes.context
        refusals: list[_Refusal] = []
        activation: PolicyActivation | None = None
        collected: dict[str, _Annotations] = {}  # by policy
        for invocation in self._policies.invocations(attributes):
            if isinstance(invocation, Failure):
                if not has_failure_policy_ignore(invocation.policy):
                    refusals.append(_Refusal(invocation.policy, invocation.binding, invocation.why))
                continue
            activation = activation or PolicyActivation(attributes, self._matcher, self._authorizer, decisions)
            annotations = collected.setdefault(invocation.policy["metadata"]["name"], {})
            for failed in _failed_validations(activation, invocation, annotations):
                refusals += self._enforce(context, invocation, failed)
        if context.request.audited:
            _publish(context, collected)
        if refusals:
            first = refusals[0]
            error = forbidden(context, attributes.obj, str(first))
            raise refused(error, first.reason, _CODES.get(first.reason, 422), [str(first)])

    def _enforce(
        self, context: Context, invocation: Invocation[_Compiled], failed: _FailedValidation
    ) -> list[_Refusal]:
        """Apply the binding's validationActions to a failed validation."""
        actions = invocation.binding["spec"].get("validationActions") or ()
        policy, binding = invocation.policy["metadata"]["name"], invocation.binding["metadata"]["name"]
        message = failed.message
        if failed.place < 0:  # audit annotation: only failurePolicy applies
            return [_Refusal(invocation.policy, invocation.binding, message, failed.reason)]
        if "Audit" in actions and context.request.audited:
            failure = {"message": message, "policy": policy, "binding": binding, "expressionIndex": failed.place}
            value = msgspec.json.encode([{**failure, "validationActions": actions}]).decode()
            context.request.annotate(_VALIDATION_FAILURE, value)
        if "Warn" in actions:
            context.request.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}"
            )
        return [_Refusal(invocation.policy, invocation.binding, message, failed.reason)] if "Deny" in actions else []


class _FailedValidation(NamedTuple):
    """A failed validation; `place`: its index, -1 for an audit annotation."""

    message: str
    reason: str
    place: int


_Annotations = dict[str, list[str]]  # values by key, each once


def _publish(context: Context, collected: dict[str, _Annotations]) -> None:
    for policy, found in collected.items():
        for key, values in found.items():
            context.request.annotate(f"{policy}/{key}", ", ".join(values))


def _failed_validations(
    activation: PolicyActivation, invocation: Invocation[_Compiled], annotations: _Annotations
) -> list[_FailedValidation]:
    """The failed validations of an invocation; its audit annotations are added to `annotations`."""
    compiled, ignores = invocation.compiled, has_failure_policy_ignore(invocation.policy)
    try:
        if not activation.conditions(compiled, invocation):
            return []
    except ConfigurationError as error:
        return [] if ignores else [_FailedValidation(str(error), "Invalid", 0)]
    evaluation = activation.evaluation(compiled, invocation)
    found: list[_FailedValidation] = []
    try:
        for i, validation in enumerate(compiled.validations):
            try:
                holds = _value(evaluation, validation.expression)
            except CelError as error:
                found += [] if ignores else [_FailedValidation(str(error), "Invalid", i)]
                continue
            if holds is not True:
                reason = validation.raw.get("reason") or "Invalid"
                found.append(_FailedValidation(_message(evaluation, validation), reason, i))
        for key, annotation in compiled.annotations:
            try:
                value = _value(evaluation, annotation)
            except CelError as error:
                found += [] if ignores else [_FailedValidation(str(error), "Invalid", -1)]
                continue
            text = value.strip()[:_LONGEST_ANNOTATION] if isinstance(value, str) else ""
            if text and text not in annotations.setdefault(key, []):
                annotations[key].append(text)
    except OutOfBudgetError as error:
        return [] if ignores else [_FailedValidation(str(error), "Invalid", 0)]
    return found


def _value(evaluation: Evaluation, expression: Expression | ExpressionError) -> Any:
    if isinstance(expression, ExpressionError):
        raise CelError(f"compilation error: {expression}")
    return evaluation.evaluate(expression)


def _message(evaluation: Evaluation, validation: _Validation) -> str:
    """The message of a failed validation: messageExpression, message, or the expression."""
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
