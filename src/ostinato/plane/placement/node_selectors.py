"""Node selectors.

- A selector matches if one of its terms matches; a term matches if all of its requirements match.
- An empty or invalid term matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ostinato.api.selectors.labels import Operator, Requirement, Selector, SelectorError
from ostinato.kinds.core_v1 import NodeSelectorRequirement, NodeSelectorTerm

Matches = Callable[[Mapping[str, str], str], bool]
"""Predicate on labels and name of a node."""

NAME: Final = "metadata.name"
_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


def matcher(terms: Iterable[NodeSelectorTerm]) -> Matches:
    """Compile the terms of a node selector."""
    compiled = [term_matcher(term) for term in terms]
    return lambda labels, name: any(matches(labels, name) for matches in compiled)


def term_matcher(term: NodeSelectorTerm) -> Matches:
    if not term.match_expressions and not term.match_fields:
        return _nothing
    try:
        selector = Selector(
            [Requirement.checked(each.key, _OPERATORS[each.operator], each.values) for each in term.match_expressions]
        )
        fields = [_field(each) for each in term.match_fields]
    except (SelectorError, KeyError, ValueError):
        return _nothing
    return lambda labels, name: selector.matches(labels) and all(matches(name) for matches in fields)


def names(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the node names that the terms are restricted to; None if one of them is not."""
    if not terms:
        return None
    found: set[str] = set()
    for term in terms:
        named: set[str] | None = None
        for field in term.match_fields:
            if field.key == NAME and field.operator == "In":
                named = set(field.values) if named is None else named & set(field.values)
        if named is None:
            return None
        found |= named
    return frozenset(found)


def _field(requirement: NodeSelectorRequirement) -> Callable[[str], bool]:
    (value,) = requirement.values
    if requirement.operator not in ("In", "NotIn"):
        raise ValueError(requirement.operator)
    wanted = requirement.operator == "In"
    if requirement.key != NAME:  # unknown fields are empty
        return lambda _: (value == "") == wanted
    return lambda name: (name == value) == wanted


def _nothing(labels: Mapping[str, str], name: str) -> bool:  # noqa: ARG001 - signature of Matches
    return False
