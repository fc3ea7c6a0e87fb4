"""Toleration arithmetic: inclusion and merging."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.resources.strategy import Json


def merged(tolerations: Sequence[Json]) -> list[Json]:
    """Drop tolerations that another one includes; of equal ones the first is kept."""
    kept: list[Json] = []
    for i, each in enumerate(tolerations):
        later = (other for other in tolerations[i + 1 :] if other != each)
        if not any(includes(other, each) for other in (*kept, *later)):
            kept.append(each)
    return kept


def includes(wide: Json, narrow: Json) -> bool:
    """Whether `wide` tolerates every taint that `narrow` tolerates."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and not (operator == "Exists" and not wide.get("key")):
        return False
    if wide.get("effect") and narrow.get("effect", "") != wide["effect"]:
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        shorter = narrow.get("tolerationSeconds")
        if shorter is None or shorter > seconds:
            return False
    if operator in ("", "Equal"):
        return narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", "")
    return bool(operator == "Exists")
