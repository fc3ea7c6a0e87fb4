"""Manifests with variables, and merge patches of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Final

from tests.contract.player.paths import Json, Object

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


def merged(base: Json, change: Json) -> Json:
    """A JSON merge patch (RFC 7396)."""
    if not isinstance(change, dict) or not isinstance(base, dict):
        return copy.deepcopy(change)
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key, {}) if isinstance(value, dict) else None, value)
    return result


def substitute(value: Json, variables: Mapping[str, Json]) -> Json:
    """The value with `${name}` replaced, in keys too; KeyError for an unknown name."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: str(variables[match[1]]), value)
    if isinstance(value, list):
        return [substitute(item, variables) for item in value]
    if isinstance(value, dict):
        return {substitute(key, variables): substitute(item, variables) for key, item in value.items()}
    return value


def manifest(entry: Json, manifests: Mapping[str, Json], variables: Mapping[str, Json]) -> Object:
    """Resolve an entry: a name of `manifests`, `{from: name, with: merge patch}`, or a whole object."""
    if isinstance(entry, str):
        entry = {"from": entry}
    if "from" in entry:
        entry = merged(substitute(manifests[entry["from"]], variables), entry.get("with", {}))
    found: Object = entry
    return found
