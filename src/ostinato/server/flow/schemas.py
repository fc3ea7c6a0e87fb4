"""FlowSchemas: assign requests to flows.

Schemas are evaluated by precedence, then by name; the first match decides. A rule matches if one of its subjects is the
user and one of its resource or non-resource rules covers the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.request import User

Json = dict[str, Any]

EXEMPT = "exempt"
CATCH_ALL = "catch-all"
_ACCOUNT = "system:serviceaccount:"
_DEFAULT_PRECEDENCE = 1000


class FlowSchema:
    """A parsed FlowSchema."""

    __slots__ = ("_rules", "distinguisher", "level", "name", "precedence", "uid")

    def __init__(self, obj: Json) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.uid: str = obj["metadata"].get("uid", "")
        self.precedence: int = spec.get("matchingPrecedence", _DEFAULT_PRECEDENCE)
        self.level: str = spec["priorityLevelConfiguration"].get("name", "")
        self.distinguisher: str = (spec.get("distinguisherMethod") or {}).get("type", "")
        self._rules: Sequence[Json] = spec.get("rules") or ()

    def matches(self, user: User, asked: RequestAttributes) -> bool:
        return any(_matches_rule(rule, user, asked) for rule in self._rules)

    def distinguish(self, user: User, asked: RequestAttributes) -> str:
        """Return the flow distinguisher of a matching request."""
        match self.distinguisher:
            case "ByUser":
                return user.name
            case "ByNamespace":
                return asked.namespace
        return ""


def in_order(schemas: Iterable[FlowSchema]) -> list[FlowSchema]:
    """Sort schemas in the order of evaluation."""
    return sorted(schemas, key=lambda schema: (schema.precedence, schema.name))


def _matches_rule(rule: Json, user: User, asked: RequestAttributes) -> bool:
    if not any(_is_subject(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if asked.path is None:
        return any(_matches_resource(each, asked) for each in rule.get("resourceRules") or ())
    return any(_matches_path(each, asked) for each in rule.get("nonResourceRules") or ())


def _is_subject(subject: Json, user: User) -> bool:
    match subject.get("kind"):
        case "User":
            name = (subject.get("user") or {}).get("name")
            return name in ("*", user.name)
        case "Group":
            name = (subject.get("group") or {}).get("name")
            return name == "*" or name in user.groups
        case "ServiceAccount":
            account = subject.get("serviceAccount")
            if account is None:
                return False
            namespace, name = account.get("namespace", ""), account.get("name", "")
            if name == "*":
                return user.name.startswith(f"{_ACCOUNT}{namespace}:")
            return user.name == f"{_ACCOUNT}{namespace}:{name}"
    return False


def _matches_resource(rule: Json, asked: RequestAttributes) -> bool:
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    if not (
        _among(asked.verb, rule.get("verbs"))
        and _among(resource, rule.get("resources"))
        and _among(asked.group, rule.get("apiGroups"))
    ):
        return False
    if not asked.namespace:
        return bool(rule.get("clusterScope"))
    return _among(asked.namespace, rule.get("namespaces"))


def _matches_path(rule: Json, asked: RequestAttributes) -> bool:
    if not _among(asked.verb, rule.get("verbs")):
        return False
    assert asked.path is not None
    for pattern in rule.get("nonResourceURLs") or ():
        if pattern in ("*", asked.path):
            return True
        prefix = pattern.removesuffix("*")
        if asked.path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False


def _among(value: str, known: Sequence[str] | None) -> bool:
    """Whether a value is in a list; the list `["*"]` contains everything."""
    return known is not None and (value in known or (len(known) == 1 and known[0] == "*"))
