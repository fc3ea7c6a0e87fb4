"""Fast path for creations: the field set that the creator of an object owns, in one traversal.

The result equals `compare` with the zero object of the kind, plus union, ordering and removal of the unowned fields.
Creations are the most frequent writes, so validation, collection and ordering happen in the same traversal. For objects
that are not well-formed it raises `FastPathUnsupported`, and the caller takes the general path, which reports errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ostinato.api.apply.fieldpath.elements import SELF, name_element, order
from ostinato.api.apply.fieldpath.field_set import LEAF, FieldSet
from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, MapRules, Rules
from ostinato.api.apply.typed.validate import TypedError, validate
from ostinato.api.equality import equal

Walk = Callable[[Any], FieldSet]  # from a value to the fields owned with it: itself and its descendants

_SCALARS: dict[str | None, tuple[type, ...]] = {
    None: (),
    "numeric": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "untyped": (str, int, float, bool),
}


_MOST_SHAPES = 64  # cached per struct


class FastPathUnsupported(Exception):  # noqa: N818 - not an error
    """The value violates its rules, or a list has items with the same key."""


def created_fields(new: dict[str, Any], zero: dict[str, Any], rules: Rules, unowned: FieldSet) -> FieldSet:
    """Return the ordered field set that the creator of an object owns.

    - `zero`: the zero object of the kind.
    - `unowned`: paths that are never owned; their descendants may be.
    """
    if rules.map is None or rules.map.atomic:
        raise FastPathUnsupported
    try:
        return _beyond(new, zero, rules.map, unowned)
    except RecursionError:  # the general path needs fewer frames
        raise FastPathUnsupported from None


def _beyond(new: dict[str, Any], zero: dict[str, Any], rules: MapRules, unowned: FieldSet) -> FieldSet:
    """Return the fields of a struct that differ from the zero struct."""
    found: FieldSet = {}
    for name, element, leaves, field, walk in _shape(rules, tuple(new)).steps:
        value = new[name]
        if name in zero:
            below = _changed(value, zero[name], field, unowned.get(element, LEAF))
            if below is None:
                continue
        else:
            below = LEAF if type(value) in leaves else walk(value)
        if element in unowned:
            if below is LEAF:
                continue
            if SELF in below:
                raise FastPathUnsupported
        found[element] = below
    return found


def _changed(value: Any, zero: Any, rules: Rules, unowned: FieldSet) -> FieldSet | None:
    """Return the fields below a field of the zero object; None if unchanged."""
    if type(value) is dict:
        if rules.map is None or type(zero) is not dict:
            raise FastPathUnsupported
        if rules.map.atomic:
            return None if equal(value, zero) else walker_of(rules)(value)
        return _beyond(value, zero, rules.map, unowned) or None
    if type(value) is list:
        if rules.form(None) != "list" or rules.list is None or rules.list.atomic or zero is not None or not value:
            raise FastPathUnsupported
        return {element: below for element, below in walker_of(rules)(value).items() if element != SELF}
    if value is None and zero is None:
        return None
    is_scalar = type(value) in _SCALARS[rules.scalar] and rules.map is None and rules.list is None
    if not is_scalar or (zero is not None and type(zero) is not type(value)):
        raise FastPathUnsupported
    return None if value == zero else LEAF


def walker_of(rules: Rules) -> Walk:
    """Return the traversal function for values with these rules; cached in the rules."""
    if rules.walk is None:
        rules.walk = _walk(rules)
    return rules.walk


def _walk(rules: Rules) -> Walk:
    scalars = _SCALARS[rules.scalar]
    walk_map = _unknown if rules.map is None else _atomic(rules) if rules.map.atomic else _map_walk(rules.map)
    walk_list = _unknown if rules.list is None else _atomic(rules) if rules.list.atomic else _list_walk(rules.list)
    if rules.list is None and not scalars:
        return walk_map
    if rules.map is None and not scalars:
        return walk_list

    def walk(value: Any) -> FieldSet:
        kind = type(value)
        if kind is dict:
            return walk_map(value)
        if kind is list:
            return walk_list(value)
        if value is None or kind in scalars:
            return LEAF
        raise FastPathUnsupported

    return walk


def _unknown(value: Any) -> FieldSet:
    if value is None:
        return LEAF
    raise FastPathUnsupported


def _empty(value: Any, kind: type) -> FieldSet:
    """Return the fields of null or an empty value of a type."""
    if value is None or type(value) is kind:
        return LEAF
    raise FastPathUnsupported


def _atomic(rules: Rules) -> Walk:
    def walk_atomic(value: Any) -> FieldSet:
        try:
            validate(value, rules, duplicates=True)
        except TypedError:
            raise FastPathUnsupported from None
        return LEAF

    return walk_atomic


class _Shape:
    """The traversal of structs with exactly these fields."""

    __slots__ = ("all_leaves", "leaves", "steps")

    def __init__(self, rules: MapRules, names: tuple[str, ...]) -> None:
        self.leaves: list[tuple[type, ...]] = []  # types of leaf values, in the order of the names
        self.steps: list[tuple[str, str, tuple[type, ...], Rules, Walk]] = []  # in the order of the result
        for name in names:
            field = rules.field(name)
            if field is None:
                raise FastPathUnsupported
            self.leaves.append(_SCALARS[field.scalar])
            self.steps.append((name, "f:" + name, _SCALARS[field.scalar], field, walker_of(field)))
        self.steps.sort(key=_name)
        # The result if all values are leaves, as in most structs; shared.
        self.all_leaves: FieldSet = {SELF: LEAF, **{element: LEAF for _, element, *_ in self.steps}}


def _shape(rules: MapRules, names: tuple[str, ...]) -> _Shape:
    """Return the shape of structs with these fields, in this order; cached in the rules."""
    found: _Shape | None = rules.shapes.get(names)
    if found is None:
        found = _Shape(rules, names)
        if len(rules.shapes) < _MOST_SHAPES and all(map(rules.declares, names)):
            rules.shapes[names] = found
    return found


def _struct_walk(rules: MapRules) -> Walk:
    def walk_struct(value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return _empty(value, dict)
        shape = _shape(rules, tuple(value))
        for inner, leaves in zip(value.values(), shape.leaves, strict=True):
            if type(inner) not in leaves:
                break
        else:
            return shape.all_leaves
        found: FieldSet = {SELF: LEAF}
        for name, element, leaves, _, walk in shape.steps:
            inner = value[name]
            found[element] = LEAF if type(inner) in leaves else walk(inner)
        return found

    return walk_struct


def _map_walk(rules: MapRules) -> Walk:
    if rules.struct:
        return _struct_walk(rules)

    def walk_map(value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return _empty(value, dict)
        entries = rules.values
        if entries is None:
            raise FastPathUnsupported
        leaves, walk = _SCALARS[entries.scalar], walker_of(entries)
        found: FieldSet = {SELF: LEAF}
        for name in sorted(value):
            inner = value[name]
            found["f:" + name] = LEAF if type(inner) in leaves else walk(inner)
        return found

    return walk_map


def _list_walk(rules: ListRules) -> Walk:
    of_items: list[Walk] = []  # set at the first item, as rules may be recursive
    key = rules.keys[0] if len(rules.keys) == 1 else None

    def walk_list(value: Any) -> FieldSet:
        if type(value) is not list or not value:
            return _empty(value, list)
        if not of_items:
            of_items.append(walker_of(rules.items))
        walk = of_items[0]
        found: FieldSet = {SELF: LEAF}
        for element, item in _in_order(value, rules, key):
            if element in found:  # items with the same key are owned together
                raise FastPathUnsupported
            found[element] = walk(item)
        return found

    return walk_list


def _in_order(items: list[Any], rules: ListRules, key: str | None) -> list[tuple[str, Any]]:
    """Return the items with their path elements, sorted by these."""
    if key is not None:  # the usual case: one key, a string in all items
        named = [(item[key], item) for item in items if type(item) is dict and type(item.get(key)) is str]
        if len(named) == len(items):
            if len(named) > 1:
                named.sort(key=_name)
            return [(name_element(key, name), item) for name, item in named]
    try:
        found = [(rules.element(item), item) for item in items]
    except ItemError:
        raise FastPathUnsupported from None
    found.sort(key=lambda pair: order(pair[0]))
    return found


def _name(named: tuple[str, *tuple[Any, ...]]) -> str:
    return named[0]
