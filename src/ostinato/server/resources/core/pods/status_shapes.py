"""Writes of the status that are alike: kubelets report the same of every Pod of a controller.

The shape of a write is the stored Pod and the patch, without the values that differ from Pod to Pod: its name, uid and
node, times, addresses, container IDs. The server compares them with each other and copies them; nothing else depends
on them. So all writes of one shape have the same result except for these values, and it is cached.

- Equal values have the same placeholder, except for times that are never compared. The placeholders of values that are
  sorted are in their order.
- Only values with known valid syntax are cut out, of fields that are not validated any further. Everything else is
  part of the shape.
- The result of a shape is used once it was right about another Pod.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from ostinato.api.time import Time
from ostinato.api.validation import addresses
from ostinato.api.wire.duplicate_keys import repeats_keys
from ostinato.server.store.records import Entry

_MAX_SHAPES: Final = 512
_MAX_BYTES: Final = 8 * 1024
_MAX_VALUES: Final = 24  # of a sort
_MAX_TIMES: Final = 16

_HEAD: Final = b'{"metadata":{"name":"'
_VERSION_FIELD: Final = b'"resourceVersion":"%b"'
_NODE_FIELD: Final = b'"nodeName":"%b"'
_OWNED: Final = b'"controller":true'  # other Pods hardly have equals

# A placeholder is _MARK, which JSON does not contain, and a code.
_MARK: Final = b"\x01"
_PLACEHOLDER: Final = re.compile(rb"\x01(.)", re.DOTALL)
_UID, _NODE, _VERSION, _CREATED = 0x10, 0x11, 0x12, 0x13
_TIMES, _STATUS_TIMES, _CONTAINERS, _IPV4, _IPV6 = 0x20, 0x30, 0x40, 0x60, 0x80  # the first code of each sort

_TIME_LENGTH: Final = len('"2026-01-01T00:00:00')
_CONTAINER_ID: Final = re.compile(rb"[a-z]+://[0-9a-f-]{36,64}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BYTE: Final = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_CANONICAL_IPV4: Final = re.compile(_BYTE + rb"(?:\." + _BYTE + rb"){3}")

# Where values may be cut out, by their code or the first code of their sort.
_TIME_FIELDS: Final = b"deletionTimestamp lastProbeTime lastTransitionTime startTime startedAt finishedAt".split()
_FIELDS: Final = {
    _UID: (b'"uid":"', b'\\"uid\\":\\"'),
    _NODE: (b'"nodeName":"',),
    _VERSION: (b'"resourceVersion":"',),
    _CREATED: (b'"creationTimestamp":"',),
    _TIMES: (b'"time":"',),
    _STATUS_TIMES: tuple(b'"%b":"' % name for name in _TIME_FIELDS),
    _CONTAINERS: (b'"containerID":"',),
    _IPV4: (b'"ip":"', b'"podIP":"', b'"hostIP":"', b'\\"ip\\":\\"'),
}
_FIELDS[_IPV6] = _FIELDS[_IPV4]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Circumstances(NamedTuple):
    """What the result of a write depends on, besides the Pod and the patch."""

    manager: str  # of the fields
    validation: str
    node: str | None  # that the user is; None: the user is not a node
    now: str


class _Times:
    """The times of a write. The server compares those of managedFields with each other, and those of the status."""

    def __init__(self) -> None:
        self.of_entries: dict[bytes, int] = {}  # of managedFields: codes in order
        self.of_status: dict[bytes, int] = {}
        self.created: dict[bytes, int] = {}

    def cut(self, text: bytes) -> bytes:
        """Replace times by placeholders, the first time with new codes. Raises ValueError if there are too many."""
        parts = text.split(b'Z"')
        last = parts.pop()
        found = [(part, self._sort(part), part[-_TIME_LENGTH:]) for part in parts]
        if not self.of_entries:
            entries = {time for _, sort, time in found if sort is self.of_entries}
            self.of_entries.update((time, _TIMES + rank) for rank, time in enumerate(sorted(entries)))
            for _, sort, time in found:
                if sort is self.of_status:
                    sort.setdefault(time, _STATUS_TIMES + len(sort))
                elif sort is self.created:
                    sort.setdefault(time, _CREATED + len(sort))
            if len(entries) > _MAX_TIMES or len(self.of_status) > _MAX_TIMES or len(self.created) > 1:
                raise ValueError("too many times")
        out: list[bytes] = []
        for part, sort, time in found:
            if sort is None:
                out += part, b'Z"'
            elif time in sort:
                out += part[:-_TIME_LENGTH], b'"\x01%c"' % sort[time]
            else:
                raise ValueError("unknown time")
        out.append(last)
        return b"".join(out)

    def _sort(self, part: bytes) -> dict[bytes, int] | None:
        """Return the times to which the one at the end belongs, None if there is none."""
        if not _is_time(part[-_TIME_LENGTH:]):
            return None
        if part.endswith(b'"time":', 0, -_TIME_LENGTH):
            return self.of_entries
        return self.created if part.endswith(b'"creationTimestamp":', 0, -_TIME_LENGTH) else self.of_status

    def values(self) -> dict[int, bytes]:
        sorts = (self.of_entries, self.of_status, self.created)
        return {code: time[1:] + b"Z" for sort in sorts for time, code in sort.items()}


class Shape(NamedTuple):
    text: bytes
    name: bytes
    values: dict[int, bytes]  # the other values, by code
    times: _Times


def shape_of(current: Entry, patch: bytes, given: Circumstances) -> Shape | None:
    """Return the shape of a write to a Pod; None if it may be unlike all others."""
    name, uid, node = current.key.rpartition("/")[2].encode(), current.uid, current.fields.get("spec.nodeName")
    data, head = current.data, b'%b%b"' % (_HEAD, name)
    if (
        not node
        or len(data) + len(patch) > _MAX_BYTES
        or _MARK in patch
        or b"\\" in patch  # it could write a value in several ways
        or not data.startswith(head)
        or _OWNED not in data
        or _UUID.fullmatch(uid) is None
    ):
        return None
    version = b"%d" % current.version
    stored = data[len(head) :].replace(_VERSION_FIELD % version, _VERSION_FIELD % _placeholder(_VERSION), 1)
    values = {_UID: uid.encode(), _NODE: node.encode(), _VERSION: version}
    user = "" if given.node is None else "own" if given.node == node else f"other {given.node}"
    times = _Times()
    try:
        text = times.cut(b'{"time":"%b"}\n%b\n%b' % (given.now.encode(), stored, patch))
        text = _cut_addresses(_cut_containers(text, values), values)
    except ValueError:
        return None
    values |= times.values()
    text = text.replace(values[_UID], _placeholder(_UID))
    text = text.replace(_NODE_FIELD % values[_NODE], _NODE_FIELD % _placeholder(_NODE))
    return Shape(b"%b\n%b" % (_encode((given.manager, given.validation, user)), text), name, values, times)


def _is_regular(shape: Shape) -> bool:
    """Whether a patch is of the status alone, and values were cut out of their own fields only."""
    _, _, _, patch = shape.text.split(b"\n", 3)
    sent = _PLACEHOLDER.sub(b"0", patch)
    value = _decode(sent)
    if repeats_keys(sent, value) or not value.keys() <= {"metadata", "status"}:
        return False
    if not (value.get("metadata") or {}).keys() <= {"uid"}:
        return False
    for found in _PLACEHOLDER.finditer(shape.text):
        code = found[1][0]
        fields = _FIELDS[max(first for first in _FIELDS if first <= code)]
        if not shape.text.endswith(fields, 0, found.start()):
            return False
    return True


def _placeholder(code: int) -> bytes:
    return b"\x01%c" % code


@lru_cache(maxsize=1024)  # writes share seconds
def _is_time(text: bytes) -> bool:
    """Whether a text is a quote and the time of a second in canonical form, without its last letter."""
    if len(text) != _TIME_LENGTH or text[:2] != b'"2' or not text.isascii():
        return False
    time = text[1:].decode() + "Z"
    try:
        return str(Time.parse(time)) == time
    except ValueError:
        return False


def _cut_containers(text: bytes, values: dict[int, bytes]) -> bytes:
    found = [value for value in _values(text, b'"containerID":"') if _CONTAINER_ID.fullmatch(value)]
    return _cut(text, {value: _CONTAINERS + i for i, value in enumerate(found)}, values)


def _cut_addresses(text: bytes, values: dict[int, bytes]) -> bytes:
    codes: dict[bytes, int] = {}
    for rank, value in enumerate(sorted(_values(text, b'"ip":"'))):
        if _CANONICAL_IPV4.fullmatch(value):
            codes[value] = _IPV4 + rank
        elif b":" in value and value.isascii() and not addresses.is_legacy_ip(value.decode()):
            codes[value] = _IPV6 + rank
    return _cut(text, codes, values)


def _values(text: bytes, field: bytes) -> list[bytes]:
    """Return the values of a field, in the order of their first occurrence."""
    return list(dict.fromkeys(part.partition(b'"')[0] for part in text.split(field)[1:]))


def _cut(text: bytes, codes: Mapping[bytes, int], values: dict[int, bytes]) -> bytes:
    """Replace values by placeholders, also in the keys of managedFields. Raises ValueError if there are too many."""
    if len(codes) > _MAX_VALUES:
        raise ValueError("too many values")
    for value, code in codes.items():
        values[code] = value
        text = _replaced(text, value, code)
    return text


def _replaced(text: bytes, value: bytes, code: int) -> bytes:
    text = text.replace(b'"%b"' % value, b'"\x01%c"' % code)
    return text.replace(b'\\"%b\\"' % value, b'\\"\x01%c\\"' % code)


class Result:
    """What all writes of a shape store, with the values of one to be filled in."""

    __slots__ = ("_codes", "_fields", "_own", "_texts", "is_proven")

    def __init__(self, shape: Shape, data: bytes, version: int, fields: Mapping[str, str]) -> None:
        """Cut the values of a write out of what it stored. Raises ValueError if that is not possible."""
        head = b'%b%b"' % (_HEAD, shape.name)
        if not data.startswith(head):
            raise ValueError("the name is not where it belongs")
        text = data[len(head) :]
        text = text.replace(_VERSION_FIELD % (b"%d" % version), _VERSION_FIELD % _placeholder(_VERSION), 1)
        text = shape.times.cut(text)
        for code, value in shape.values.items():
            if code >= _CONTAINERS:
                text = _replaced(text, value, code)
        text = text.replace(shape.values[_UID], _placeholder(_UID))
        text = text.replace(_NODE_FIELD % shape.values[_NODE], _NODE_FIELD % _placeholder(_NODE))
        if shape.name in text:
            raise ValueError("the name is a part of other values")
        pieces = _PLACEHOLDER.split(text)
        self._texts: list[bytes] = pieces  # and placeholders in between
        self._codes = [code[0] for code in pieces[1::2]]
        of_address = {value.decode(): code for code, value in shape.values.items() if code >= _IPV4}
        self._fields = dict(fields)
        self._own = {"spec.nodeName": _NODE}
        if fields["status.podIP"] in of_address:
            self._own["status.podIP"] = of_address[fields["status.podIP"]]
        self.is_proven = False

    def fields(self, shape: Shape) -> dict[str, str]:
        """Return the selectable fields of a Pod."""
        return {**self._fields, **{field: shape.values[code].decode() for field, code in self._own.items()}}

    def data(self, shape: Shape, version: int) -> bytes:
        """Return what is stored of a Pod."""
        values = {**shape.values, _VERSION: b"%d" % version}
        texts = self._texts.copy()
        texts[1::2] = [values[code] for code in self._codes]
        return b'%b%b"%b' % (_HEAD, shape.name, b"".join(texts))


class StatusShapes:
    """The results of writes, by shape."""

    def __init__(self) -> None:
        self._known: dict[bytes, Result] = {}  # the shape that was used last is the last one

    def get(self, shape: Shape) -> Result | None:
        """Return the result of a shape; None if it is not known, or has not been right yet."""
        known = self._known.pop(shape.text, None)
        if known is None:
            return None
        self._known[shape.text] = known
        return known if known.is_proven else None

    def learn(self, shape: Shape, data: bytes, version: int, fields: Mapping[str, str]) -> None:
        """Note what a write stored."""
        known = self._known.get(shape.text)
        if known is not None:
            if known.data(shape, version) == data and known.fields(shape) == fields:
                known.is_proven = True
                return
            del self._known[shape.text]
        try:
            if not _is_regular(shape):
                return
            result = Result(shape, data, version, fields)
        except ValueError:
            return
        if len(self._known) >= _MAX_SHAPES:
            del self._known[next(iter(self._known))]
        self._known[shape.text] = result
