"""Fitting: whether a value is what its merge rules expect, yes or no, as fast as can be.

Rules become functions, which are kept with them. True is sure: `check` has nothing against the value, not even that
items of a list share a key. What is wrong with any other is for `check` to say, which nearly no write needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, MapRules, Rules

Fits = Callable[[Any], bool]

# The types of values that need no second look, by the scalar that rules allow: those, and null.
SCALARS: Final[dict[str | None, frozenset[type]]] = {
    None: frozenset({type(None)}),
    "numeric": frozenset({type(None), int, float}),
    "string": frozenset({type(None), str}),
    "boolean": frozenset({type(None), bool}),
    "untyped": frozenset({type(None), str, int, float, bool}),
}


def fits_of(rules: Rules) -> Fits:
    """What says whether a value fits; kept with its rules."""
    if rules.fits is None:
        rules.fits = _fits(rules)
    return rules.fits


def _fits(rules: Rules) -> Fits:
    scalars = SCALARS[rules.scalar]
    fits_map = _never if rules.map is None else _map_fits(rules.map)
    fits_list = _never if rules.list is None else _list_fits(rules.list)

    def fits(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            return fits_map(value)
        if kind is list:
            return fits_list(value)
        return kind in scalars

    return fits


def _never(_value: Any) -> bool:
    return False


def _map_fits(rules: MapRules) -> Fits:
    known: dict[str, tuple[frozenset[type], Rules]] = {}  # of the fields that the schema names, as they were met

    def step(name: str) -> tuple[frozenset[type], Rules] | None:
        field = rules.field(name)
        if field is None:
            return None
        found = (SCALARS[field.scalar], field)
        if rules.declares(name):
            known[name] = found
        return found

    def fits_map(value: Any) -> bool:
        for name, inner in value.items():
            found = known.get(name) or step(name)
            if found is None:
                return False
            if type(inner) not in found[0] and not fits_of(found[1])(inner):
                return False
        return True

    return fits_map


def _list_fits(rules: ListRules) -> Fits:
    key = rules.keys[0] if len(rules.keys) == 1 else None

    def fits_list(value: Any) -> bool:
        if not rules.atomic and not _are_apart(value, rules, key):
            return False
        fits = fits_of(rules.items)
        for item in value:  # noqa: SIM110 - a loop is faster than a generator
            if not fits(item):
                return False
        return True

    return fits_list


def _are_apart(items: list[Any], rules: ListRules, key: str | None) -> bool:
    """Whether the items of a list can be told from each other."""
    if key is not None:  # as nearly all lists have it: by their names, if all have one
        names = {item[key] for item in items if type(item) is dict and type(item.get(key)) is str}
        if len(names) == len(items):
            return True
    try:
        return len(set(map(rules.element, items))) == len(items)
    except ItemError:
        return False
