"""Policy rules: evaluation, and coverage of rules by other rules.

A rule matches resources or non-resource URLs. `*` matches all values, `*/scale` a subresource of all resources,
`/logs/*` all paths with the prefix. A rule without resourceNames matches all names; one with resourceNames does not
match a request without a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.messages import quoted

MOST_PARTS = 10_000  # maximum number of single-verb parts in a coverage check
_SHOWN_FIELDS = (  # names of rule fields in messages, in order, before the verbs
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
)
_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class TooManyParts(Exception):  # noqa: N818
    """Rules with too many combinations for a coverage check."""


class Rule:
    """A policy rule, prepared for evaluation. `raw`: its non-empty fields."""

    __slots__ = ("_groups", "_names", "_resources", "_urls", "_verbs", "raw")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw: dict[str, list[str]] = {field: raw[field] for field in _FIELDS if raw.get(field)}
        verbs, groups, resources, names, urls = (self.raw.get(field, ()) for field in _FIELDS)
        self._verbs = None if "*" in verbs else frozenset(verbs)  # None: all
        self._groups = None if "*" in groups else frozenset(groups)
        self._resources = None if "*" in resources else frozenset(resources)
        self._names = frozenset(names) if names else None
        self._urls = tuple(urls)

    def allows(self, attributes: RequestAttributes) -> bool:
        return self.concerns(attributes) and (attributes.path is not None or self.names(attributes.name))

    def concerns(self, attributes: RequestAttributes) -> bool:
        """Whether the rule matches everything but the resource name."""
        if self._verbs is not None and attributes.verb not in self._verbs:
            return False
        if attributes.path is not None:
            return any(_begins(url, attributes.path) for url in self._urls)
        return (self._groups is None or attributes.group in self._groups) and (
            self._resources is None or _has(self._resources, attributes.resource, attributes.subresource)
        )

    def names(self, name: str) -> bool:
        """Whether the rule matches a resource name; "" for a request without one."""
        return self._names is None or name in self._names

    def covers(self, part: RequestAttributes, *, named: bool) -> bool:
        """Whether the rule covers a part of another rule. `named`: the other rule has resourceNames."""
        return (named or self._names is None) and self.allows(part)

    @property
    def parts(self) -> Iterator[RequestAttributes]:
        """Break the rule down into one verb, resource and name each, which another rule covers fully or not at all."""
        for group in self.raw.get("apiGroups", ()):
            for text in self.raw.get("resources", ()):
                resource, _, subresource = text.partition("/")
                for verb in self.raw.get("verbs", ()):
                    for name in self.raw.get("resourceNames", ("",)):
                        yield RequestAttributes(verb, group, resource, subresource, name=name)
        for url in self.raw.get("nonResourceURLs", ()):
            for verb in self.raw.get("verbs", ()):
                yield RequestAttributes(verb, path=url)

    @property
    def size(self) -> int:
        """The number of parts."""
        verbs, groups, resources, names, urls = (len(self.raw.get(field, ())) for field in _FIELDS)
        return verbs * (groups * resources * max(names, 1) + urls)


def _has(resources: frozenset[str], resource: str, subresource: str) -> bool:
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def _begins(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))


def missing(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[dict[str, list[str]]]:
    """The parts of the wanted rules that the held rules do not cover, as rules."""
    held = list(held)
    return [
        _rule(part, named="resourceNames" in rule.raw)
        for rule in wanted
        for part in rule.parts
        if not any(own.covers(part, named="resourceNames" in rule.raw) for own in held)
    ]


def _rule(part: RequestAttributes, *, named: bool) -> dict[str, list[str]]:
    if part.path is not None:
        return {"verbs": [part.verb], "nonResourceURLs": [part.path]}
    resource = f"{part.resource}/{part.subresource}" if part.subresource else part.resource
    made = {"verbs": [part.verb], "apiGroups": [part.group], "resources": [resource]}
    return {**made, "resourceNames": [part.name]} if named else made


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[str]:
    """Describe the uncovered parts for a message, sorted, with verbs merged by resource.

    TooManyParts if the rules have too many combinations.
    """
    wanted = list(wanted)
    if sum(rule.size for rule in wanted) > MOST_PARTS:
        raise TooManyParts(f"the rules have more than {MOST_PARTS} combinations of group, resource, verb and name")
    verbs_by_rule: dict[str, list[str]] = {}  # verbs by the rest of the rule
    paths: set[str] = set()
    for rule in missing(held, wanted):
        about = ", ".join(f"{name}:{quoted(rule[field])}" for name, field in _SHOWN_FIELDS if field in rule)
        if "nonResourceURLs" in rule:
            paths.add(f"{{{about}, Verbs:{quoted(rule['verbs'])}}}")
        else:
            verbs_by_rule.setdefault(about, []).extend(rule["verbs"])
    return sorted(paths | {f"{{{about}, Verbs:{quoted(verbs)}}}" for about, verbs in verbs_by_rule.items()})
