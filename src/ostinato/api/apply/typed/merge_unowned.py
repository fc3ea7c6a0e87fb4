"""Laying a configuration over an object, as admission policies do: whoever owns the fields, they are set.

What is replaced as a whole (atomic lists, maps and structs) may not be set so: what the object had there would be lost.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.apply.typed.merge import merge
from ostinato.api.apply.typed.merge_rules import Rules
from ostinato.api.apply.typed.validate import TypedError, check


def lay(live: Any, config: Any, rules: Rules) -> Any:
    """The object with the configuration over it; TypedError if that may not be."""
    try:
        check(config, rules, duplicates=False)
    except TypedError as error:
        raise TypedError([f"failed to convert patch object to typed object: {error}"]) from None
    whole = _atomics(config, rules, "")
    if whole:
        told = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
        raise TypedError([told])
    return merge(live, config, rules)


def _atomics(value: Any, rules: Rules | None, path: str) -> list[str]:
    """The places of a value that are replaced as a whole."""
    if rules is None:
        return []
    found: list[str] = []
    if isinstance(value, dict) and rules.map is not None:
        if rules.map.atomic:
            found.append(path)
        for name, inner in value.items():
            found += _atomics(inner, rules.map.field(name), f"{path}.{name}")
    elif isinstance(value, list) and rules.list is not None:
        if rules.list.atomic:
            found.append(path)
        for i, inner in enumerate(value):
            found += _atomics(inner, rules.list.items, f"{path}[{i}]")
    return found
