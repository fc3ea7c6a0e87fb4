"""Differences: what has changed in an object since it was last handled.

- The essence of an object is what is compared and stored: labels, annotations, and everything beside metadata and
  status. Handlers of other fields, such as `status.phase`, add these.
- A difference is a list of `(operation, path, old, new)`; the operation is "add", "change" or "remove", the path a
  tuple of keys. Lists are compared as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ostinato.controllers.objects.essence import CHANGES_PREFIX
from ostinato.frontends.handlers.objects.views import resolve

Json = dict[str, Any]
Path = tuple[str, ...]

_SYSTEM = frozenset({"apiVersion", "kind", "metadata", "status"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KOPF = "kopf.zalando.org/"  # what kopf left on objects that it handled before
_ABSENT: Any = object()


class DiffItem(NamedTuple):
    operation: str  # "add", "change", "remove"
    field: Path
    old: Any
    new: Any

    @property
    def op(self) -> str:
        return self.operation


class Diff(tuple[DiffItem, ...]):
    """The differences between two states of an object or field."""

    __slots__ = ()


def essence(body: Mapping[str, Any], extra: Iterable[Path] = ()) -> Json:
    """Return what of an object is compared and stored. `extra`: paths of further fields."""
    found: Json = {name: value for name, value in body.items() if name not in _SYSTEM}
    metadata = body.get("metadata") or {}
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name != _LAST_APPLIED and not name.startswith((CHANGES_PREFIX, _KOPF))
    }
    kept = {"labels": metadata.get("labels"), "annotations": annotations}
    if any(kept.values()):
        found["metadata"] = {name: value for name, value in kept.items() if value}
    for path in extra:
        value = resolve(body, path, _ABSENT)
        if value is not _ABSENT:
            _put(found, path, value)
    return found


def diff(old: Any, new: Any) -> Diff:
    return Diff(_differences(old, new, ()))


def reduced(whole: Diff, path: Path) -> Diff:
    """Return the part of a difference below a path."""
    return Diff(_reduced(whole, path))


def digest(content: Json) -> str:
    """Return a short digest of an essence."""
    return blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=8).hexdigest()


def _differences(old: Any, new: Any, path: Path) -> Iterator[DiffItem]:
    if old == new:
        return
    if old is None:
        yield DiffItem("add", path, old, new)
    elif new is None:
        yield DiffItem("remove", path, old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*new, *(each for each in old if each not in new)]:
            yield from _differences(old.get(key), new.get(key), (*path, key))
    else:
        yield DiffItem("change", path, old, new)


def _reduced(whole: Diff, path: Path) -> Iterator[DiffItem]:
    for item in whole:
        if item.field[: len(path)] == path:
            yield item._replace(field=item.field[len(path) :])
        elif path[: len(item.field)] == item.field:
            rest = path[len(item.field) :]
            yield from _differences(resolve(item.old, rest), resolve(item.new, rest), ())


def _put(target: Json, path: Path, value: Any) -> None:
    """Set a value without changing the objects that the target shares with others."""
    for step in path[:-1]:
        known = target.get(step)
        target[step] = dict(known) if isinstance(known, dict) else {}
        target = target[step]
    target[path[-1]] = value
