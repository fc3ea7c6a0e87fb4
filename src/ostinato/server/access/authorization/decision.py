"""What an authorizer says to a question."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User


class Decision(NamedTuple):
    """Whether a user may do something.

    - `allowed`: yes. Otherwise the authorizer has no opinion, unless it `denied`: then no other one is asked.
    - `reason`: why, for whoever reads the refusal.
    - `error`: what went wrong on the way; the decision holds nevertheless.
    """

    allowed: bool
    reason: str = ""
    denied: bool = False
    error: str = ""


NO_OPINION = Decision(allowed=False)
ALLOWED = Decision(allowed=True)


class ResolvedRules(NamedTuple):
    """What an authorizer can say of all rights of a user at once."""

    rules: list[Rule]
    incomplete: bool = False  # the user may have other rights, too
    error: str = ""


class Mode(Protocol):
    """An authorizer of the chain."""

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision | None:
        """The decision, if it can be made without waiting for anyone."""

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision: ...

    def rules_for(self, user: User, namespace: str) -> ResolvedRules: ...
