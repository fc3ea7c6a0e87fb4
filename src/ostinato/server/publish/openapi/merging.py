"""Merging of documents of version 2: this server's, and those of extension servers.

- Of equal paths the first is kept.
- A definition that differs from another of the same name is renamed to `NAME_v2`, `NAME_v3`, …. Definitions that differ
  only in their kinds are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

_REFERENCE: Final = "#/definitions/"
_KINDS: Final = "x-kubernetes-group-version-kind"


def merged(paths: Json, definitions: Json, others: Sequence[Mapping[str, Any]]) -> tuple[Json, Json]:
    """The paths and definitions that other documents add, in order."""
    more_paths: Json = {}
    more_definitions: Json = {}
    for other in others:
        known = {**definitions, **more_definitions}
        names = _new_names(known, other["definitions"])
        for name, value in other["definitions"].items():
            more_definitions.setdefault(names.get(name, name), _renamed(value, names))
        for path, item in other["paths"].items():
            if path not in paths:
                more_paths.setdefault(path, _renamed(item, names))
    return more_paths, {name: value for name, value in more_definitions.items() if name not in definitions}


def _new_names(known: Json, added: Json) -> dict[str, str]:
    """New names of the definitions that conflict."""
    names: dict[str, str] = {}
    for name, value in added.items():
        if name not in known or _is_same(known[name], value):
            continue
        number = 2
        while (new := f"{name}_v{number}") in added or (new in known and not _is_same(known[new], value)):
            number += 1
        names[name] = new
    return names


def _is_same(one: Json, other: Json) -> bool:
    return {**one, _KINDS: None} == {**other, _KINDS: None}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A copy with references to the new names."""
    if not names:
        return value
    if isinstance(value, dict):
        made = {key: _renamed(each, names) for key, each in value.items()}
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_REFERENCE):
            name = reference.removeprefix(_REFERENCE)
            made["$ref"] = _REFERENCE + names.get(name, name)
        return made
    return [_renamed(each, names) for each in value] if isinstance(value, list) else value
