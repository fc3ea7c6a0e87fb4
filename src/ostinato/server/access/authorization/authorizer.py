"""Authorization: members of `system:masters` may do everything, others what the roles allow that are bound to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.quoting import quote
from ostinato.server.access.asked import Asked
from ostinato.server.access.authorization.roles import GROUP, Decision, Held, RoleName, Roles
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry

MASTERS = "system:masters"
_MASTER = Decision(allowed=True)


class Authorizer:
    def __init__(self, registry: Registry) -> None:
        self.roles = Roles(registry)

    def decide_now(self, user: User, asked: Asked) -> Decision | None:
        """The decision, if it can be made without waiting for anyone."""
        if MASTERS in user.groups:
            return _MASTER
        missing: list[RoleName] = []
        for held in self._held(user, asked.namespace):
            decision = held.decide(asked)
            if decision is not None:
                return decision
            missing += held.missing
        return Decision(allowed=False, reason=_reason(missing))

    async def decide(self, user: User, asked: Asked) -> Decision:
        decision = self.decide_now(user, asked)
        assert decision is not None, "RBAC waits for no one"
        return decision

    async def check(self, user: User, asked: Asked) -> None:
        """Raise Forbidden if the user may not."""
        decision = await self.decide(user, asked)
        if not decision.allowed:
            raise asked.refusal(user, decision.reason)

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[RoleName]]:
        """All rules that a user has in a namespace, and the roles that are bound and not there."""
        held = self._held(user, namespace)
        rules = [rule for each in held for rule, _ in each.rules]
        return rules, [name for each in held for name in each.missing]

    def _held(self, user: User, namespace: str) -> list[Held]:
        """All that a user has in a namespace."""
        everywhere = self.roles.held(user, "")
        return [everywhere, self.roles.held(user, namespace)] if namespace else [everywhere]


def aggregated(messages: list[str]) -> str:
    """Several messages as one, each told once."""
    told = list(dict.fromkeys(messages))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _reason(missing: list[RoleName]) -> str:
    """What might have allowed it: the roles that bindings name and that are not there."""
    if not missing:
        return ""
    return f"RBAC: {not_found(missing)}"


def not_found(roles: list[RoleName]) -> str:
    """That roles are not there."""
    return aggregated([f"{kind}.{GROUP} {quote(name)} not found" for kind, name in roles])
