"""RBAC authorizer: allows what the roles bound to a user allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import NO_OPINION, Decision, ResolvedRules
from ostinato.server.access.authorization.roles import GROUP, RoleName, Roles, UserRules
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.access.messages import aggregated
from ostinato.server.request import User

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry


class Rbac:
    """RBAC mode."""

    def __init__(self, registry: Registry) -> None:
        self.roles = Roles(registry)

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision:
        missing: list[RoleName] = []
        for held in self._held(user, attributes.namespace):
            decision = held.decide(attributes)
            if decision is not None:
                return decision
            missing += held.missing
        return Decision(allowed=False, reason=f"RBAC: {not_found(missing)}") if missing else NO_OPINION

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        return self.decide_now(user, attributes)

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        rules, missing = self.rules(user, namespace)
        return ResolvedRules(rules, error=not_found(missing) if missing else "")

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[RoleName]]:
        """The rules of a user in a namespace, and the bound roles that do not exist."""
        held = self._held(user, namespace)
        rules = [rule for each in held for rule, _ in each.rules]
        return rules, [name for each in held for name in each.missing]

    def _held(self, user: User, namespace: str) -> list[UserRules]:
        """The rules from cluster role bindings and from those of the namespace."""
        everywhere = self.roles.held(user, "")
        return [everywhere, self.roles.held(user, namespace)] if namespace else [everywhere]


def not_found(roles: list[RoleName]) -> str:
    """The message for roles that do not exist."""
    return aggregated([f"{kind}.{GROUP} {quote(name)} not found" for kind, name in roles])
