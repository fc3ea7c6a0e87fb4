"""Merge of a configuration without field ownership: `ApplyConfiguration` of MutatingAdmissionPolicies.

Fields are set regardless of their managers. Atomic lists, maps and structs are rejected, as their contents would be
replaced as a whole.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.apply.typed.merge import merge
from ostinato.api.apply.typed.merge_rules import Rules
from ostinato.api.apply.typed.validate import TypedError, validate


def merge_unowned(live: Any, config: Any, rules: Rules) -> Any:
    """Return the object with the configuration merged into it. Raises TypedError."""
    try:
        validate(config, rules, duplicates=False)
    except TypedError as error:
        raise TypedError([f"failed to convert patch object to typed object: {error}"]) from None
    atomic = _atomic_paths(config, rules, "")
    if atomic:
        message = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise TypedError([message])
    return merge(live, config, rules)


def _atomic_paths(value: Any, rules: Rules | None, path: str) -> list[str]:
    """Return the paths of the atomic lists and maps of a value."""
    if rules is None:
        return []
    found: list[str] = []
    if isinstance(value, dict) and rules.map is not None:
        if rules.map.atomic:
            found.append(path)
        for name, inner in value.items():
            found += _atomic_paths(inner, rules.map.field(name), f"{path}.{name}")
    elif isinstance(value, list) and rules.list is not None:
        if rules.list.atomic:
            found.append(path)
        for i, inner in enumerate(value):
            found += _atomic_paths(inner, rules.list.items, f"{path}[{i}]")
    return found
