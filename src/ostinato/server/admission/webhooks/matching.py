"""Webhook matching: which webhooks are called for a write, and with which version of the object.

Configurations are ordered by name, webhooks as listed. With matchPolicy Equivalent a webhook whose rules name another
version of the resource is called with the object converted to that version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.cel.expression import Expression
from ostinato.server.admission.policies.matching import Attributes, Matcher, rule_matches
from ostinato.server.admission.policies.policies import (
    ConfigurationError,
    Decisions,
    Invocation,
    PolicyActivation,
    compiled_or_error,
    evaluate_with_authorizer,
)
from ostinato.server.resources.admissionregistration.policy_expressions import (
    Compiler,
    ExpressionError,
    named_expressions,
)
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.plugins import WebhookDependencies
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.resource import Resource

_GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)


class Webhook:
    """A webhook of a configuration with compiled match conditions."""

    variables: Final[dict[str, Any]] = {}  # webhooks define none

    def __init__(self, configuration: str, raw: Json) -> None:
        self.raw = raw
        self.name: str = raw["name"]
        self.key = (configuration, self.name)
        self.has_failure_policy_ignore = raw.get("failurePolicy") == "Ignore"
        self.reinvoke = raw.get("reinvocationPolicy") == "IfNeeded"
        self.seconds: int = raw.get("timeoutSeconds") or 10
        compiler = Compiler({})
        self.conditions: list[Expression | ExpressionError] = [
            compiled_or_error(compiler.condition, text) for _, text in named_expressions(raw.get("matchConditions"))
        ]


class Match(NamedTuple):
    """A webhook to call, and the resource and kind that it receives."""

    webhook: Webhook
    resource: Resource
    kind: GroupVersionKind


class WebhookMatcher:
    def __init__(self, configurations: Lister, dependencies: WebhookDependencies) -> None:
        self._configurations = configurations
        self._registry = dependencies.registry
        self._authorizer = dependencies.authorizer
        self._matcher = Matcher(dependencies.registry, dependencies.namespaces)
        self._read: list[Json] | None = None  # the configurations that `_webhooks` was built from
        self._webhooks: list[Webhook] = []
        self._known: dict[tuple[GroupVersionResource, str], list[Resource]] = {}  # equivalent resources
        self._generation = -1  # registry generation of `_known`

    def webhooks(self, attributes: Attributes) -> list[Webhook]:
        """All webhooks in order; none for admission configuration objects."""
        gvr = attributes.resource
        if gvr.group == _GROUP and gvr.resource in _EXEMPT:
            return []
        configurations = self._configurations.all()
        if configurations is not self._read:
            ordered = sorted(configurations, key=lambda each: str(each["metadata"]["name"]))
            self._webhooks = [
                Webhook(each["metadata"]["name"], raw) for each in ordered for raw in each.get("webhooks") or ()
            ]
            self._read = configurations
        return self._webhooks

    def match(self, webhook: Webhook, attributes: Attributes) -> Match | None:
        """Match a webhook by its selectors and rules; None if it does not apply."""
        if not self._matcher.selects(attributes, webhook.raw):
            return None
        resource = self._by_rules(webhook.raw, attributes)
        if resource is None:
            return None
        subresource = resource.subresources.get(attributes.subresource)
        return Match(webhook, resource, resource.gvk if subresource is None else subresource.kind)

    def _by_rules(self, raw: Json, attributes: Attributes) -> Resource | None:
        rules = raw.get("rules") or ()
        own = attributes.context.resource
        if any(rule_matches(rule, attributes, own.gvr) for rule in rules):
            return own
        if raw.get("matchPolicy") == "Exact":
            return None
        others = self._equivalents(own, attributes.subresource)
        return next((other for rule in rules for other in others if rule_matches(rule, attributes, other.gvr)), None)

    def _equivalents(self, own: Resource, subresource: str) -> list[Resource]:
        """Equivalent resources: the same objects in other versions or groups."""
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._known.clear()
        found = self._known.get((own.gvr, subresource))
        if found is None:
            found = self._known[own.gvr, subresource] = [
                other for other in self._registry if _is_equivalent(own, other, subresource)
            ]
        return found

    async def holds(self, match: Match, attributes: Attributes) -> bool:
        """Whether the match conditions are true for the converted write; Forbidden if they fail."""
        if not match.webhook.conditions:
            return True
        return await evaluate_with_authorizer(
            self._authorizer, lambda decisions: self._hold(match, attributes, decisions)
        )

    def _hold(self, match: Match, attributes: Attributes, decisions: Decisions) -> bool:
        webhook, gvr = match.webhook, match.resource.gvr
        subject = PolicyActivation(attributes, self._matcher, self._authorizer, decisions)
        invocation: Invocation[Webhook] = Invocation({}, webhook, {}, gvr, None)
        try:
            return subject.conditions(webhook, invocation)
        except ConfigurationError as error:
            if webhook.has_failure_policy_ignore:
                return False
            group_resource = attributes.context.resource.group_resource
            raise Forbidden.of(group_resource, attributes.name, error) from None


def _is_equivalent(own: Resource, other: Resource, subresource: str) -> bool:
    if other is own or other.gvr.resource != own.gvr.resource:
        return False
    same = other.gvr.group == own.gvr.group if own.collection is None else other.collection is own.collection
    return same and (not subresource or subresource in other.subresources)
