"""Field sets of typed values, and the changes from one value to another: `ToFieldSet` and `Compare`.

Values must be valid (`validate`); one of a type that the rules do not allow is treated as a leaf. Recursion takes one
frame per level, so that deeply nested values are safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ostinato.api.apply.fieldpath.elements import SELF
from ostinato.api.apply.fieldpath.field_set import LEAF, FieldSet, Filter
from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, MapRules, Rules
from ostinato.api.apply.typed.validate import TypedError
from ostinato.api.apply.typed.values import ABSENT, NESTED
from ostinato.api.equality import equal


def fields_of(value: Any, rules: Rules) -> FieldSet:
    """Return the field set of a configuration: its leaves, the items of its lists and the entries of its maps."""
    found = _fields(value, rules)
    return found if found is not None else {}


def _fields(value: Any, rules: Rules) -> FieldSet | None:
    """Return the fields at and below a node; None if there are none. The caller adds the "." of the node itself."""
    form = rules.form(value)
    if form == "map":
        assert rules.map is not None
        if rules.map.atomic:
            return LEAF
        if not isinstance(value, dict):
            return None
        found: FieldSet = {}
        for name, inner in value.items():
            if inner is not None and not isinstance(inner, NESTED):
                found["f:" + name] = LEAF
                continue
            field = rules.map.field(name)
            below = _fields(inner, field) if field is not None else LEAF
            if inner is None or inner == {} or not rules.map.declares(name):
                below = {SELF: LEAF, **below} if below else LEAF
            if below is not None:
                found["f:" + name] = below
        return found or None
    if form == "list":
        assert rules.list is not None
        if rules.list.atomic:
            return LEAF
        if not isinstance(value, list):
            return None
        found = {}
        for element, item in _by_element(value, rules.list).items():
            below = LEAF if isinstance(item, tuple) else _fields(item, rules.list.items)
            found[element] = {SELF: LEAF, **below} if below else LEAF
        return found or None
    return LEAF


def element_of(item: Any, rules: ListRules) -> str:
    """Return the path element of an item. Raises TypedError if the list cannot contain it."""
    try:
        return rules.element(item)
    except ItemError as error:
        raise TypedError([str(error)]) from None


def everything(value: Any, rules: Rules | None) -> FieldSet:
    """Return a node and all its descendants: the fields that are added or removed with a value.

    The result is a child of a field set, not a field set.
    """
    if rules is None:
        return LEAF
    if isinstance(value, dict):
        if not value or rules.map is None or rules.map.atomic:
            return LEAF
        found: FieldSet = {SELF: LEAF}
        for name, inner in value.items():
            found["f:" + name] = everything(inner, rules.map.field(name)) if isinstance(inner, NESTED) else LEAF
        return found
    if isinstance(value, list):
        if not value or rules.list is None or rules.list.atomic:
            return LEAF
        found = {SELF: LEAF}
        for element, item in _by_element(value, rules.list).items():
            found[element] = everything(item, rules.list.items)
        return found
    return LEAF


class Comparison(NamedTuple):
    """The changed fields, in three disjoint sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    def filtered(self, allowed: Filter | None) -> Comparison:
        return self if allowed is None else Comparison(*[allowed(fields) for fields in self])


def compare(old: Any, new: Any, rules: Rules) -> Comparison:
    """Return the changes from an old value to a new one."""
    found = Comparison({}, {}, {})
    if not equal(old, new):
        _compare(old, new, rules, found)
    return found


def _compare(old: Any, new: Any, rules: Rules, found: Comparison) -> bool:
    """Add the differences below a node to `found`; return whether the node itself changed. The values differ."""
    leaf = False
    before_form, after_form = rules.form(old), rules.form(new)
    forms = (before_form,) if before_form == after_form else (before_form, after_form)
    for form in forms:
        if form == "map":
            assert rules.map is not None
            one = old if isinstance(old, dict) else {}
            other = new if isinstance(new, dict) else {}
            leaf_here = rules.map.atomic or not (one or other)
            pairs = _pairs_of_maps(one, other, rules.map)
        elif form == "list":
            assert rules.list is not None
            items = old if isinstance(old, list) else []
            others = new if isinstance(new, list) else []
            leaf_here = rules.list.atomic or not (items or others)
            pairs = _pairs_of_lists(items, others, rules.list)
        else:
            leaf_here, pairs = True, iter(())
        if leaf_here:  # also if one is empty and the other null
            leaf = True
            continue
        for element, before, after, inner in pairs:
            if before is ABSENT:
                found.added[element] = everything(after, inner)
            elif after is ABSENT:
                found.removed[element] = everything(before, inner)
            elif isinstance(before, tuple) or isinstance(after, tuple):
                _compare_duplicates(element, before, after, inner, found)
            elif not (isinstance(before, NESTED) or isinstance(after, NESTED)):
                if not equal(before, after):
                    found.modified[element] = LEAF
            elif not equal(before, after):
                below = Comparison({}, {}, {})
                changed = inner is None or _compare(before, after, inner, below)
                if changed:
                    found.modified[element] = {SELF: LEAF, **below.modified} if below.modified else LEAF
                elif below.modified:
                    found.modified[element] = below.modified
                if below.removed:
                    found.removed[element] = below.removed
                if below.added:
                    found.added[element] = below.added
    return leaf


_Pair = tuple[str, Any, Any, Rules | None]  # path element, before, after, rules; items with the same key as a tuple


def _pairs_of_maps(old: dict[str, Any], new: dict[str, Any], rules: MapRules) -> Iterator[_Pair]:
    for name, value in old.items():
        after = new.get(name, ABSENT)
        if after is not value and not (type(value) is str and value == after):  # most fields of a write are the same
            yield "f:" + name, value, after, rules.field(name)
    for name, value in new.items():
        if name not in old:
            yield "f:" + name, ABSENT, value, rules.field(name)


def _pairs_of_lists(old: list[Any], new: list[Any], rules: ListRules) -> Iterator[_Pair]:
    before, after = _by_element(old, rules), _by_element(new, rules)
    for element, item in before.items():
        yield element, item, after.get(element, ABSENT), rules.items
    for element, item in after.items():
        if element not in before:
            yield element, ABSENT, item, rules.items


def _by_element(items: list[Any], rules: ListRules) -> dict[str, Any]:
    """Return the items by path element; items with the same element as a tuple."""
    found: dict[str, Any] = {}
    for item in items:
        element = element_of(item, rules)
        if element not in found:
            found[element] = item
        elif isinstance(found[element], tuple):
            found[element] += (item,)
        else:
            found[element] = (found[element], item)
    return found


def _compare_duplicates(element: str, before: Any, after: Any, rules: Rules | None, found: Comparison) -> None:
    """Compare items with the same key, which are owned together as one leaf."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if not equal(list(before), list(after)):
            found.modified[element] = LEAF
    elif isinstance(before, tuple):
        found.added[element] = everything(after, rules)
        found.removed[element] = LEAF
    else:
        found.removed[element] = everything(before, rules)
        found.added[element] = LEAF
