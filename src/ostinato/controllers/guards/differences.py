"""Differences: which fields of an object changed, in words for a log.

What changes with every write says nothing and is left out: the version, the generation, the managers of fields. Values
of Secrets are never shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

import msgspec

_MOST: Final = 5  # fields that are named
_LONGEST: Final = 40  # characters of a value
_NOISE: Final = frozenset({"resourceVersion", "generation", "managedFields"})
_ABSENT: Final = object()

Json = dict[str, Any]


def differences(before: Json, after: Json) -> list[str]:
    """`spec.replicas: 1 -> 2`, for each field that differs, the first few."""
    secret = after.get("kind") == "Secret"
    found = list(islice(_differing(_content(before), _content(after), ""), _MOST + 1))
    texts = [path if secret else f"{path}: {_shown(old)} -> {_shown(new)}" for path, old, new in found[:_MOST]]
    return [*texts, "and more"] if len(found) > _MOST else texts


def digest(instance: Json) -> bytes:
    """Equal for two states of an object that differ in nothing that means something."""
    return blake2b(msgspec.json.encode(_content(instance), order="deterministic"), digest_size=16).digest()


def _content(instance: Json) -> Json:
    metadata = instance.get("metadata")
    if not isinstance(metadata, dict):
        return instance
    return {**instance, "metadata": {name: value for name, value in metadata.items() if name not in _NOISE}}


def _differing(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
            yield from _differing(old, new, f"{path}.{name}" if path else str(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differing(old, new, f"{path}[{index}]")
    elif before != after or type(before) is not type(after):
        yield path, before, after


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
