"""Privilege escalation check: writing or binding a role needs the rules of the role.

The verb `escalate` on the role, or `bind` on the bound role, lifts the check. It runs in
the mutating phase and is reinvoked after webhooks, so that it checks the final object before validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import BadRequest, Forbidden, NotFound, Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.access.authorization.roles import GROUP
from ostinato.server.access.authorization.rules import Rule, TooManyParts, uncovered
from ostinato.server.access.messages import aggregated, quoted
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.request import User
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_ROLES = {"Role": "roles", "ClusterRole": "clusterroles"}
_EVERYTHING = [
    Rule({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
    Rule({"verbs": ["*"], "nonResourceURLs": ["*"]}),
]
_COLLECTED = ("ownerReferences", "finalizers", "managedFields")  # fields that the garbage collector changes


class RoleEscalation(Plugin):
    covers = resources(
        *(f"{name}.{GROUP}" for name in ("roles", "clusterroles", "rolebindings", "clusterrolebindings"))
    )

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if obj is None:
            return
        user = context.request.user
        if user is None or MASTERS in user.groups or (old is not None and _is_collected(obj, old)):
            return
        if context.resource.gvk.kind in _ROLES:
            await self._check_role(context, user, obj, old)
        else:
            await self._check_binding(context, user, obj)

    async def _check_role(self, context: Context, user: User, role: Json, old: Json | None) -> None:
        route = context.route
        attributes = RequestAttributes("escalate", GROUP, route.resource, namespace=route.namespace, name=route.name)
        if (await self._authorizer.decide(user, attributes)).allowed:
            return
        self._confirm(context, user, role, [Rule(raw) for raw in role.get("rules") or ()])
        if _aggregates(role) or _aggregates(old):  # an aggregated role may get any rule
            try:
                self._confirm(context, user, role, _EVERYTHING)
            except Forbidden:
                raise _forbidden(
                    context, role, "must have cluster-admin privileges to use the aggregationRule"
                ) from None

    async def _check_binding(self, context: Context, user: User, binding: Json) -> None:
        reference, namespace = binding.get("roleRef") or {}, context.route.namespace
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind not in _ROLES:
            raise Unknown.of(f"unsupported role reference kind: {quote(kind)}")
        attributes = RequestAttributes(
            "bind", reference.get("apiGroup", ""), _ROLES[kind], namespace=namespace, name=name
        )
        if (await self._authorizer.decide(user, attributes)).allowed:
            return
        self._confirm(context, user, binding, self._rules_of(context, kind, name))

    def _rules_of(self, context: Context, kind: str, name: str) -> list[Rule]:
        """The rules of the bound role; an APIError if the reference is invalid or the role does not exist."""
        if kind == "Role" and not context.route.namespace:
            raise BadRequest.of("Namespace parameter required.")
        if not name:
            raise BadRequest.of("Name parameter required.")
        rules = self._authorizer.roles.of({"kind": kind, "name": name}, context.route.namespace)
        if rules is None:
            raise NotFound.of(context.resource.group_resource, name)
        return rules

    def _confirm(self, context: Context, user: User, obj: Json, wanted: list[Rule]) -> None:
        """Forbidden if the user's rules do not cover the wanted ones."""
        held, absent = self._authorizer.rules(user, context.route.namespace)
        try:
            missing = uncovered(held, wanted)
        except TooManyParts as error:
            raise _forbidden(context, obj, f"{error}; split the role") from None
        if not missing:
            return
        who = f"user {quote(user.name)} (groups={quoted(user.groups)})"
        why = "\n".join([f"{who} is attempting to grant RBAC permissions not currently held:", *missing])
        if absent:
            missing_roles = aggregated(
                [f"{context.resource.group_resource} {quote(name)} not found" for _, name in absent]
            )
            why += f"; resolution errors: [{missing_roles}]"
        raise _forbidden(context, obj, why)


def _forbidden(context: Context, obj: Json, why: str) -> Forbidden:
    return Forbidden.of(context.resource.group_resource, obj["metadata"].get("name", ""), why)


def _aggregates(role: Json | None) -> bool:
    return bool(((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_collected(new: Json, old: Json) -> bool:
    """Whether an update changes only fields of the garbage collector, which grant nothing."""
    return _without_collected(new) == _without_collected(old)


def _without_collected(obj: Json) -> Json:
    metadata = {field: value for field, value in obj["metadata"].items() if field not in _COLLECTED}
    return {**obj, "metadata": metadata}
