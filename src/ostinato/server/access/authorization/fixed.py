"""AlwaysAllow and AlwaysDeny authorizers."""

from __future__ import annotations

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import ALLOWED, Decision, ResolvedRules
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

_EVERYTHING = [
    Rule({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
    Rule({"verbs": ["*"], "nonResourceURLs": ["*"]}),
]
_DENIED = Decision(allowed=False, reason="Everything is forbidden.")


class AlwaysAllow:
    """AlwaysAllow mode."""

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision:
        return ALLOWED

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        return ALLOWED

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        return ResolvedRules(_EVERYTHING)


class AlwaysDeny:
    """AlwaysDeny mode. As in kube-apiserver it has no opinion: a later mode may still allow."""

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision:
        return _DENIED

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        return _DENIED

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        return ResolvedRules([])
