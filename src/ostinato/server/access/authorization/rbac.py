"""The RBAC authorizer: users may do what the roles allow that are bound to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import NO_OPINION, Decision, ResolvedRules
from ostinato.server.access.authorization.roles import GROUP, RoleName, Roles, UserRules
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry


class Rbac:
    """A mode."""

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
        """All rules that a user has in a namespace, and the roles that are bound but do not exist."""
        held = self._held(user, namespace)
        rules = [rule for each in held for rule, _ in each.rules]
        return rules, [name for each in held for name in each.missing]

    def _held(self, user: User, namespace: str) -> list[UserRules]:
        """All that a user has in a namespace."""
        everywhere = self.roles.held(user, "")
        return [everywhere, self.roles.held(user, namespace)] if namespace else [everywhere]


def aggregated(messages: list[str]) -> str:
    """Several messages as one, each mentioned once."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def not_found(roles: list[RoleName]) -> str:
    """That roles do not exist."""
    return aggregated([f"{kind}.{GROUP} {quote(name)} not found" for kind, name in roles])
