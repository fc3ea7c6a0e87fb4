"""Indexes: which objects have a value, without a look at all of them.

    by_namespace()                                        # "namespace"; every store has it
    by_owner()                                            # "owner": the uids of the owners
    by_label("app")                                       # "label:app"
    by_field("spec.nodeName")                             # "spec.nodeName"
    by_field("spec.volumes[*].configMap.name")            # "spec.volumes[*].configMap.name", of each volume
    by("image", lambda entry: [container.image for container in entry.read(Pod).spec.containers])

- An object has none, one or many values in an index.
- Fields are taken out of the bytes, as a rule in the pass that every object goes through. Texts are values as they are,
  numbers and true and false as JSON writes them; null, lists and objects are none.
- A function that raises is reported, and the object has no value in that index until it changes.
- An index is kept up to date change by change. A value that no object has any more takes no memory.
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
Values = str | tuple[str, ...]  # one, or none or several; most have one, and a text is smaller than a tuple of it

NAMESPACE: Final = "namespace"
OWNER: Final = "owner"
_EVERY: Final = "[*]"
_logger = logging.getLogger("ostinato.cache")


class IndexBy(msgspec.Struct, frozen=True):
    """An index to be kept: its name, and the values of an object in it.

    - `by_key`: they depend on its key alone.
    - `field`: the way to the field that they are the value of, if there is one. An entry may have it in its `fields`.
    """

    name: str
    function: IndexFunction
    by_key: bool = False
    field: tuple[str, ...] = ()


def by(name: str, function: IndexFunction) -> IndexBy:
    """By what a function says: a text, several, or None. It is called once for each state of an object."""
    return IndexBy(name, function)


def by_namespace() -> IndexBy:
    return IndexBy(NAMESPACE, lambda entry: entry.key.namespace, by_key=True)


def by_owner() -> IndexBy:
    """By the uids of the owners."""
    return IndexBy(OWNER, lambda entry: entry.owner_uids)


def by_label(label: str) -> IndexBy:
    """By the value of a label."""
    return IndexBy(f"label:{label}", lambda entry: entry.labels.get(label))


def by_field(path: str) -> IndexBy:
    """By the value of a field: names joined by dots, `[*]` behind a list. A ValueError for a path that is none."""
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
        except msgspec.ValidationError:  # something else than an object, or a list, is on the way
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
        self._keys: dict[str, dict[NamespacedName, None]] = {}  # of each value, in the order in which they came
        self._values: dict[NamespacedName, Values] = {}  # of each key that has any; a value is in _keys just if here

    def put(self, entry: Entry) -> None:
        """The object is new, or has changed."""
        key = entry.key
        if self.by.by_key and key in self._values:
            return
        try:
            found = self.by.function(entry)
            values = _NONE if found is None else (found or _EMPTY) if isinstance(found, str) else _several(found)
        except Exception:  # whatever the user's function does
            _logger.exception("index %r: the function failed for %s, which is left out of it", self.by.name, entry)
            values = _NONE
        self.set(key, values)

    def set(self, key: NamespacedName, values: Values) -> None:
        before = self._values.get(key, ())
        if values == before:
            return
        if before:
            self._forget(key, before)
        if not values:
            self._values.pop(key, None)
            return
        if type(values) is str:
            values = sys.intern(values)  # many objects have the same
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
            self._forget(key, before)

    def values_of(self, key: NamespacedName) -> Values:
        return self._values.get(key, ())

    def keys(self, value: str) -> KeysView[NamespacedName]:
        """The objects that have a value, as they are now: copy it before anything changes."""
        return self._keys.get(value, _NO_KEYS).keys()

    def values(self) -> KeysView[str]:
        """All values that any object has."""
        return self._keys.keys()

    def _forget(self, key: NamespacedName, values: Values) -> None:
        for value in (values,) if isinstance(values, str) else values:
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]


def _several(found: Iterable[str]) -> Values:
    values = found if isinstance(found, tuple) and len(found) == 1 else tuple(dict.fromkeys(found))
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"values are texts, got {values!r}")
    return values[0] if len(values) == 1 and values[0] else values


_NONE: Final[Values] = ()
_EMPTY: Final[Values] = ("",)  # the empty text, which must not be taken for none
_NO_KEYS: Final[dict[NamespacedName, None]] = {}


def _steps(path: str) -> list[str]:
    """The names on the way, and `_EVERY` where each item of a list is meant."""
    steps: list[str] = []
    for part in path.split("."):
        name = part.removesuffix(_EVERY)
        if not name or "[" in name or "]" in name:
            raise ValueError(f"{path!r} is no path to a field: names joined by dots, [*] behind a list")
        steps.append(name)
        if name != part:
            steps.append(_EVERY)
    return steps


def _shape(steps: list[str]) -> type[Any]:
    """A type of nothing but the field, so that everything beside it is skipped."""
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
    """A value as it stands in an index; None for null, and for what is none."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, bool | int | float) else None
