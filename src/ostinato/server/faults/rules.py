"""Rules: faults by description, for clients in any language (`ostinato apiserver --faults FILE`, `POST /faults`).

    rules:
    - match: {verb: create, resource: deployments.apps, namespace: default, name: a, user: operator}
      after: 1          # the first that matches is spared
      times: 2          # the next two are met; 0 is every one
      probability: 0.5  # each with this chance
      fault: {error: 409}

| fault | effect |
|---|---|
| `error: CODE` | this answer in place of the server's; 401, 409, 410, 429, 500, 503 or 504 |
| `lost: true` | the request is processed, and the connection breaks before its answer |
| `refused: true` | the connection breaks before the request is processed |
| `delay: SECONDS` | the request waits |
| `cut: true` | a watch breaks before its next event; `match` names its resource |
| `lag: SECONDS` | the events of a watch are delayed |

Users in `system:masters` are met too. What does not match is not affected. All rules that match apply, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.api.errors import (
    APIError,
    Conflict,
    Expired,
    InternalError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from ostinato.api.status import StatusDetails
from ostinato.server.faults.operation import READS, WRITES, Operation
from ostinato.server.faults.stage import AnswerLost, Proceed
from ostinato.server.request import Answer
from ostinato.server.request.present import error_response
from ostinato.world import World

ERRORS: Final[dict[int, type[APIError]]] = {
    401: Unauthorized,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}
_VERBS: Final = (*READS, *WRITES)


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a rule applies to; what is not set matches everything. `resource`: as `deployments.apps/status`."""

    verb: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""

    def matches(self, operation: Operation) -> bool:
        return (
            self.verb in ("", operation.verb)
            and self.resource in ("", operation.kind)
            and self.namespace in ("", operation.namespace)
            and self.name in ("", operation.name)
            and self.user in ("", operation.user)
        )


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens; exactly one field is set."""

    error: int = 0
    lost: bool = False
    refused: bool = False
    delay: float = 0.0
    cut: bool = False
    lag: float = 0.0

    @property
    def is_of_watches(self) -> bool:
        return self.cut or self.lag > 0


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: Effect
    match: Match = Match()
    after: int = 0
    times: int = 1
    probability: float = 1.0


class RuleList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: list[Rule]


class RulesError(ValueError):
    """A rule that cannot be used; the message names it."""


def parse(value: Any) -> Sequence[Rule]:
    """Read rules from a decoded document; RulesError if one is wrong."""
    try:
        rules = msgspec.convert(value, RuleList).rules
    except msgspec.ValidationError as error:
        raise RulesError(f"faults: {error}") from None
    for number, rule in enumerate(rules):
        if problem := _problem(rule):
            raise RulesError(f"faults: rules[{number}]: {problem}")
    return rules


def _problem(rule: Rule) -> str:
    chosen = [name for name in Effect.__struct_fields__ if getattr(rule.fault, name)]
    if len(chosen) != 1:
        return f"fault: want exactly one of {', '.join(Effect.__struct_fields__)}, got {len(chosen)}"
    if rule.fault.error and rule.fault.error not in ERRORS:
        return f"fault.error: {rule.fault.error} is not one of {', '.join(map(str, ERRORS))}"
    if rule.match.verb and rule.match.verb not in _VERBS:
        return f"match.verb: {rule.match.verb!r} is not one of {', '.join(_VERBS)}"
    if not 0 < rule.probability <= 1:
        return f"probability: {rule.probability} is not between 0 and 1"
    if rule.after < 0 or rule.times < 0 or rule.fault.delay < 0 or rule.fault.lag < 0:
        return "after, times, delay and lag must not be negative"
    return ""


class _Counted:
    """A rule and how often it was met."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.seen = 0
        self.dealt = 0

    @property
    def used_up(self) -> bool:
        return self.rule.times > 0 and self.dealt >= self.rule.times


class RuleDirector:
    """Deals the faults of rules, which can be replaced while the server runs."""

    def __init__(self, world: World, rules: Sequence[Rule] = ()) -> None:
        self._clock = world.clock
        self._rng = world.rng.fork("faults")
        self._rules: list[_Counted] = []
        self.replace(rules)

    def replace(self, rules: Sequence[Rule]) -> None:
        """Use these rules from now on; counts begin anew."""
        self._rules = [_Counted(rule) for rule in rules]

    def report(self) -> list[dict[str, Any]]:
        """Return the rules with how often each was dealt."""
        return [{**msgspec.to_builtins(each.rule), "dealt": each.dealt} for each in self._rules]

    async def request(self, operation: Operation, proceed: Proceed) -> Answer:
        met = [each.fault for each in self._meet(operation, watches=False)]
        for effect in met:
            if effect.delay:
                await self._clock.sleep(effect.delay)
            elif effect.refused:
                raise AnswerLost("refused by a fault rule")
            elif effect.error:
                return _error_answer(effect.error, operation)
        answer = await proceed()
        if any(effect.lost for effect in met):
            raise AnswerLost("answer lost by a fault rule")
        return answer

    async def event(self, operation: Operation, line: bytes) -> bytes:
        for rule in self._meet(operation, watches=True):
            if rule.fault.cut:
                raise AnswerLost("watch cut by a fault rule")
            await self._clock.sleep(rule.fault.lag)
        return b""

    def _meet(self, operation: Operation, *, watches: bool) -> list[Rule]:
        met = []
        for each in self._rules:
            rule = each.rule
            if rule.fault.is_of_watches is not watches or each.used_up or not rule.match.matches(operation):
                continue
            each.seen += 1
            if each.seen > rule.after and (rule.probability == 1 or self._rng.random() < rule.probability):
                each.dealt += 1
                met.append(rule)
        return met


def _error_answer(code: int, operation: Operation) -> Answer:
    details = StatusDetails(
        name=operation.name,
        group=operation.group,
        kind=operation.resource,
        retry_after_seconds=1 if code == 429 else 0,
    )
    return error_response(ERRORS[code]._make(f"{operation}: injected by a fault rule", details))
