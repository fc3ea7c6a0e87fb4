"""Fast path of `validate`: whether a value is valid, without reporting why not.

- Rules are compiled to functions, which are cached in the rules.
- True: the value is valid, and no list has items with the same key.
- False: `validate` decides, and reports the errors. This is rare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, MapRules, Rules

Validator = Callable[[Any], bool]

# Types of valid scalars by the scalar type of the rules; null is always valid.
SCALARS: Final[dict[str | None, frozenset[type]]] = {
    None: frozenset({type(None)}),
    "numeric": frozenset({type(None), int, float}),
    "string": frozenset({type(None), str}),
    "boolean": frozenset({type(None), bool}),
    "untyped": frozenset({type(None), str, int, float, bool}),
}


def fast_validator(rules: Rules) -> Validator:
    """Return the function that tells whether a value is valid; cached in the rules."""
    if rules.fast_validator is None:
        rules.fast_validator = _make_validator(rules)
    return rules.fast_validator


def _make_validator(rules: Rules) -> Validator:
    scalars = SCALARS[rules.scalar]
    is_valid_map = _never if rules.map is None else _map_validator(rules.map)
    is_valid_list = _never if rules.list is None else _list_validator(rules.list)

    def fits(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            return is_valid_map(value)
        if kind is list:
            return is_valid_list(value)
        return kind in scalars

    return fits


def _never(_value: Any) -> bool:
    return False


def _map_validator(rules: MapRules) -> Validator:
    known: dict[str, tuple[frozenset[type], Rules]] = {}  # declared fields, filled on first use

    def step(name: str) -> tuple[frozenset[type], Rules] | None:
        field = rules.field(name)
        if field is None:
            return None
        found = (SCALARS[field.scalar], field)
        if rules.declares(name):
            known[name] = found
        return found

    def is_valid_map(value: Any) -> bool:
        for name, inner in value.items():
            found = known.get(name) or step(name)
            if found is None:
                return False
            if type(inner) not in found[0] and not fast_validator(found[1])(inner):
                return False
        return True

    return is_valid_map


def _list_validator(rules: ListRules) -> Validator:
    key = rules.keys[0] if len(rules.keys) == 1 else None

    def is_valid_list(value: Any) -> bool:
        if not rules.atomic and not _are_apart(value, rules, key):
            return False
        fits = fast_validator(rules.items)
        for item in value:  # noqa: SIM110 - a loop is faster than a generator
            if not fits(item):
                return False
        return True

    return is_valid_list


def _are_apart(items: list[Any], rules: ListRules, key: str | None) -> bool:
    """Whether the items of a list have distinct path elements."""
    if key is not None:  # the usual case: one key, a string in all items
        names = {item[key] for item in items if type(item) is dict and type(item.get(key)) is str}
        if len(names) == len(items):
            return True
    try:
        return len(set(map(rules.element, items))) == len(items)
    except ItemError:
        return False
