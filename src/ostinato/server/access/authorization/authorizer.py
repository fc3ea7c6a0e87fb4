"""Union authorizer: evaluates the modes in order until one decides.

Members of `system:masters` are always allowed. A mode allows, denies, or has no opinion; a request that no mode allows
is forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import ALLOWED, NO_OPINION, Decision, Mode, ResolvedRules
from ostinato.server.access.authorization.rbac import Rbac
from ostinato.server.access.authorization.roles import Roles
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.access.messages import aggregated
from ostinato.server.request import User

MASTERS = "system:masters"


class AuthorizationFailed(Exception):  # noqa: N818
    """No mode allowed the request, and at least one failed."""


class Authorizer:
    """The chain of modes.

    - `modes`: may be replaced while the server runs; a request is decided by those it started with.
    - `rbac`: resolves rules for escalation checks, also if RBAC is not one of the modes.
    """

    def __init__(self, rbac: Rbac, modes: Sequence[Mode]) -> None:
        self._rbac = rbac
        self.modes: Sequence[Mode] = modes

    @property
    def roles(self) -> Roles:
        return self._rbac.roles

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision | None:
        """The decision if it needs no I/O, else None."""
        if MASTERS in user.groups:
            return ALLOWED
        undecided: list[Decision] | None = None
        for mode in self.modes:
            decision = mode.decide_now(user, attributes)
            if decision is None or decision.allowed or decision.denied:
                return decision
            if decision is not NO_OPINION:
                undecided = [*(undecided or ()), decision]
        return NO_OPINION if undecided is None else _together(undecided)

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        if MASTERS in user.groups:
            return ALLOWED
        undecided: list[Decision] = []
        for mode in self.modes:
            decision = mode.decide_now(user, attributes) or await mode.decide(user, attributes)
            if decision.allowed or decision.denied:
                return decision
            undecided.append(decision)
        return _together(undecided)

    async def check(self, user: User, attributes: RequestAttributes) -> None:
        """Raise Forbidden unless the request is allowed; AuthorizationFailed if a mode failed."""
        refuse(user, attributes, await self.decide(user, attributes))

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Resolve the rules of a user in a namespace, as far as the modes can enumerate them."""
        all_ = [mode.rules_for(user, namespace) for mode in self.modes]
        errors = [each.error for each in all_ if each.error]
        return ResolvedRules(
            [rule for each in all_ for rule in each.rules],
            any(each.incomplete for each in all_),
            aggregated(errors) if errors else "",
        )

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[tuple[str, str]]]:
        """The RBAC rules of a user in a namespace, and the bound roles that do not exist."""
        return self._rbac.rules(user, namespace)


def refuse(user: User, attributes: RequestAttributes, decision: Decision) -> None:
    """Raise the error for a decision that does not allow the request."""
    if decision.allowed:
        return
    if decision.error:
        raise AuthorizationFailed(decision.error)
    raise attributes.refusal(user, decision.reason)


def _together(undecided: list[Decision]) -> Decision:
    """Combine the decisions of modes without an opinion."""
    errors = [each.error for each in undecided if each.error]
    reason = "\n".join(each.reason for each in undecided if each.reason)
    return Decision(allowed=False, reason=reason, error=aggregated(errors) if errors else "")
