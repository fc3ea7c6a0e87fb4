"""Validating policies: writes that break their expressions are refused, warned about, or let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ostinato.cel.expression import Expression
from ostinato.cel.values import CelError
from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.policies.matching import Attributes, Matcher
from ostinato.server.admission.policies.policies import (
    Answers,
    ConfigurationError,
    Failure,
    Invocation,
    Policies,
    Subject,
    compiled_or_error,
    ignores_failures,
    refused,
    waited,
)
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Compiler,
    Evaluation,
    ExpressionError,
    OutOfBudgetError,
    named,
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

    async def ask(self, attributes: Attributes) -> None:
        """Raise an APIError if a policy refuses a write."""
        warnings = attributes.context.request.warnings
        count = len(warnings)

        def evaluate(answers: Answers) -> None:
            del warnings[count:]  # those of an evaluation that had to be given up
            self._ask(attributes, answers)

        await waited(self._authorizer, evaluate)

    def _ask(self, attributes: Attributes, answers: Answers) -> None:
        context = attributes.context
        refusals: list[_Refusal] = []
        subject: Subject | None = None
        collected: dict[str, _Annotations] = {}  # by policy
        for asked in self._policies.asked(attributes):
            if isinstance(asked, Failure):
                if not ignores_failures(asked.policy):
                    refusals.append(_Refusal(asked.policy, asked.binding, asked.why))
                continue
            subject = subject or Subject(attributes, self._matcher, self._authorizer, answers)
            annotations = collected.setdefault(asked.policy["metadata"]["name"], {})
            for broken in _broken(subject, asked, annotations):
                refusals += self._acted(context, asked, broken)
        if context.request.audited:
            _publish(context, collected)
        if refusals:
            first = refusals[0]
            error = forbidden(context, attributes.obj, str(first))
            raise refused(error, first.reason, _CODES.get(first.reason, 422), [str(first)])

    def _acted(self, context: Context, asked: Invocation[_Compiled], broken: _Broken) -> list[_Refusal]:
        """What comes of a broken expression, by what the binding says to do."""
        actions = asked.binding["spec"].get("validationActions") or ()
        policy, binding = asked.policy["metadata"]["name"], asked.binding["metadata"]["name"]
        message = broken.message
        if broken.place < 0:  # an annotation, which is no validation: only failurePolicy counts
            return [_Refusal(asked.policy, asked.binding, message, broken.reason)]
        if "Audit" in actions and context.request.audited:
            failure = {"message": message, "policy": policy, "binding": binding, "expressionIndex": broken.place}
            value = msgspec.json.encode([{**failure, "validationActions": actions}]).decode()
            context.request.annotate(_VALIDATION_FAILURE, value)
        if "Warn" in actions:
            context.request.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}"
            )
        return [_Refusal(asked.policy, asked.binding, message, broken.reason)] if "Deny" in actions else []


class _Broken(NamedTuple):
    """An expression that does not hold; `place` is its index among the validations, -1 for an annotation's."""

    message: str
    reason: str
    place: int


_Annotations = dict[str, list[str]]  # values by key, each once


def _publish(context: Context, collected: dict[str, _Annotations]) -> None:
    for policy, found in collected.items():
        for key, values in found.items():
            context.request.annotate(f"{policy}/{key}", ", ".join(values))


def _broken(subject: Subject, asked: Invocation[_Compiled], annotations: _Annotations) -> list[_Broken]:
    """What a policy has against a write. Its annotations are added to those of other bindings."""
    compiled, ignores = asked.compiled, ignores_failures(asked.policy)
    try:
        if not subject.conditions(compiled, asked):
            return []
    except ConfigurationError as error:
        return [] if ignores else [_Broken(str(error), "Invalid", 0)]
    evaluation = subject.evaluation(compiled, asked)
    found: list[_Broken] = []
    try:
        for i, validation in enumerate(compiled.validations):
            try:
                holds = _value(evaluation, validation.expression)
            except CelError as error:
                found += [] if ignores else [_Broken(str(error), "Invalid", i)]
                continue
            if holds is not True:
                reason = validation.raw.get("reason") or "Invalid"
                found.append(_Broken(_message(evaluation, validation), reason, i))
        for key, annotation in compiled.annotations:
            try:
                value = _value(evaluation, annotation)
            except CelError as error:
                found += [] if ignores else [_Broken(str(error), "Invalid", -1)]
                continue
            text = value.strip()[:_LONGEST_ANNOTATION] if isinstance(value, str) else ""
            if text and text not in annotations.setdefault(key, []):
                annotations[key].append(text)
    except OutOfBudgetError as error:
        return [] if ignores else [_Broken(str(error), "Invalid", 0)]
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
