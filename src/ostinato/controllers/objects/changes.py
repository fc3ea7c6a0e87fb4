"""Changes: fields of an object compared with its last successful reconcile.

    size = ctx.changed("spec.size", int)
    if size:
        await resize(size.old, size.new)

- A path joins names by dots, as they are in YAML or as attributes of the class: `spec.poolSize`, `spec.pool_size`. Keys
  with dots are in brackets: `metadata.annotations[example.dev/owner]`; so are positions in lists: `spec.ports[0]`.
- A path is recorded after each reconcile that succeeds, from the first time that it is asked for. Without a record
  everything counts as changed: at the first reconcile of an object, of a recreated one, and of one that this process
  has not reconciled yet. A change is therefore a reason to do more, never the only reason to do something.
- A reconcile that fails records nothing: its changes are still changes when it is retried.
- Records are kept in memory. With the option `changes_annotation` they are also stored in an annotation of the object,
  and survive a restart.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.struct import wire_name
from ostinato.controllers.objects.essence import CHANGES_PREFIX, content

T = TypeVar("T")

_MAX_KEYS: Final = 100_000  # with a record
_MAX_ANNOTATION: Final = 64 * 1024  # bytes; all annotations of an object have 256 KiB
_STEP: Final = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")


class Change(msgspec.Struct, Generic[T], frozen=True):
    """The old and the new value of a field; true if they differ, or if there is no old one.

    A value is None if the object does not have the field.
    """

    path: str
    old: T | None
    new: T | None
    first: bool  # there is no record of an earlier reconcile

    def __bool__(self) -> bool:
        return self.first or self.old != self.new


class _Record(msgspec.Struct):
    """The values of an object at its last successful reconcile."""

    uid: str
    values: dict[str, Any]


class LastReconciled:
    """The records of one controller."""

    def __init__(self, controller: str, *, annotation: bool = False) -> None:
        """`annotation`: store records in the objects too. Defaults to False."""
        self.annotation = f"{CHANGES_PREFIX}{_annotation_name(controller)}" if annotation else ""
        self.paths: dict[str, tuple[str, ...]] = {}  # asked for so far, and their steps
        self._records: OrderedDict[Hashable, _Record] = OrderedDict()

    def steps(self, path: str) -> tuple[str, ...]:
        """Return the steps of a path, and record it from now on."""
        found = self.paths.get(path)
        if found is None:
            found = self.paths[path] = tuple(_steps(path))
        return found

    def of(self, key: Hashable, instance: AnyObject) -> dict[str, Any]:
        """Return the recorded values of an object, by path."""
        record = self._records.get(key)
        if record is None and self.annotation:
            record = _decoded(access.annotations(instance).get(self.annotation))
        return record.values if record is not None and record.uid == access.uid(instance) else {}

    def record(self, key: Hashable, uid: str, values: dict[str, Any]) -> None:
        self._records[key] = _Record(uid, values)
        self._records.move_to_end(key)
        if len(self._records) > _MAX_KEYS:
            self._records.popitem(last=False)


class Changes:
    """The changes of one object, for one reconcile."""

    def __init__(self, last: LastReconciled, key: Hashable) -> None:
        self._last = last
        self._key = key
        self.instance: AnyObject | None = None  # once a field was asked for, or is recorded
        self._values: dict[str, Any] = {}  # at the beginning of the reconcile, by path

    def begin(self, instance: AnyObject) -> None:
        """Note the recorded fields: the reconciler may change the object."""
        if self._last.paths and self.instance is None:
            self.instance = instance
            whole = content(instance)
            self._values = {path: _copied(_value(whole, steps)) for path, steps in self._last.paths.items()}

    def of(self, path: str, as_type: Any, instance: AnyObject) -> Change[Any]:
        steps = self._last.steps(path)
        self.instance = instance
        if path not in self._values:
            self._values[path] = _copied(_value(content(instance), steps))
        recorded, new = self._last.of(self._key, instance), self._values[path]
        old, first = recorded.get(path), path not in recorded
        if as_type is not None:
            new = _converted(new, as_type, f"{access.describe(instance)}: {path}")
            try:
                old = _converted(old, as_type, path)
            except ValueError:  # of an earlier schema
                old, first = None, True
        return Change(path, old, new, first)

    def succeeded(self) -> str | None:
        """Record the fields. Returns the new value of the annotation; None if it need not be written."""
        instance = self.instance
        if instance is None:
            return None
        uid = access.uid(instance)
        values = {**self._last.of(self._key, instance), **self._values}
        self._last.record(self._key, uid, values)
        if not self._last.annotation or access.is_being_deleted(instance):
            return None
        text = msgspec.json.encode(_Record(uid, values), order="deterministic")
        if len(text) > _MAX_ANNOTATION or text == access.annotations(instance).get(self._last.annotation, "").encode():
            return None
        return text.decode()


def _steps(path: str) -> Iterator[str]:
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        yield match[1] or match[2]
    if not path or end != len(path):
        raise ValueError(f"{path!r} is not a field path; join names by dots, with keys that have dots in brackets")


def _value(whole: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at a path; None if it does not exist."""
    for step in steps:
        if isinstance(whole, dict):
            whole = whole.get(step, whole.get(wire_name(step)) if "_" in step else None)
        elif isinstance(whole, list) and step.isdecimal() and int(step) < len(whole):
            whole = whole[int(step)]
        else:
            return None
    return whole


def _copied(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value


def _converted(value: Any, as_type: Any, where: str) -> Any:
    if value is None:
        return None
    try:
        return msgspec.convert(value, as_type)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {error}") from None


def _decoded(text: str | None) -> _Record | None:
    """Return the record in an annotation; None without one, or if someone has damaged it."""
    try:
        return None if text is None else msgspec.json.decode(text, type=_Record)
    except msgspec.MsgspecError:
        return None


def _annotation_name(controller: str) -> str:
    """Return a name of at most 63 characters."""
    if len(controller) <= 63:
        return controller
    return f"{controller[:46]}-{blake2b(controller.encode(), digest_size=8).hexdigest()}"
