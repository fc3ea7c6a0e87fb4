"""The authorizer of a server: a chain of modes, asked in order until one of them decides.

Members of `system:masters` may do everything, whatever the modes are. A mode allows, denies, or has no opinion; what no
mode allows is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import ALLOWED, NO_OPINION, Decision, Mode, ResolvedRules
from ostinato.server.access.authorization.rbac import Rbac, aggregated
from ostinato.server.access.authorization.roles import Roles
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

MASTERS = "system:masters"


class AuthorizationFailed(Exception):  # noqa: N818
    """No mode allowed the request, and at least one could not be asked."""


class Authorizer:
    """`modes` may be replaced while the server runs: a request is decided by those it began with.

    `rbac`: whose roles say what may be granted, whether it is one of the modes or not.
    """

    def __init__(self, rbac: Rbac, modes: Sequence[Mode]) -> None:
        self._rbac = rbac
        self.modes: Sequence[Mode] = modes

    @property
    def roles(self) -> Roles:
        return self._rbac.roles

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision | None:
        """The decision, if it can be made without waiting for anyone."""
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
        """Raise Forbidden if the user may not; AuthorizationFailed if that cannot be determined."""
        refuse(user, attributes, await self.decide(user, attributes))

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """What can be enumerated of a user's rights in a namespace."""
        all_ = [mode.rules_for(user, namespace) for mode in self.modes]
        errors = [each.error for each in all_ if each.error]
        return ResolvedRules(
            [rule for each in all_ for rule in each.rules],
            any(each.incomplete for each in all_),
            aggregated(errors) if errors else "",
        )

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[tuple[str, str]]]:
        """The rules that roles give to a user in a namespace, and the roles that are bound but do not exist."""
        return self._rbac.rules(user, namespace)


def refuse(user: User, attributes: RequestAttributes, decision: Decision) -> None:
    """Raise what a decision that does not allow means for a request."""
    if decision.allowed:
        return
    if decision.error:
        raise AuthorizationFailed(decision.error)
    raise attributes.refusal(user, decision.reason)


def _together(undecided: list[Decision]) -> Decision:
    """What modes say of which none decides."""
    errors = [each.error for each in undecided if each.error]
    reason = "\n".join(each.reason for each in undecided if each.reason)
    return Decision(allowed=False, reason=reason, error=aggregated(errors) if errors else "")
