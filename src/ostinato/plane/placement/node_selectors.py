"""Node selectors: which nodes are meant, by their labels and their name.

- A selector is a list of terms, of which one must match; a term is a list of requirements, which all must.
- A term without requirements matches nothing, and so does one that cannot be understood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ostinato.api.selectors.labels import Operator, Requirement, Selector, SelectorError
from ostinato.kinds.core_v1 import NodeSelectorRequirement, NodeSelectorTerm

Matches = Callable[[Mapping[str, str], str], bool]
"""`matches(labels, name)` of a node."""

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
    """Whether one of the terms matches a node."""
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
    """The nodes that the terms name, if every one of them names some; None if there may be others."""
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
    if requirement.key != NAME:  # fields that nodes do not have are empty
        return lambda _: (value == "") == wanted
    return lambda name: (name == value) == wanted


def _nothing(labels: Mapping[str, str], name: str) -> bool:  # noqa: ARG001 - that of every matcher
    return False
