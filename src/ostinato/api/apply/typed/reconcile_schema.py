"""Field sets beside merge rules: sets written under another schema, and the structs that sets leave unsaid."""

from __future__ import annotations

from ostinato.api.apply.fieldpath.elements import SELF
from ostinato.api.apply.fieldpath.field_set import LEAF, FieldSet
from ostinato.api.apply.typed.merge_rules import Rules


def adapted(fields: FieldSet, rules: Rules) -> FieldSet:
    """The set under rules that may have changed since it was written.

    Who owned fields inside of what is atomic now owns the whole. What was atomic and is granular now stays owned as a
    whole until it is written again.
    """
    if rules.map is None or rules.map.atomic:
        return fields
    return _adapted(fields, rules)


def _adapted(below: FieldSet, rules: Rules) -> FieldSet:
    if rules.map is not None:
        if rules.map.deduced:
            return below
        if rules.map.atomic:
            return LEAF
    elif rules.scalar is not None or rules.list is None:
        return below
    elif rules.list.atomic:
        return LEAF
    made = below
    for element, children in below.items():
        if not children:
            continue
        inner = _inner(element, rules)
        if inner is not None:
            after = _adapted(children, inner)
            if after is not children:
                made = {**made, element: after}
    return made


def _inner(element: str, rules: Rules) -> Rules | None:
    if rules.map is None:
        return rules.list.items if rules.list is not None else None
    return rules.map.field(element[2:]) if element.startswith("f:") else rules.map.values


def with_structs(fields: FieldSet, rules: Rules | None) -> FieldSet:
    """The set with every named field that has fields of the set below it: a struct goes when all of it goes."""
    made: FieldSet = {}
    for element, below in fields.items():
        if not below:
            made[element] = below
            continue
        inner, named = None, False
        if rules is not None and rules.map is not None and element.startswith("f:"):
            inner, named = rules.map.field(element[2:]), rules.map.declares(element[2:])
        elif rules is not None and rules.list is not None and element.startswith("k:"):
            inner = rules.list.items
        children = with_structs(below, inner)
        made[element] = {SELF: LEAF, **children} if named else children
    return made
