"""Decisions and the interface of authorizers."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User


class Decision(NamedTuple):
    """The decision of an authorizer.

    - `allowed`: allow. Otherwise no opinion, unless `denied`: then no further authorizer is evaluated.
    - `reason`: shown in the Forbidden message.
    - `error`: an evaluation error; the decision still holds.
    """

    allowed: bool
    reason: str = ""
    denied: bool = False
    error: str = ""


NO_OPINION = Decision(allowed=False)
ALLOWED = Decision(allowed=True)


class ResolvedRules(NamedTuple):
    """The rules of a user, as SelfSubjectRulesReview reports them."""

    rules: list[Rule]
    incomplete: bool = False  # the user may have further rules
    error: str = ""


class Mode(Protocol):
    """An authorizer of the chain; see `Decision`."""

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision | None:
        """The decision if it needs no I/O, else None."""

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision: ...

    def rules_for(self, user: User, namespace: str) -> ResolvedRules: ...
