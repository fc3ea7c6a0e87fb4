"""Differences between two states of an object, as text for logs.

Fields that change with every write are left out: resourceVersion, generation, managedFields. Values of Secrets are
never included.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

import msgspec

_MAX_FIELDS: Final = 5
_MAX_VALUE: Final = 40  # characters
_NOISE: Final = frozenset({"resourceVersion", "generation", "managedFields"})
_ABSENT: Final = object()

Json = dict[str, Any]


def differences(before: Json, after: Json) -> list[str]:
    """Return the first few differing fields, as `spec.replicas: 1 -> 2`."""
    secret = after.get("kind") == "Secret"
    found = list(islice(_differing(_content(before), _content(after), ""), _MAX_FIELDS + 1))
    texts = [path if secret else f"{path}: {_shown(old)} -> {_shown(new)}" for path, old, new in found[:_MAX_FIELDS]]
    return [*texts, "and more"] if len(found) > _MAX_FIELDS else texts


def digest(instance: Json) -> bytes:
    """Return a digest of the object without fields that change with every write."""
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
        return "absent"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "…"
