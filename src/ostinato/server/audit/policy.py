"""Audit policy: an audit.k8s.io/v1 Policy; the first matching rule sets level and omitted stages.

A PolicyError names the file and the field. Unlike kube-apiserver, unknown fields are rejected: the rule would match
more than intended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire.files import UnreadableFileError, read_yaml

if TYPE_CHECKING:
    from ostinato.server.access.attributes import RequestAttributes
    from ostinato.server.request import User

LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_VERSION: Final = "audit.k8s.io/v1"


class PolicyError(ValueError):
    """The policy is invalid; the message names the field."""


class RequestAuditConfig(msgspec.Struct, frozen=True):
    """What is written of a request. `level`: index into LEVELS."""

    level: int
    omitted_stages: frozenset[str]
    omit_managed_fields: bool


_NOTHING: Final = RequestAuditConfig(0, frozenset(), omit_managed_fields=False)


class _Resources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def matches(self, attributes: RequestAttributes) -> bool:
        if self.group not in ("*", attributes.group):
            return False
        if not self.resources:
            return True
        if self.resource_names and attributes.name not in self.resource_names:
            return False
        return any(_is_for(each, attributes.resource, attributes.subresource) for each in self.resources)


def _is_for(pattern: str, resource: str, subresource: str) -> bool:
    combined = f"{resource}/{subresource}" if subresource else resource
    if pattern in (combined, "*"):
        return True
    if subresource and pattern == f"*/{subresource}":
        return True
    return pattern.endswith("/*") and pattern[:-2] == resource


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    level: str = ""
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = msgspec.field(default=(), name="userGroups")
    verbs: tuple[str, ...] = ()
    resources: tuple[_Resources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[str, ...] = msgspec.field(default=(), name="omitStages")
    omit_managed_fields: bool | None = msgspec.field(default=None, name="omitManagedFields")

    def matches(self, user: User | None, attributes: RequestAttributes) -> bool:
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.user_groups and (user is None or not any(group in self.user_groups for group in user.groups)):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if attributes.path is not None or (self.namespaces and attributes.namespace not in self.namespaces):
                return False
            return not self.resources or any(each.matches(attributes) for each in self.resources)
        if self.non_resource_urls:
            path = attributes.path
            return path is not None and any(_is_below(path, each) for each in self.non_resource_urls)
        return True


def _is_below(path: str, pattern: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    rules: tuple[_Rule, ...] = ()
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool = False
    metadata: dict[str, Any] = {}


class Policy:
    def __init__(self, file: _File) -> None:
        self._rules = [
            (
                rule,
                RequestAuditConfig(
                    LEVELS.index(rule.level),
                    frozenset(file.omit_stages + rule.omit_stages),
                    file.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields,
                ),
            )
            for rule in file.rules
        ]

    def evaluate(self, user: User | None, attributes: RequestAttributes) -> RequestAuditConfig:
        """Evaluate the policy for a request; `user`: None if authentication failed."""
        for rule, config in self._rules:
            if rule.matches(user, attributes):
                return config
        return _NOTHING


def load(path: FilePath) -> Policy:
    """Load a policy file; PolicyError if it is invalid."""
    try:
        content = read_yaml(path)
    except UnreadableFileError as error:
        raise PolicyError(str(error)) from None
    try:
        return parse(content)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None


def parse(content: Any) -> Policy:
    """Build the policy of a decoded file; PolicyError names the field."""
    if not isinstance(content, dict):
        raise PolicyError(f"want kind Policy of {_VERSION}")
    version, kind = content.get("apiVersion"), content.get("kind")
    if (version, kind) != (_VERSION, "Policy"):
        raise PolicyError(f"want kind Policy of {_VERSION}, got {kind} of {version}")
    try:
        file = msgspec.convert(
            {key: value for key, value in content.items() if key not in ("apiVersion", "kind")}, _File
        )
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        raise PolicyError(f"{f'{place[:-1]}: ' if place else ''}{why}") from None
    faults = [*_stage_faults(file.omit_stages, Path("omitStages"))]
    for i, rule in enumerate(file.rules):
        faults += _faults(rule, Path("rules").index(i))
    if faults:
        raise PolicyError("; ".join(map(str, faults)))
    if not file.rules:
        raise PolicyError("rules: the policy has no rules; add one with a level")
    return Policy(file)


def _faults(rule: _Rule, path: Path) -> Iterator[FieldError]:
    if not rule.level:
        yield FieldError.required(path.child("level"))
    elif rule.level not in LEVELS:
        yield FieldError.not_supported(path.child("level"), rule.level, LEVELS)
    for i, url in enumerate(rule.non_resource_urls):
        at = path.child("nonResourceURLs").index(i)
        if url != "*" and not url.startswith("/"):
            yield FieldError.invalid(at, url, "non-resource URL rules must begin with a '/' character")
        if "*" in url[:-1]:
            why = "non-resource URL wildcards '*' must be the final character of the rule"
            yield FieldError.invalid(at, url, why)
    for each in rule.resources:
        at = path.child("resources")
        wrong = names.is_dns1123_subdomain(each.group) if each.group not in ("", "*") else []
        if wrong:
            yield FieldError.invalid(at.child("group"), each.group, ",".join(wrong))
        if each.resource_names and not each.resources:
            why = "using resourceNames requires at least one resource"
            yield FieldError.invalid(at.child("resourceNames"), list(each.resource_names), why)
    yield from _stage_faults(rule.omit_stages, path.child("omitStages"))
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        why = "rules cannot apply to both regular resources and non-resource URLs"
        yield FieldError.invalid(path.child("nonResourceURLs"), list(rule.non_resource_urls), why)


def _stage_faults(stages: tuple[str, ...], path: Path) -> Iterator[FieldError]:
    for i, stage in enumerate(stages):
        if stage not in STAGES:
            yield FieldError.invalid(path.index(i), stage, f"allowed stages are {','.join(STAGES)}")
