"""MutatingAdmissionPolicy: ApplyConfiguration and JSONPatch mutations, with reinvocation."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ostinato.api.apply import TypedError
from ostinato.api.errors import InternalError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.patch import PatchError, TestFailed, json_patch
from ostinato.cel.expression import Expression
from ostinato.cel.values import CelError
from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.policies.matching import Attributes, Matcher
from ostinato.server.admission.policies.policies import (
    AuthorizationPending,
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
from ostinato.server.request import body
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Compiler,
    ExpressionError,
    OutOfBudgetError,
    named_expressions,
)
from ostinato.server.resources.admissionregistration.policy_messages import as_json, name_error
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry

_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


class _Mutation(NamedTuple):
    kind: str
    expression: Expression | ExpressionError


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
        self.reinvocation = spec.get("reinvocationPolicy") == "IfNeeded"
        self.mutations: list[_Mutation] = []
        for mutation in spec.get("mutations") or ():
            patches = mutation["patchType"] == "JSONPatch"
            raw = mutation.get("jsonPatch" if patches else "applyConfiguration") or {}
            compile_ = compiler.patch if patches else compiler.configuration
            expression = compiled_or_error(compile_, raw.get("expression", "").strip())
            self.mutations.append(_Mutation(mutation["patchType"], expression))


class MutatingPolicies:
    def __init__(
        self, registry: Registry, kinds: tuple[Lister, Lister], namespaces: Lister, authorizer: Authorizer
    ) -> None:
        self._matcher = Matcher(registry, namespaces)
        self._authorizer = authorizer
        self._policies = Policies(kinds, self._matcher, registry, _Compiled)

    async def mutate(self, attributes: Attributes, *, reinvocation: bool = False) -> None:
        """Mutate the object in place; APIError if a policy fails.

        `reinvocation`: evaluate only policies with reinvocationPolicy IfNeeded, after a webhook changed the object.
        """
        await evaluate_with_authorizer(
            self._authorizer, lambda decisions: self._mutate(attributes, decisions, reinvocation=reinvocation)
        )

    def _mutate(self, attributes: Attributes, decisions: Decisions, *, reinvocation: bool) -> None:
        context, obj = attributes.context, attributes.obj
        if obj is None:
            return
        matched = list(self._policies.invocations(attributes))
        if not matched:
            return
        faults = [_Fault(one.policy, one.binding, one.why) for one in matched if isinstance(one, Failure)]
        invocations = [
            one for one in matched if isinstance(one, Invocation) and (one.compiled.reinvocation or not reinvocation)
        ]
        before = copy.deepcopy(obj)
        try:
            for invocation in invocations:
                faults += self._invoke(attributes, obj, invocation, decisions)
            if obj != before and not reinvocation:  # reinvocation includes the policies that made the change
                for invocation in invocations:
                    if invocation.compiled.reinvocation:
                        faults += self._invoke(attributes, obj, invocation, decisions)
        except AuthorizationPending:  # restarted with the decision
            obj.clear()
            obj.update(before)
            raise
        faults = [fault for fault in faults if not has_failure_policy_ignore(fault.policy)]
        if faults:
            _refuse(context, obj, faults)

    def _invoke(
        self, attributes: Attributes, obj: Json, invocation: Invocation[_Compiled], decisions: Decisions
    ) -> list[_Fault]:
        """Evaluate a policy, which mutates the object in place."""
        activation = PolicyActivation(attributes, self._matcher, self._authorizer, decisions)
        faults: list[_Fault] = []
        try:
            if not activation.conditions(invocation.compiled, invocation):
                return []
            for mutation in invocation.compiled.mutations:
                try:
                    new = _changed(attributes.context, obj, mutation, activation, invocation)
                except (CelError, TypedError, PatchError, OutOfBudgetError, _MutationError) as error:
                    faults.append(_Fault(invocation.policy, invocation.binding, str(error), "Invalid"))
                    continue
                obj.clear()
                obj.update(new)
        except ConfigurationError as error:
            faults.append(_Fault(invocation.policy, invocation.binding, str(error), "Invalid"))
        return faults


class _MutationError(Exception):
    """The result of a mutation cannot be applied."""


class _Fault(NamedTuple):
    policy: Json
    binding: Json | None
    why: str
    reason: str = ""

    def __str__(self) -> str:
        name = self.policy["metadata"]["name"]
        if self.binding is None:
            return f'policy "{name}" denied request: {self.why}'
        return f"policy '{name}' with binding '{self.binding['metadata']['name']}' denied request: {self.why}"


def _refuse(context: Context, obj: Json, faults: list[_Fault]) -> None:
    error = forbidden(context, obj, "")
    messages = [str(fault) for fault in faults]
    error = refused(error, faults[0].reason or "Forbidden", 403, messages)
    raise type(error)(msgspec.structs.replace(error.status, message=messages[0]))


def _changed(
    context: Context, obj: Json, mutation: _Mutation, activation: PolicyActivation, invocation: Invocation[_Compiled]
) -> Json:
    """The object after a mutation."""
    expression = mutation.expression
    if isinstance(expression, ExpressionError):
        raise _MutationError(str(expression))
    value = as_json(activation.evaluation(invocation.compiled, invocation).evaluate(expression))
    if mutation.kind == "JSONPatch":
        new = _patched(obj, value)
    else:
        wrong = name_error(expression.node)
        if wrong:
            raise _MutationError(f"type mismatch: {wrong}")
        new = _apply_configuration(context, obj, value)
    try:
        shaped, unknown = body.typed(context.resource, copy.deepcopy(new))
    except (TypeMismatch, BadValue) as error:
        raise InternalError.of(str(error)) from None
    if unknown and mutation.kind == "JSONPatch":
        fields = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise InternalError.of(f"strict decoding error: {fields}")
    context.resource.strategy.default(shaped)
    return shaped


def _patched(obj: Json, operations: list[Json]) -> Json:
    try:
        patched: Json = json_patch(obj, operations)
    except TestFailed:
        return obj
    except PatchError as error:
        raise _MutationError(f"JSON Patch: {error}") from None
    return patched


def _apply_configuration(context: Context, obj: Json, config: Json) -> Json:
    manager = context.resource.managers.get("")
    if manager is None:
        raise _MutationError("error applying patch: type converter must not be nil")
    if obj["kind"] == _SCALE.kind and obj["apiVersion"] == _SCALE.api_version:
        raise _MutationError(
            "error applying patch: failed to convert patch object to typed object: "
            f"no corresponding type for {_SCALE.api_version}, Kind={_SCALE.kind}"
        )
    config = {**config, "kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    try:
        return manager.merge_unowned(obj, config)
    except TypedError as error:
        raise _MutationError(f"error applying patch: {error}") from None
