"""Mutating policies: what they compute is laid over an object, or patched into it, before it is validated."""

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
    Answers,
    ConfigurationError,
    Failure,
    Invocation,
    Policies,
    Subject,
    UnansweredError,
    compiled_or_error,
    ignores_failures,
    refused,
    waited,
)
from ostinato.server.request import body
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Compiler,
    ExpressionError,
    OutOfBudgetError,
    named,
)
from ostinato.server.resources.admissionregistration.policy_messages import as_json, misplaced
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.builtin import BadValue, TypeMismatch

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
    """A policy, its expressions compiled."""

    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        compiler = Compiler(spec)
        compiler.add_variables(spec)
        self.variables = compiler.variables
        self.conditions = [
            compiled_or_error(compiler.condition, text) for _, text in named(spec.get("matchConditions"))
        ]
        self.again = spec.get("reinvocationPolicy") == "IfNeeded"
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

    async def ask(self, attributes: Attributes, *, again: bool = False) -> None:
        """Let policies change the object of a write in place; raise an APIError if one cannot.

        `again`: somebody else has changed it since, and only those are asked who want to know of that.
        """
        await waited(self._authorizer, lambda answers: self._ask(attributes, answers, again=again))

    def _ask(self, attributes: Attributes, answers: Answers, *, again: bool) -> None:
        context, obj = attributes.context, attributes.obj
        if obj is None:
            return
        asked = list(self._policies.asked(attributes))
        if not asked:
            return
        faults = [_Fault(one.policy, one.binding, one.why) for one in asked if isinstance(one, Failure)]
        invocations = [one for one in asked if isinstance(one, Invocation) and (one.compiled.again or not again)]
        before = copy.deepcopy(obj)
        try:
            for invocation in invocations:
                faults += self._invoke(attributes, obj, invocation, answers)
            if obj != before and not again:  # whoever wants it is asked once more, those too who made the change
                for invocation in invocations:
                    if invocation.compiled.again:
                        faults += self._invoke(attributes, obj, invocation, answers)
        except UnansweredError:  # all begins anew, with the answer
            obj.clear()
            obj.update(before)
            raise
        faults = [fault for fault in faults if not ignores_failures(fault.policy)]
        if faults:
            _refuse(context, obj, faults)

    def _invoke(
        self, attributes: Attributes, obj: Json, asked: Invocation[_Compiled], answers: Answers
    ) -> list[_Fault]:
        """Ask a policy, which changes the object in place."""
        subject = Subject(attributes, self._matcher, self._authorizer, answers)
        faults: list[_Fault] = []
        try:
            if not subject.conditions(asked.compiled, asked):
                return []
            for mutation in asked.compiled.mutations:
                try:
                    new = _changed(attributes.context, obj, mutation, subject, asked)
                except (CelError, TypedError, PatchError, OutOfBudgetError, _MutationError) as error:
                    faults.append(_Fault(asked.policy, asked.binding, str(error), "Invalid"))
                    continue
                obj.clear()
                obj.update(new)
        except ConfigurationError as error:
            faults.append(_Fault(asked.policy, asked.binding, str(error), "Invalid"))
        return faults


class _MutationError(Exception):
    """A policy computes nothing that can be laid over an object."""


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


def _changed(context: Context, obj: Json, mutation: _Mutation, subject: Subject, asked: Invocation[_Compiled]) -> Json:
    """The object after a mutation."""
    expression = mutation.expression
    if isinstance(expression, ExpressionError):
        raise _MutationError(str(expression))
    value = as_json(subject.evaluation(asked.compiled, asked).evaluate(expression))
    if mutation.kind == "JSONPatch":
        new = _patched(obj, value)
    else:
        wrong = misplaced(expression.node)
        if wrong:
            raise _MutationError(f"type mismatch: {wrong}")
        new = _laid(context, obj, value)
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


def _laid(context: Context, obj: Json, config: Json) -> Json:
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
        return manager.lay(obj, config)
    except TypedError as error:
        raise _MutationError(f"error applying patch: {error}") from None
