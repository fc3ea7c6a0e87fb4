"""Merge, remove and extract fields of typed values.

- Arguments are not modified; results share structure with them.
- An explicit null in a configuration replaces a leaf and is kept; decoding drops it later, as Go does.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.apply.fieldpath.elements import text
from ostinato.api.apply.fieldpath.field_set import FieldSet, is_member
from ostinato.api.apply.typed.compare import element_of
from ostinato.api.apply.typed.merge_rules import ItemError, ListRules, Rules
from ostinato.api.apply.typed.validate import TypedError
from ostinato.api.apply.typed.values import ABSENT, NESTED


def merge(live: Any, config: Any, rules: Rules | None) -> Any:
    """Merge a configuration into a live value: nothing is removed; the leaves of the configuration win."""
    if config is live or rules is None:
        return config
    form = rules.form(config)
    if form == "map":
        assert rules.map is not None
        old, new = (value if isinstance(value, dict) else {} for value in (live, config))
        if rules.map.atomic or not (old or new):
            return config
        made: dict[str, Any] = dict(old)
        for name, value in new.items():
            nested = value is None or isinstance(value, NESTED)
            made[name] = merge(old[name], value, rules.map.field(name)) if nested and name in old else value
        return made
    if form == "list":
        assert rules.list is not None
        items, changes = (value if isinstance(value, list) else [] for value in (live, config))
        if rules.list.atomic or not (items or changes):
            return config
        merged: list[Any] = []
        for before, after in _matched(items, changes, rules.list):
            if after is ABSENT:
                merged.append(before)
            else:
                merged.append(after if before is ABSENT else merge(before, after, rules.list.items))
        return merged
    return config


def _matched(items: list[Any], changes: list[Any], rules: ListRules) -> list[tuple[Any, Any]]:
    """Return the items of both lists in the order of the result, each with its counterpart or ABSENT.

    Items in both lists have the order of the configuration; items of the live list only keep their position among them.
    """
    left = [element_of(item, rules) for item in items]
    by_left: dict[str, Any] = {}
    for element, item in zip(left, items, strict=True):
        by_left[element] = None if element in by_left else item  # duplicates are replaced, not merged
    by_right: dict[str, Any] = {}
    for index, item in enumerate(changes):
        try:
            element = rules.element(item)
        except ItemError as error:
            raise TypedError([f"element {index}: {error}"]) from None
        if element in by_right:
            raise TypedError([f"duplicate entries for key {text(element)}"])
        by_right[element] = item
    right = list(by_right)
    shared = iter([element for element in right if element in by_left])
    next_shared = next(shared, None)
    made: list[tuple[Any, Any]] = []
    done: set[str] = set()
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left):
            element = left[i]
            if j < len(right) and element == right[j]:
                done.add(element)
                made.append((by_left[element], by_right[element]))
                i, j = i + 1, j + 1
                next_shared = next(shared, None)
                continue
            if j < len(right) and element in by_right and next_shared is not None and next_shared != element:
                i += 1  # added at its position in the configuration
                continue
            if element not in by_right:
                made.append((items[i], ABSENT))
                i += 1
                continue
            if element in done:
                i += 1
        if j < len(right):
            element = right[j]
            done.add(element)
            made.append((by_left.get(element, ABSENT), by_right[element]))
            j += 1
            if next_shared == element:
                next_shared = next(shared, None)
    return made


def remove(value: Any, fields: FieldSet, rules: Rules | None) -> Any:
    """Return the value without these fields; lists and maps that become empty become null."""
    if rules is None or not fields:
        return value
    form = rules.form(value)
    if form == "map" and isinstance(value, dict):
        assert rules.map is not None
        if not value or rules.map.atomic:
            return None
        made = {}
        for name, inner in value.items():
            below = fields.get("f:" + name)
            if below is None:
                made[name] = inner
            elif not is_member(below):
                made[name] = remove(inner, below, rules.map.field(name))
        return made or None
    if form == "list" and isinstance(value, list):
        assert rules.list is not None
        if not value or rules.list.atomic:
            return None
        kept = []
        for item in value:
            below = fields.get(element_of(item, rules.list))
            if below is None:
                kept.append(item)
            elif not is_member(below):
                kept.append(remove(item, below, rules.list.items))
        return kept or None
    return value if form == "scalar" else None


def extract(value: Any, fields: FieldSet, rules: Rules | None) -> Any:
    """Return the value with these fields only. `fields` are leaves: a field with descendants means only these."""
    if rules is None:
        return value
    form = rules.form(value)
    if form == "map" and isinstance(value, dict):
        assert rules.map is not None
        if not value or rules.map.atomic:
            return value
        made = {}
        for name, inner in value.items():
            below = fields.get("f:" + name)
            if below is not None:
                # A leaf whose map became granular since then: its fields belong to other managers.
                made[name] = extract(inner, below or fields, rules.map.field(name))
        return made or None
    if form == "list" and isinstance(value, list):
        assert rules.list is not None
        if not value or rules.list.atomic:
            return value
        kept = []
        for item in value:
            below = fields.get(element_of(item, rules.list))
            if below is not None:
                kept.append(item if not below else extract(item, below, rules.list.items))
        return kept or None
    return value if form == "scalar" else None
