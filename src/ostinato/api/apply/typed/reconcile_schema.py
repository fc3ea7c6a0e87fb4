"""Adapt field sets to a schema.

Corresponds to `ReconcileFieldSetWithSchema` and `EnsureNamedFieldsAreMembers` in structured-merge-diff.
"""

from __future__ import annotations

from ostinato.api.apply.fieldpath.elements import SELF
from ostinato.api.apply.fieldpath.field_set import LEAF, FieldSet
from ostinato.api.apply.typed.merge_rules import Rules


def reconcile_field_set(fields: FieldSet, rules: Rules) -> FieldSet:
    """Reconcile a field set with rules that may have changed since it was written.

    - Granular to atomic: an owner of fields inside owns the whole.
    - Atomic to granular: the owner of the whole keeps it until its next write.
    """
    if rules.map is None or rules.map.atomic:
        return fields
    return _reconcile(fields, rules)


def _reconcile(below: FieldSet, rules: Rules) -> FieldSet:
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
            after = _reconcile(children, inner)
            if after is not children:
                made = {**made, element: after}
    return made


def _inner(element: str, rules: Rules) -> Rules | None:
    if rules.map is None:
        return rules.list.items if rules.list is not None else None
    return rules.map.field(element[2:]) if element.startswith("f:") else rules.map.values


def ensure_named_fields(fields: FieldSet, rules: Rules | None) -> FieldSet:
    """Return the set with all declared fields that have descendants in it, so that empty structs are removed too."""
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
        children = ensure_named_fields(below, inner)
        made[element] = {SELF: LEAF, **children} if named else children
    return made
