"""Match conditions of authorization webhooks: CEL expressions over the SubjectAccessReview spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.cel.check.declarations import Declaration, message, simple
from ostinato.cel.expression import CompileError, Expression, ProgramError
from ostinato.cel.types import BOOL, STRING, list_of, map_of
from ostinato.cel.values import CelError
from ostinato.server.access.messages import aggregated

_COST: Final = 1_000_000  # cost limit of one expression
_TEXT: Final = simple(STRING)
_TEXTS: Final = simple(list_of(STRING))


def _fields(*named: str, **others: Declaration) -> list[tuple[str, Declaration]]:
    return [*((name, _TEXT) for name in named), *others.items()]


def _selector(name: str) -> Declaration:
    requirement = message("kubernetes.SelectorRequirement", _fields("key", "operator", values=_TEXTS))
    requirements = simple(list_of(requirement.type))
    requirements.items = requirement
    return message(f"kubernetes.{name}SelectorAttributes", _fields("rawSelector", requirements=requirements))


_RESOURCE: Final = message(
    "kubernetes.ResourceAttributes",
    _fields(
        *("namespace", "verb", "group", "version", "resource", "subresource", "name"),
        fieldSelector=_selector("Field"),
        labelSelector=_selector("Label"),
    ),
)
_REQUEST: Final = message(
    "kubernetes.SubjectAccessReviewSpec",
    _fields(
        *("user", "uid"),
        resourceAttributes=_RESOURCE,
        nonResourceAttributes=message("kubernetes.NonResourceAttributes", _fields("path", "verb")),
        groups=_TEXTS,
        extra=simple(map_of(STRING, list_of(STRING))),
    ),
)


class ConditionError(Exception):
    """Evaluation of the match conditions failed."""


def fault_of(text: str) -> str:
    """The error of an expression, "" if it is valid."""
    try:
        expression = Expression(text, {"request": _REQUEST.type})
    except CompileError as error:
        return f"compilation failed: {error}"
    except ProgramError as error:
        return f"program instantiation failed: {error}"
    return "" if expression.type.same(BOOL) else f"must evaluate to bool but got {expression.type}"


class Conditions:
    def __init__(self, texts: Sequence[str]) -> None:
        self._expressions = [Expression(text, {"request": _REQUEST.type}) for text in texts]

    def hold(self, spec: dict[str, Any]) -> bool:
        """Whether all conditions match. A false condition decides even if others fail; otherwise ConditionError if one
        fails.
        """
        faults: list[str] = []
        for expression in self._expressions:
            try:
                value, _ = expression.evaluate([spec], _COST)
            except CelError as error:
                message = f"cel evaluation error: expression '{expression.text}' resulted in error: {error}"
                faults.append(message)
                continue
            if value is False:
                return False
        if faults:
            raise ConditionError(aggregated(faults))
        return True
