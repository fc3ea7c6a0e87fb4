"""Policy evaluation: policies with their bindings and parameters.

A policy is compiled once per spec. For one that cannot be used (missing parameter, compile error) its `failurePolicy`
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from ostinato.api.gvk import GroupVersion, GroupVersionResource
from ostinato.api.selectors.labels import from_label_selector
from ostinato.cel.expression import Expression
from ostinato.cel.libraries.authorizer import AccessCheck, Answer, Authorizer
from ostinato.cel.values import CelError
from ostinato.server.access.attributes import RequestAttributes, field_terms, label_requirements
from ostinato.server.access.authorization.decision import Decision
from ostinato.server.admission.policies.matching import Attributes, Matcher
from ostinato.server.request import User
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Evaluation,
    ExpressionError,
    OutOfBudgetError,
)
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization import authorizer as access
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource

P = TypeVar("P")
T = TypeVar("T")
PER_REQUEST: Final = 10_000_000  # CEL cost budget of a policy per write
_MATCH_CONDITIONS_BUDGET: Final = 2_500_000


class ConfigurationError(Exception):
    """A policy or binding is misconfigured."""


class Invocation(NamedTuple, Generic[P]):
    """A policy to evaluate for a write, with one binding and parameter."""

    policy: Json
    compiled: P
    binding: Json
    resource: GroupVersionResource  # matched resource
    parameter: Json | None


class Failure(NamedTuple):
    """A policy or binding that is misconfigured."""

    policy: Json
    binding: Json | None
    why: str


class Policies(Generic[P]):
    def __init__(
        self, kinds: tuple[Lister, Lister], matcher: Matcher, registry: Registry, compile_: Callable[[Json], P]
    ) -> None:
        self._policies, self._bindings = kinds
        self._matcher = matcher
        self._registry = registry
        self._compile = compile_
        self._compiled: dict[str, tuple[Json, P]] = {}  # by name, with the compiled spec

    def invocations(self, attributes: Attributes) -> Iterator[Invocation[P] | Failure]:
        """The invocations for a write, in the order of names."""
        policies = self._policies.all()
        if not policies:
            return
        bindings = sorted(self._bindings.all(), key=_name)
        for policy in sorted(policies, key=_name):
            own = [binding for binding in bindings if binding["spec"].get("policyName") == _name(policy)]
            resource = self._matcher.matched(attributes, policy["spec"].get("matchConstraints") or {}) if own else None
            if resource is None:
                continue
            try:
                kind = self._parameter_kind(policy["spec"].get("paramKind"))
            except ConfigurationError as error:
                yield Failure(policy, None, f"failed to configure policy: {error}")
                continue
            for binding in own:
                if self._matcher.matched(attributes, binding["spec"].get("matchResources") or {}) is None:
                    continue
                try:
                    parameters = self._parameters(kind, binding["spec"].get("paramRef"), attributes.namespace)
                except ConfigurationError as error:
                    yield Failure(policy, binding, f"failed to configure binding: {error}")
                    continue
                for parameter in parameters:
                    yield Invocation(policy, self._of(policy), binding, resource, parameter)

    def _of(self, policy: Json) -> P:
        known = self._compiled.get(_name(policy))
        if known is None or known[0] != policy["spec"]:
            known = self._compiled[_name(policy)] = (policy["spec"], self._compile(policy))
        return known[1]

    def _parameter_kind(self, kind: Json | None) -> Resource | None:
        if kind is None:
            return None
        version = GroupVersion.parse(kind["apiVersion"])
        for resource in self._registry:
            gvk = resource.gvk
            named = (gvk.group, gvk.version, gvk.kind) == (version.group, version.version, kind["kind"])
            if named and resource.collection is not None:
                return resource
        shown = f"{kind['apiVersion']}, Kind={kind['kind']}"
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")

    def _parameters(self, kind: Resource | None, reference: Json | None, namespace: str) -> list[Json | None]:
        """The parameters of a binding; [None] if the policy has no paramKind."""
        if kind is None or reference is None:
            return [None]
        assert kind.collection is not None
        where = reference.get("namespace", "")
        if where and not kind.namespaced:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if kind.namespaced and not (where or namespace):
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        where = where or namespace
        name = reference.get("name")
        if name:
            entry = kind.collection.newest(kind.key(where, name))
            found: list[Json | None] = [] if entry is None else [kind.object(entry.data)]
        else:
            wanted = from_label_selector(reference.get("selector"))
            entries = kind.collection.select(f"{where}/" if kind.namespaced else "")
            found = [kind.object(entry.data) for entry in entries if wanted.matches(entry.labels)]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found


def _name(obj: Json) -> str:
    name: str = obj["metadata"]["name"]
    return name


class AuthorizationPending(Exception):  # noqa: N818 - control flow, not a failure
    """An expression needs an authorization decision that takes I/O."""

    def __init__(self, user: User, attributes: RequestAttributes) -> None:
        super().__init__("authorization decision pending")
        self.user = user
        self.attributes = attributes


Decisions = dict[tuple[str, RequestAttributes], Decision]
"""Decisions that took I/O, by user name and attributes."""


async def evaluate_with_authorizer(authorizer: access.Authorizer, evaluate: Callable[[Decisions], T]) -> T:
    """Evaluate expressions that may call the authorizer; restart with each decision that takes I/O."""
    decisions: Decisions = {}
    while True:
        try:
            return evaluate(decisions)
        except AuthorizationPending as pending:
            decision = await authorizer.decide(pending.user, pending.attributes)
            decisions[pending.user.name, pending.attributes] = decision


class PolicyActivation:
    """CEL variables of a write. `decisions`: see `evaluate_with_authorizer`."""

    def __init__(
        self, attributes: Attributes, matcher: Matcher, authorizer: access.Authorizer, decisions: Decisions
    ) -> None:
        self._attributes = attributes
        self._namespace = matcher.namespace(attributes)
        user = attributes.context.request.user
        self._authorizer = Authorizer(lambda question: _answer(authorizer, user, question, decisions))

    def evaluation(self, compiled: Any, invocation: Invocation[Any], budget: int = PER_REQUEST) -> Evaluation:
        """The evaluation context of a policy's expressions."""
        attributes = self._attributes
        values = {
            "object": _as(attributes.obj, attributes, invocation.resource),
            "oldObject": _as(attributes.old, attributes, invocation.resource),
            "namespaceObject": self._namespace,
            "request": self._request(invocation.resource),
            "params": invocation.parameter,
            "authorizer": self._authorizer,
            "authorizer.requestResource": self._authorizer.step(
                "ResourceCheck",
                group=attributes.resource.group,
                resource=attributes.resource.resource,
                subresource=attributes.subresource,
                namespace=attributes.namespace,
                name=attributes.name,
            ),
        }
        return Evaluation(values, compiled.variables, budget)

    def matches(self, conditions: list[Expression | ExpressionError], evaluation: Evaluation) -> bool:
        """Whether all match conditions are true; ConfigurationError if one fails and none is false."""
        faults: list[str] = []
        for condition in conditions:
            if isinstance(condition, ExpressionError):
                faults.append(f"compilation error: {condition}")
                continue
            try:
                if evaluation.evaluate(condition) is False:
                    return False
            except CelError as error:
                faults.append(str(error))
            except OutOfBudgetError as error:
                raise ConfigurationError(str(error)) from None
        if faults:
            raise ConfigurationError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
        return True

    def conditions(self, compiled: Any, invocation: Invocation[Any]) -> bool:
        """Whether the match conditions of an invocation are true."""
        if not compiled.conditions:
            return True
        return self.matches(compiled.conditions, self.evaluation(compiled, invocation, _MATCH_CONDITIONS_BUDGET))

    def _request(self, resource: GroupVersionResource) -> Json:
        attributes = self._attributes
        kind, own = attributes.kind, attributes.resource
        return {
            "kind": {"group": kind.group, "version": resource.version, "kind": kind.kind},
            "resource": {"group": resource.group, "version": resource.version, "resource": resource.resource},
            "requestKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "requestResource": {"group": own.group, "version": own.version, "resource": own.resource},
            "operation": attributes.operation,
            "userInfo": _user(attributes.context.request.user),
            "dryRun": bool(getattr(attributes.options, "dry_run", False)),
            "options": _options(attributes),
            **_set(
                subResource=attributes.subresource,
                requestSubResource=attributes.subresource,
                name=attributes.name,
                namespace=attributes.namespace,
            ),
        }


def _user(user: User | None) -> Json:
    if user is None:
        return {}
    extra = {key: list(values) for key, values in user.extra.items()}
    return _set(username=user.name, uid=user.uid, groups=list(user.groups), extra=extra)


def _set(**fields: Any) -> Json:
    """The non-empty fields; empty ones are absent in expressions."""
    return {name: value for name, value in fields.items() if value}


def _options(attributes: Attributes) -> Json:
    kind = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    return {"kind": kind.get(attributes.operation, "CreateOptions"), "apiVersion": "meta.k8s.io/v1"}


def _as(obj: Json | None, attributes: Attributes, resource: GroupVersionResource) -> Json | None:
    """An object with the apiVersion of the matched rule; only the name is changed."""
    if obj is None or resource.version == attributes.resource.version:
        return obj
    return {**obj, "apiVersion": f"{resource.group}/{resource.version}" if resource.group else resource.version}


def _answer(authorizer: access.Authorizer, user: User | None, question: AccessCheck, decisions: Decisions) -> Answer:
    """The decision of the server's authorizer for the requesting user or a service account."""
    if question.service_account is not None:
        namespace, name = question.service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        user = User(f"system:serviceaccount:{namespace}:{name}", groups=groups)
    if user is None:  # a request of the server itself
        return Answer(allowed=True)
    if question.path:
        attributes = RequestAttributes(question.verb, path=question.path)
    else:
        resource = (question.group, question.resource, question.subresource)
        attributes = RequestAttributes(
            question.verb,
            *resource,
            question.namespace,
            question.name,
            field_selector=field_terms(question.field_selector),
            label_selector=label_requirements(question.label_selector),
        )
    decision = decisions.get((user.name, attributes)) or authorizer.decide_now(user, attributes)
    if decision is None:
        raise AuthorizationPending(user, attributes)
    return Answer(decision.allowed, decision.reason, decision.error)


def compiled_or_error(compile_: Callable[[str], Expression], text: str) -> Expression | ExpressionError:
    try:
        return compile_(text)
    except ExpressionError as error:
        return error


def has_failure_policy_ignore(policy: Json) -> bool:
    return bool(policy["spec"].get("failurePolicy") == "Ignore")


def refused(error: Any, reason: str, code: int, messages: list[str]) -> Any:
    """The error with another reason and code, and a cause for each message."""
    from ostinato.api.status import StatusCause  # noqa: PLC0415 - refusals are rare

    details = msgspec.structs.replace(error.details, causes=tuple(StatusCause(message=text) for text in messages))
    return type(error)(msgspec.structs.replace(error.status, reason=reason, code=code, details=details))
