"""Match constraints of policies and bindings: resource rules, namespace and object selectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.selectors.labels import from_label_selector
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry

_POLICIES: Final = "admissionregistration.k8s.io"
# Resources exempt from policies: policies themselves, and reviews that the cluster depends on.
_EXEMPT: Final = frozenset(
    {
        (_POLICIES, "validatingadmissionpolicies"),
        (_POLICIES, "validatingadmissionpolicybindings"),
        (_POLICIES, "mutatingadmissionpolicies"),
        (_POLICIES, "mutatingadmissionpolicybindings"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)


class Attributes(NamedTuple):
    """Admission attributes of a write."""

    context: Context
    operation: str
    obj: Json | None
    old: Json | None
    options: Any

    @property
    def namespace(self) -> str:
        """The namespace; of a Namespace object its own name."""
        return self.context.route.namespace or (self.name if self.is_namespace else "")

    @property
    def is_namespace(self) -> bool:
        return self.resource.resource == "namespaces" and not self.resource.group

    @property
    def name(self) -> str:
        """The object's name in the request; "" for deletecollection."""
        if self.context.route.verb == "deletecollection":
            return ""
        meta: Json = (self.obj or {}).get("metadata", {})
        return self.context.route.name or meta.get("name") or ""

    @property
    def resource(self) -> GroupVersionResource:
        return self.context.resource.gvr

    @property
    def kind(self) -> GroupVersionKind:
        """The kind of the written object; subresources may have their own."""
        subresource = self.context.resource.subresources.get(self.context.route.subresource)
        return self.context.resource.gvk if subresource is None else subresource.kind

    @property
    def subresource(self) -> str:
        return self.context.route.subresource


def exempt(context: Context) -> bool:
    return (context.resource.gvr.group, context.resource.gvr.resource) in _EXEMPT


class Matcher:
    def __init__(self, registry: Registry, namespaces: Lister) -> None:
        self._registry = registry
        self._namespaces = namespaces

    def namespace(self, attributes: Attributes) -> Json | None:
        """The Namespace of a write; None for cluster-scoped resources and Namespaces."""
        if not attributes.namespace or attributes.resource.resource == "namespaces":
            return None
        return self._namespaces.get(attributes.namespace)

    def matched(self, attributes: Attributes, match: Json) -> GroupVersionResource | None:
        """The resource, in the version of the matching rule; None if no rule matches."""
        if not self.selects(attributes, match):
            return None
        exact = match.get("matchPolicy") != "Equivalent"
        if self._by_rules(attributes, match.get("excludeResourceRules") or (), exact=exact) is not None:
            return None
        rules = match.get("resourceRules") or ()
        return self._by_rules(attributes, rules, exact=exact) if rules else attributes.resource

    def selects(self, attributes: Attributes, match: Json) -> bool:
        """Whether the namespace and object selectors match."""
        return self._selects_namespace(attributes, match.get("namespaceSelector")) and _selects_object(
            attributes, match.get("objectSelector")
        )

    def _by_rules(self, attributes: Attributes, rules: Any, *, exact: bool) -> GroupVersionResource | None:
        own = attributes.resource
        resources = [own]
        if not exact:
            resources += [
                resource.gvr
                for resource in self._registry
                if resource.gvr.group == own.group and resource.gvr.resource == own.resource and resource.gvr != own
            ]
        for resource in resources:
            if any(rule_matches(rule, attributes, resource) for rule in rules):
                return resource
        return None

    def _selects_namespace(self, attributes: Attributes, selector: Json | None) -> bool:
        if not selector:
            return True
        if attributes.is_namespace:
            activation = attributes.obj if attributes.operation in ("CREATE", "UPDATE") else attributes.old
        elif attributes.context.resource.namespaced:
            activation = self._namespaces.get(attributes.namespace)
        else:
            return True
        return from_label_selector(selector).matches(_labels(activation))


def _labels(obj: Json | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _selects_object(attributes: Attributes, selector: Json | None) -> bool:
    if not selector:
        return True
    wanted = from_label_selector(selector)
    return any(obj is not None and wanted.matches(_labels(obj)) for obj in (attributes.obj, attributes.old))


def rule_matches(rule: Json, attributes: Attributes, resource: GroupVersionResource) -> bool:
    """Whether a rule matches a write, taken as one of `resource`."""
    names = rule.get("resourceNames")
    return (
        _has(rule.get("operations"), attributes.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and _resource_matches(rule.get("resources") or (), resource.resource, attributes.subresource)
        and _in_scope(rule.get("scope", "*"), attributes)
        and (not names or attributes.name in names)
    )


def _has(values: list[str] | None, value: str) -> bool:
    return value in (values or ()) or "*" in (values or ())


def _resource_matches(wanted: Any, resource: str, subresource: str) -> bool:
    for text in wanted:
        name, _, below = text.partition("/")
        if name in ("*", resource) and below in (subresource, "*"):
            return True
    return False


def _in_scope(scope: str, attributes: Attributes) -> bool:
    return scope == "*" or (scope == "Namespaced") == (bool(attributes.namespace) and not attributes.is_namespace)
