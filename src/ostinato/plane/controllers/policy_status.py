"""ValidatingAdmissionPolicy status controller: type-checks expressions against the matched kinds.

Each generation of a policy is checked once. At most ten kinds are checked, and only those that the policy names without
wildcards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from ostinato.client.discovery.discovery import Catalogue
from ostinato.client.views import Unstructured
from ostinato.controllers import Context, Request
from ostinato.kinds.admissionregistration_v1 import ValidatingAdmissionPolicy
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.server.resources.admissionregistration.policy_type_checks import (
    CheckedKind,
    builtin_schema,
    custom_schema,
    type_warnings,
)

NAME: Final = "validatingadmissionpolicy-status-controller"
_FIELD_MANAGER: Final = "validatingadmissionpolicy-status"
_DEFINITIONS: Final = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_MOST_KINDS: Final = 10
_WORKERS: Final = 5


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    build = manager.build(NAME).watch_for(ValidatingAdmissionPolicy)
    build.with_options(max_concurrent=_WORKERS).complete(PolicyStatus())


class PolicyStatus:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        policy = await ctx.client.get(ValidatingAdmissionPolicy, request, missing=None)
        if policy is None or (policy.metadata.generation or 0) <= (policy.status.observed_generation or 0):
            return
        spec: dict[str, Any] = to_dict(policy.spec)
        kinds = [found for kind in await _kinds(ctx, spec) if (found := await _checked(ctx, kind)) is not None]
        parameter = await _parameter(ctx, spec.get("paramKind"))
        checking: dict[str, Any] = {}
        warnings = type_warnings(spec, kinds, parameter)
        if warnings:
            checking["expressionWarnings"] = warnings
        status = {"observedGeneration": policy.metadata.generation, "typeChecking": checking}
        applied = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": request.name},
            "status": status,
        }
        await ctx.client.live.apply(applied, force=True, field_manager=_FIELD_MANAGER, subresource="status")


async def _kinds(ctx: Context, spec: dict[str, Any]) -> list[GroupVersionKind]:
    """Return the kinds that a policy names, in order; refresh discovery if one is unknown."""
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    mapper = ctx.client.live.mapper
    catalogue, fresh = await mapper.catalogue(), False
    found: set[GroupVersionKind] = set()
    for rule in rules:
        count = 0
        for resource in _named(rule):
            kinds = _of(catalogue, resource)
            if not kinds and not fresh:
                await mapper.refresh()
                catalogue, fresh = await mapper.catalogue(), True
                kinds = _of(catalogue, resource)
            for kind in kinds:
                found.add(kind)
                count += 1
                if count == _MOST_KINDS:
                    return sorted(found)
    return sorted(found)


def _named(rule: dict[str, Any]) -> Iterable[GroupVersionResource]:
    """Return the resources that a rule names; none if groups or versions have a wildcard."""
    groups, versions = sorted(rule.get("apiGroups") or ()), sorted(rule.get("apiVersions") or ())
    if any("*" in text for text in (*groups, *versions)):
        return []
    resources = [text for text in sorted(rule.get("resources") or ()) if "*" not in text and "/" not in text]
    return [GroupVersionResource(group, version, one) for group in groups for version in versions for one in resources]


def _of(catalogue: Catalogue, wanted: GroupVersionResource) -> list[GroupVersionKind]:
    """Return the kinds of a resource; without a group, in all groups."""
    return [
        each.info.gvk
        for version in catalogue.versions
        for each in version.resources
        if wanted.resource in (each.info.plural, each.info.singular)
        and each.info.gvk.version == wanted.version
        and wanted.group in ("", each.info.gvk.group)
    ]


async def _parameter(ctx: Context, kind: dict[str, str] | None) -> CheckedKind | None:
    if kind is None:
        return None
    try:
        version = GroupVersion.parse(kind.get("apiVersion", ""))
    except ValueError:
        return None
    return await _checked(ctx, version.kind(kind.get("kind", "")))


async def _checked(ctx: Context, kind: GroupVersionKind) -> CheckedKind | None:
    """Return a kind with its schema; None if it has none."""
    known = builtin_schema(kind)
    if known is not None:
        return CheckedKind(kind, known)
    for definition in await ctx.client.live.list(_DEFINITIONS):
        spec = definition["spec"]
        if (spec["group"], spec["names"]["kind"]) != (kind.group, kind.kind):
            continue
        for version in spec["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if version["name"] == kind.version and schema is not None:
                return CheckedKind(kind, custom_schema(schema))
    return None
