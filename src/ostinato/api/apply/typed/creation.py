"""Creations: what the creator of an object owns, in one walk over it.

The same as comparing the new object with the empty one of its kind, putting the changes together, in order, and leaving
out what nobody can own; but nearly every write of an object is its first, so this one checks, collects and orders as it
goes. It knows what well formed objects look like; of any other it says `Unusual`, and the long way finds out why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ostinato.api.apply.fieldpath.elements import SELF, name_element, order
from ostinato.api.apply.fieldpath.field_set import LEAF, FieldSet
from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, MapRules, Rules
from ostinato.api.apply.typed.validate import TypedError, check

Walk = Callable[[Any], FieldSet]  # a value to what is owned with it: itself, and what is below

_SCALARS: dict[str | None, tuple[type, ...]] = {
    None: (),
    "numeric": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "untyped": (str, int, float, bool),
}


class Unusual(Exception):  # noqa: N818 - not an error
    """The value is not what its rules expect, or its items share a key."""


def created(new: dict[str, Any], zero: dict[str, Any], rules: Rules, unowned: FieldSet) -> FieldSet:
    """The fields of a new object that its creator owns, in order.

    `zero` is the empty object of the kind; `unowned` are the paths that nobody owns, but for what may be below them.
    """
    if rules.map is None or rules.map.atomic:
        raise Unusual
    try:
        return _beyond(new, zero, rules.map, unowned)
    except RecursionError:  # the long way needs less of the stack
        raise Unusual from None


def _beyond(new: dict[str, Any], zero: dict[str, Any], rules: MapRules, unowned: FieldSet) -> FieldSet:
    """What a struct has beyond the empty one, which is there already."""
    found: FieldSet = {}
    for name in sorted(new):
        value = new[name]
        element = "f:" + name
        field = rules.field(name)
        if field is None:
            raise Unusual
        if name in zero:
            below = _changed(value, zero[name], field, unowned.get(element, LEAF))
            if below is None:
                continue
        else:
            below = LEAF if type(value) in _SCALARS[field.scalar] else walk_of(field)(value)
        if element in unowned:
            if below is LEAF:
                continue
            if SELF in below:
                raise Unusual
        found[element] = below
    return found


def _changed(value: Any, zero: Any, rules: Rules, unowned: FieldSet) -> FieldSet | None:
    """What is owned below a place that is never absent; None if it is as it was."""
    if type(value) is dict:
        if rules.map is None or rules.map.atomic or type(zero) is not dict:
            raise Unusual
        return _beyond(value, zero, rules.map, unowned) or None
    if type(value) is list:
        if rules.form(None) != "list" or rules.list is None or rules.list.atomic or zero is not None or not value:
            raise Unusual
        return {element: below for element, below in walk_of(rules)(value).items() if element != SELF}
    if type(value) not in _SCALARS[rules.scalar] or type(zero) is not type(value):
        raise Unusual
    return None if value == zero else LEAF


def walk_of(rules: Rules) -> Walk:
    """How to walk over what stands at a place; kept with its rules."""
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
        raise Unusual

    return walk


def _unknown(value: Any) -> FieldSet:
    if value is None:
        return LEAF
    raise Unusual


def _empty(value: Any, kind: type) -> FieldSet:
    """What is no value of a kind, or an empty one."""
    if value is None or type(value) is kind:
        return LEAF
    raise Unusual


def _atomic(rules: Rules) -> Walk:
    def walk_atomic(value: Any) -> FieldSet:
        try:
            check(value, rules, duplicates=True)
        except TypedError:
            raise Unusual from None
        return LEAF

    return walk_atomic


class _Shape:
    """A struct with just these fields: what to do with each."""

    __slots__ = ("all_leaves", "leaves", "steps")

    def __init__(self, rules: MapRules, names: tuple[str, ...]) -> None:
        self.leaves: list[tuple[type, ...]] = []  # the types of values that are leaves, in the order of the names
        self.steps: list[tuple[str, str, tuple[type, ...], Walk]] = []  # name, path element, these types, other values
        for name in names:
            field = rules.field(name)
            if field is None:
                raise Unusual
            self.leaves.append(_SCALARS[field.scalar])
            self.steps.append((name, "f:" + name, _SCALARS[field.scalar], walk_of(field)))
        self.steps.sort()
        # What is owned if all values are leaves, as those of most structs are: the same for all of them.
        self.all_leaves: FieldSet = {SELF: LEAF, **{element: LEAF for _, element, _, _ in self.steps}}


_MOST_SHAPES = 64  # that are kept of a struct


def _struct_walk(rules: MapRules) -> Walk:
    shapes: dict[tuple[str, ...], _Shape] = {}  # by the fields of a struct, as they came

    def walk_struct(value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return _empty(value, dict)
        names = tuple(value)
        shape = shapes.get(names)
        if shape is None:
            shape = _Shape(rules, names)
            if len(shapes) < _MOST_SHAPES and all(map(rules.declares, names)):
                shapes[names] = shape
        for inner, leaves in zip(value.values(), shape.leaves, strict=True):
            if type(inner) not in leaves:
                break
        else:
            return shape.all_leaves
        found: FieldSet = {SELF: LEAF}
        for name, element, leaves, walk in shape.steps:
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
            raise Unusual
        leaves, walk = _SCALARS[entries.scalar], walk_of(entries)
        found: FieldSet = {SELF: LEAF}
        for name in sorted(value):
            inner = value[name]
            found["f:" + name] = LEAF if type(inner) in leaves else walk(inner)
        return found

    return walk_map


def _list_walk(rules: ListRules) -> Walk:
    of_items: list[Walk] = []  # once an item was met: rules of lists may contain themselves
    key = rules.keys[0] if len(rules.keys) == 1 else None

    def walk_list(value: Any) -> FieldSet:
        if type(value) is not list or not value:
            return _empty(value, list)
        if not of_items:
            of_items.append(walk_of(rules.items))
        walk = of_items[0]
        found: FieldSet = {SELF: LEAF}
        for element, item in _in_order(value, rules, key):
            if element in found:  # items that share a key are owned together
                raise Unusual
            found[element] = walk(item)
        return found

    return walk_list


def _in_order(items: list[Any], rules: ListRules, key: str | None) -> list[tuple[str, Any]]:
    """The items with their path elements, in the order of these."""
    if key is not None:  # as nearly all lists have it: by their names, if all have one
        named = [(item[key], item) for item in items if type(item) is dict and type(item.get(key)) is str]
        if len(named) == len(items):
            if len(named) > 1:
                named.sort(key=_name)
            return [(name_element(key, name), item) for name, item in named]
    try:
        found = [(rules.element(item), item) for item in items]
    except ItemError:
        raise Unusual from None
    found.sort(key=lambda pair: order(pair[0]))
    return found


def _name(pair: tuple[str, Any]) -> str:
    return pair[0]
