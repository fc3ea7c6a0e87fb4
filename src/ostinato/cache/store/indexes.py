"""Indexes: find the objects with a value without scanning all of them.

    by_namespace()                                        # "namespace"; every store has it
    by_owner()                                            # "owner": the uids of the owners
    by_label("app")                                       # "label:app"
    by_field("spec.nodeName")                             # "spec.nodeName"
    by_field("spec.volumes[*].configMap.name")            # "spec.volumes[*].configMap.name", of each volume
    by("image", lambda entry: [container.image for container in entry.read(Pod).spec.containers])

- An object has any number of values in an index.
- Fields are read from the JSON, mostly in the pass that decodes every object. Strings are values as they are, numbers
  and booleans in their JSON form; null, lists and objects are not values.
- If a function raises, the error is logged, and the object has no value in that index until it changes.
- Indexes are updated with every change. Values without objects take no memory.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, KeysView
from typing import Any, Final, cast

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry

IndexFunction = Callable[[Entry], str | Iterable[str] | None]
Values = str | tuple[str, ...]  # most objects have one value, and a str is smaller than a tuple

NAMESPACE: Final = "namespace"
OWNER: Final = "owner"
_EVERY: Final = "[*]"
_logger = logging.getLogger("ostinato.cache")


class IndexBy(msgspec.Struct, frozen=True):
    """The definition of an index.

    - `function`: returns the values of an object.
    - `by_key`: the values depend on the key alone.
    - `field`: the path of the field that holds the value, if there is one; decoding finds it for `Entry.fields`.
    """

    name: str
    function: IndexFunction
    by_key: bool = False
    field: tuple[str, ...] = ()


def by(name: str, function: IndexFunction) -> IndexBy:
    """Index by the result of a function: a string, several, or None. It is called once per change of an object."""
    return IndexBy(name, function)


def by_namespace() -> IndexBy:
    return IndexBy(NAMESPACE, lambda entry: entry.key.namespace, by_key=True)


def by_owner() -> IndexBy:
    """Index by the uids in ownerReferences."""
    return IndexBy(OWNER, lambda entry: entry.owner_uids)


def by_label(label: str) -> IndexBy:
    """Index by the value of a label."""
    return IndexBy(f"label:{label}", lambda entry: entry.labels.get(label))


def by_field(path: str) -> IndexBy:
    """Index by a field: names joined by dots, `[*]` after a list. Raises ValueError for an invalid path."""
    steps = _steps(path)
    decode = msgspec.json.Decoder(_shape(steps)).decode
    in_metadata = steps[0] == "metadata"
    depth = 0 if _EVERY in steps else len(steps)

    def values(entry: Entry) -> str | list[str] | None:
        known = entry.fields
        if known is not None and path in known:
            found: Any = known[path]
            return found if isinstance(found, str) else _text(found)
        data = entry.metadata_json if in_metadata else entry.data
        try:
            found = decode(data)
        except msgspec.ValidationError:  # an unexpected type on the path
            return list(_texts(msgspec.json.decode(data), steps))
        if not depth:
            return list(_texts(found, steps))
        for _ in range(depth):
            if found is None:
                return None
            found = found.found
        return found if isinstance(found, str) else _text(found)

    return IndexBy(path, values, field=() if _EVERY in steps else tuple(steps))


class Index:
    """The keys of each value, and the values of each key."""

    __slots__ = ("_keys", "_values", "by")

    def __init__(self, definition: IndexBy) -> None:
        self.by = definition
        self._keys: dict[str, dict[NamespacedName, None]] = {}  # by value, in insertion order
        self._values: dict[NamespacedName, Values] = {}  # by key; exactly the inverse of _keys

    def put(self, entry: Entry) -> None:
        """Update the values of a new or changed object."""
        key = entry.key
        if self.by.by_key and key in self._values:
            return
        try:
            found = self.by.function(entry)
            values = _NONE if found is None else (found or _EMPTY) if isinstance(found, str) else _distinct(found)
        except Exception:  # user code may raise anything
            _logger.exception("index function failed, object not indexed index=%s object=%s", self.by.name, entry)
            values = _NONE
        self.set(key, values)

    def set(self, key: NamespacedName, values: Values) -> None:
        before = self._values.get(key, ())
        if values == before:
            return
        if before:
            self._discard(key, before)
        if not values:
            self._values.pop(key, None)
            return
        if type(values) is str:
            values = sys.intern(values)  # common to many objects
        self._values[key] = values
        for value in (values,) if isinstance(values, str) else values:
            keys = self._keys.get(value)
            if keys is None:
                self._keys[value] = {key: None}
            else:
                keys[key] = None

    def remove(self, key: NamespacedName) -> None:
        before = self._values.pop(key, None)
        if before is not None:
            self._discard(key, before)

    def values_of(self, key: NamespacedName) -> Values:
        return self._values.get(key, ())

    def keys(self, value: str) -> KeysView[NamespacedName]:
        """Return a live view of the keys with a value: copy it before the index changes."""
        return self._keys.get(value, _NO_KEYS).keys()

    def values(self) -> KeysView[str]:
        """Return a live view of all values."""
        return self._keys.keys()

    def _discard(self, key: NamespacedName, values: Values) -> None:
        for value in (values,) if isinstance(values, str) else values:
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]


def _distinct(found: Iterable[str]) -> Values:
    values = found if isinstance(found, tuple) and len(found) == 1 else tuple(dict.fromkeys(found))
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"index values must be strings, got {values!r}")
    return values[0] if len(values) == 1 and values[0] else values


_NONE: Final[Values] = ()
_EMPTY: Final[Values] = ("",)  # the empty string is a value
_NO_KEYS: Final[dict[NamespacedName, None]] = {}


def _steps(path: str) -> list[str]:
    """Split a path into names and `_EVERY`."""
    steps: list[str] = []
    for part in path.split("."):
        name = part.removesuffix(_EVERY)
        if not name or "[" in name or "]" in name:
            raise ValueError(f"{path!r} is not a field path; join names by dots, with [*] after a list")
        steps.append(name)
        if name != part:
            steps.append(_EVERY)
    return steps


def _shape(steps: list[str]) -> type[Any]:
    """Return a type with nothing but the field, so that decoding skips all others."""
    shape: Any = Any
    for step in reversed(steps):
        if step == _EVERY:
            shape = list[shape] | None
        else:
            shape = msgspec.defstruct("Field", [("found", shape, None)], rename={"found": step}, gc=False) | None
    return cast("type[Any]", shape)


def _texts(found: Any, steps: list[str]) -> Iterator[str]:
    values: list[Any] = [found]
    for step in steps:
        if step == _EVERY:
            values = [item for value in values if isinstance(value, list) for item in value]
        else:
            values = [value.get(step) if isinstance(value, dict) else getattr(value, "found", None) for value in values]
    for value in values:
        text = _text(value)
        if text is not None:
            yield text


def _text(value: Any) -> str | None:
    """Return a scalar as an index value; None for null, lists and objects."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, bool | int | float) else None
