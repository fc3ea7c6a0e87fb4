"""Field sets: sets of field paths, in the form of `fieldsV1`.

- A set is a nested dict of path elements: `{"f:spec": {"f:replicas": {}}}`.
- A child without children is a member; a child with children is a member if it also has ".":
  `{"f:labels": {".": {}, "f:app": {}}}` contains the map and one entry of it.
- The root is never a member: `{}` is the empty set.
- A set is its own JSON: decoding and encoding are a check without conversion.
- Sets are immutable; results share structure with the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ostinato.api.apply.fieldpath.elements import SELF, ElementError, canonical, order, sorts_as_text, text

FieldSet = dict[str, Any]  # path element -> its children, a FieldSet (mypy has no recursive alias of dict)
Path = tuple[str, ...]  # path elements from the root
Filter = Callable[[FieldSet], FieldSet]  # the subset that may be owned through an endpoint

LEAF: FieldSet = {}  # shared by all leaves; never modified

_MAX_DEPTH = 500  # as the JSON decoder


class FieldSetError(ValueError):
    """A `fieldsV1` that is not a field set."""


# Encoding


def parse(fields: Any) -> FieldSet:
    """Validate a `fieldsV1` and return it in canonical spelling and order; the same dict if it is canonical."""
    if fields is None:
        return {}
    if _is_usual(fields, _MAX_DEPTH):
        return fields  # type: ignore[no-any-return]
    found = _parse(fields, _MAX_DEPTH)
    return found if found is fields else ordered(found)


def _is_usual(fields: Any, depth: int) -> bool:
    """Fast check whether a set is canonical. False negatives are possible."""
    if type(fields) is not dict or depth == 0:
        return False
    for element, below in fields.items():
        if element[:2] != "f:" and not sorts_as_text(element):
            return False
        if below:
            if element == SELF or not _is_usual(below, depth - 1):
                return False
        elif type(below) is not dict or (element == SELF and len(fields) == 1):
            return False
    names = list(fields)
    return names == sorted(names)


def _parse(fields: Any, depth: int) -> FieldSet:
    """Return the canonical children of a node, "." included; the same dict if they are canonical."""
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise FieldSetError(f"expected an object of field paths, got {type(fields).__name__}")
    if depth == 0:
        raise FieldSetError("exceeded max depth")
    same = True
    named = True  # whether all elements are field names, which sort as text
    found: FieldSet = {}
    for element, below in fields.items():
        spelling = element
        if element == SELF:
            found[SELF] = LEAF
            same = same and below == LEAF
            continue
        if element[:2] != "f:":
            named = False
            try:
                known = canonical(element)
            except ElementError as error:
                raise FieldSetError(f"parsing key as path element: {error}") from None
            if known is None:
                same = False
                continue
            spelling = known
            same = same and spelling == element
        children = below if below == LEAF else _parse(below, depth - 1)
        same = same and children is below
        found[spelling] = _union(found[spelling], children) if spelling in found else children
    if SELF in found and len(found) == 1:
        return LEAF
    if same:
        names = list(fields)
        if names == sorted(names, key=None if named else order):
            return fields
    return found


def ordered(fields: FieldSet) -> FieldSet:
    """Return the set with its elements in the order in which kube-apiserver writes them."""
    names = list(fields)
    in_order = sorted(names)  # correct for field names, which sort before all others
    if in_order[-1:] > ["f;"] and not all(map(sorts_as_text, names)):
        in_order = sorted(names, key=order)
    same = names == in_order
    made: FieldSet = {}
    for name in in_order:
        below = fields[name]
        made[name] = after = ordered(below) if below else below
        same = same and after is below
    return fields if same else made


# Membership


def is_member(below: FieldSet) -> bool:
    """Whether a node with these children is itself a member of the set."""
    return not below or SELF in below


def has(fields: FieldSet, path: Path) -> bool:
    """Whether a path is in the set. The root never is."""
    below = fields
    for element in path:
        if element not in below:
            return False
        below = below[element]
    return bool(path) and is_member(below)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Iterate over the paths of the set: at each node, the members before their descendants."""
    elements = [element for element in sorted(fields, key=order) if element != SELF]
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], (*prefix, element))


def path_text(path: Path) -> str:
    """Format a path for messages: `.spec.containers[name="app"].image`."""
    return "".join(map(text, path))


def from_paths(*every: Path) -> FieldSet:
    """Return the set of these paths."""
    made: FieldSet = {}
    for path in every:
        single: FieldSet = LEAF
        for element in reversed(path):
            single = {element: single}
        made = union(made, single)
    return made


def field_path(*names: str) -> Path:
    """Return a path of field names: `field_path("spec", "replicas")`."""
    return tuple("f:" + name for name in names)


# Set operations


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    if not one or one is other:
        return other
    return _union(one, other) if other else one


def _union(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other:
        return one
    if not other:
        one, other = other, one
    if not one:
        return other if is_member(other) else {SELF: LEAF, **other}
    made = dict(one)
    for element, below in other.items():
        made[element] = _union(made[element], below) if element in made else below
    return made


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    if len(other) < len(one):
        one, other = other, one
    made: FieldSet = {}
    for element, below in one.items():
        if element in other and element != SELF:
            against = other[element]
            children = intersection(below, against) if below and against else LEAF
            both = _node(children, member=is_member(below) and is_member(against))
            if both is not None:
                made[element] = both
    return made


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths of one that are not in the other; paths below those of the other are kept."""
    if not other or not one:
        return one
    made: FieldSet | None = None
    for element in one.keys() & other.keys():
        if element == SELF:
            continue
        below, against = one[element], other[element]
        was_member = is_member(below)
        member = was_member and not is_member(against)
        children = difference(below, against)
        if children is below and member == was_member:
            continue
        if made is None:
            made = dict(one)
        rest = _node(children, member=member)
        if rest is None:
            del made[element]
        else:
            made[element] = rest
    return one if made is None else made


def difference_recursive(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths of one that are neither in the other nor below one of its paths."""
    made: FieldSet = {}
    for element, below in one.items():
        if element not in other or element == SELF:
            made[element] = below
        elif not is_member(other[element]):
            rest = _node(difference_recursive(below, other[element]), member=is_member(below))
            if rest is not None:
                made[element] = rest
    return made


def leaves(fields: FieldSet) -> FieldSet:
    """Return the paths of the set without descendants in the set."""
    made: FieldSet = {}
    for element, below in fields.items():
        if element != SELF:
            made[element] = leaves(below)
    return made


def _node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Return a node with or without "."; None if neither it nor a descendant is a member."""
    held = SELF in children
    if len(children) == held:
        return LEAF if member else None
    if held == member:
        return children
    if member:
        return {SELF: LEAF, **children}
    return {element: below for element, below in children.items() if element != SELF}


# Filters: the fields that may be owned through an endpoint (`ResetFields` of a strategy)

ANY = "*"  # in a pattern of `only`: matches every element


class Without:
    """Removes paths and their descendants: the fields that a strategy resets."""

    def __init__(self, excluded: FieldSet) -> None:
        self._excluded = excluded
        self.names = frozenset(element[2:] for element, below in excluded.items() if is_member(below))  # at the top
        self.is_names_alone = len(self.names) == len(excluded)

    def __call__(self, fields: FieldSet) -> FieldSet:
        return difference_recursive(fields, self._excluded) if fields else fields


def without(excluded: FieldSet) -> Filter:
    return Without(excluded)


def only(*patterns: Path) -> Filter:
    """Keep the paths that match a pattern, and their descendants. A pattern may contain ANY."""
    return lambda fields: _matching(fields, patterns)


def _matching(fields: FieldSet, patterns: tuple[Path, ...]) -> FieldSet:
    made: FieldSet = {}
    for element, below in fields.items():
        if element == SELF:
            continue
        rests = tuple(pattern[1:] for pattern in patterns if pattern[0] in (element, ANY))
        if not rests:
            continue
        if () in rests:
            made[element] = below
            continue
        kept = _node(_matching(below, rests), member=is_member(below))
        if kept is not None:
            made[element] = kept
    return made
