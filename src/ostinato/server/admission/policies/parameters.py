"""Permissions on policy parameters: writing a policy or binding needs read access to its parameters.

For a policy these are all objects of its `paramKind`, for a binding those of its `paramRef`. If the resource cannot be
determined, access to all resources is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Invalid
from ostinato.api.gvk import GroupVersion
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.request import User
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context
    from ostinato.server.resources.registry import Registry

_GROUP = "admissionregistration.k8s.io"
_SPEC = Path("spec")


class PolicyParameters(Plugin):
    covers = resources(
        *(f"{sort}admissionpolic{end}.{_GROUP}" for sort in ("validating", "mutating") for end in ("ies", "ybindings"))
    )

    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._registry = registry
        self._authorizer = authorizer

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        user = context.request.user
        if obj is None or context.route.subresource or user is None or MASTERS in user.groups:
            return
        spec = obj["spec"]
        if "policyName" in spec:
            field, fault = "paramRef", await self._reference_fault(context, user, spec)
        else:
            before = (old or {}).get("spec") or {}
            kind = spec.get("paramKind")
            field, fault = "paramKind", await self._kind_fault(user, kind) if kind != before.get("paramKind") else ""
        if fault:
            name = context.route.name or obj["metadata"].get("name", "")
            raise Invalid.of(context.resource.gvk.group_kind, name, [FieldError.forbidden(_SPEC.child(field), fault)])

    async def _kind_fault(self, user: User, kind: Json | None) -> str:
        """Why the user may not set a paramKind, "" if allowed."""
        if kind is None:
            return ""
        group, resource = self._resource(kind)
        attributes = RequestAttributes("get", group, resource or "*", namespace="*", name="*")
        if (await self._authorizer.decide(user, attributes)).allowed:
            return ""
        named = f"kind={kind['kind']}, apiVersion={kind['apiVersion']}"
        return f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind ({named})'

    async def _reference_fault(self, context: Context, user: User, spec: Json) -> str:
        """Why the user may not set a paramRef, "" if allowed."""
        reference = spec.get("paramRef")
        if reference is None:
            return ""
        policy = self._policy(context, spec["policyName"])
        kind = None if policy is None else policy["spec"].get("paramKind")
        group, resource = ("*", "*") if kind is None else self._resource(kind)
        name = reference.get("name", "")
        verb = "get" if name else "list"
        attributes = RequestAttributes(
            verb, group, resource or "*", namespace=reference.get("namespace", ""), name=name
        )
        if (await self._authorizer.decide(user, attributes)).allowed:
            return ""
        everything = f'user {_shown(user)} does not have "{verb}" permission for all groups, versions and resources'
        if policy is None:
            return (
                f"unable to get policy {spec['policyName']} to determine minimum required permissions and {everything}"
            )
        if kind is not None and not resource:
            shown = f"&{{{kind['apiVersion']} {kind['kind']}}}"
            return f"unable to resolve paramKind {shown} to determine minimum required permissions and {everything}"
        who, right = _shown(user), verb
        if context.resource.gvr.resource.startswith("mutating"):  # kube-apiserver's messages swap the two for these
            who, right = right, who
        return f'user {who} does not have "{right}" permission on the object referenced by paramRef'

    def _policy(self, context: Context, name: str) -> Json | None:
        """The policy of a binding."""
        plural = context.resource.gvr.resource.removesuffix("ybindings") + "ies"
        policies = self._registry.get(_GROUP, "v1", plural)
        assert policies is not None
        assert policies.collection is not None
        entry = policies.collection.newest(name)
        return None if entry is None else policies.object(entry.data)

    def _resource(self, kind: Json) -> tuple[str, str]:
        """Group and name of the resource of a kind; "" if it is unknown."""
        wanted = GroupVersion.parse(kind["apiVersion"]).kind(kind["kind"])
        return wanted.group, next((each.gvr.resource for each in self._registry.of_kind(wanted)), "")


def _shown(user: User) -> str:
    """Format a user as Go's `%v`."""
    extra = " ".join(f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
