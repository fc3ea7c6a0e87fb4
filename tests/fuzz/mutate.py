"""Mutations: what is valid, changed a little, in all the ways that have broken parsers before."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

LONG = "x" * 5000
SCALARS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1 << 31,
    -(1 << 31) - 1,
    (1 << 63) - 1,
    1 << 63,
    -(1 << 63) - 1,
    1 << 64,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "a",
    "\x00",
    "\n",
    "\u2028",
    "\ud800",
    "\U0001f600",
    "\u202e",
    "..",
    "a/b",
    "a/b/c",
    "/",
    "[",
    "]",
    "%",
    "%00",
    "%s{}",
    "-",
    "1",
    "1e309",
    "1Ki",
    "-1.5e400n",
    "9" * 400,
    "999999999999-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "::1",
    "0x7f.1",
    "a=b,c in (",
    "((((((((((",
    "$(X)",
    LONG,
)
CONTAINERS: tuple[Any, ...] = (
    {},
    [],
    [[]],
    [{}],
    {"": ""},
    {"": None},
    {"a": {}},
    [None],
    ["", ""],
    [1, "a", None, {}],
)
KEYS = (
    "",
    " ",
    "\x00",
    "[",
    "[0]",
    ".",
    "a.b",
    "..",
    "\ud800",
    "metadata",
    "name",
    "kind",
    "f:a",
    "k:{",
    "v:",
    "i:-1",
    LONG,
)
# What an attacker writes where objects describe themselves.
METADATA: tuple[dict[str, Any], ...] = (
    {"": 1},
    {"labels": {"": ""}, "annotations": {"": ""}},
    {"labels": {"a": None}, "annotations": None},
    {"labels": [], "finalizers": {}},
    {"finalizers": [""]},
    {"finalizers": ["a", "a", None]},
    {"ownerReferences": [{}]},
    {"ownerReferences": [None]},
    {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": "true"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}] * 2},
    {"managedFields": [{}]},
    {"managedFields": [None]},
    {"managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}]},
    {"managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": []}]},
    {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:a": 1}}]},
    {"managedFields": [{"fieldsType": "FieldsV1", "fieldsV1": {"k:{": {}, "v:": {}, "i:x": {}, "": {}, ".": 1}}]},
    {"managedFields": [{"apiVersion": "a/b/c", "operation": "None", "time": "x", "subresource": 1}]},
    {"managedFields": {}},
    {"creationTimestamp": 1},
    {"creationTimestamp": "x"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": -(1 << 63)},
    {"generation": "1", "resourceVersion": 1},
    {"resourceVersion": "-1"},
    {"resourceVersion": "9" * 30},
    {"uid": "x", "selfLink": "/x"},
    {"generateName": "\u00e9" * 80},
    {"generateName": "..", "name": None},
    {"name": "..", "namespace": ".."},
    {"name": "a/b"},
    {"namespace": 1},
)


class Mutator:
    def __init__(self, seed: object) -> None:
        self.rng = random.Random(str(seed))

    def data(self, data: bytes, most: int = 6) -> bytes:
        """Bytes: inserted, removed, changed, repeated, cut off."""
        rng, result = self.rng, bytearray(data)
        for _ in range(rng.randint(1, most)):
            at = rng.randrange(len(result) + 1)
            match rng.randrange(7):
                case 0:
                    result[at:at] = rng.randbytes(rng.randint(1, 4))
                case 1:
                    del result[at : at + rng.randint(1, 8)]
                case 2:
                    result[at : at + 1] = bytes([rng.randrange(256)])
                case 3:
                    start = rng.randrange(len(result) + 1)
                    result[at:at] = result[start : start + rng.randint(1, 40)]
                case 4 if rng.random() < 0.2:
                    del result[at:]
                case 5:
                    result[at:at] = rng.choice(
                        (b"\r\n", b"\n", b"\x00", b"\xff", b"{", b"[", b'"', b" ", b"\t", b":", b",")
                    )
                case _:
                    result[at : at + 1] = rng.choice((b"\x00", b"\x7f", b"\x80", b"\xff", b"0", b"9", b"-"))
        return bytes(result)

    def value(self, value: Any, most: int = 4) -> Any:
        """A JSON value: parts of it replaced, removed, renamed, nested, repeated."""
        changed = copy.deepcopy(value)
        for _ in range(self.rng.randint(1, most)):
            changed = self._changed(changed)
        return changed

    def metadata(self, value: Any) -> Any:
        """An object with something wrong in its metadata."""
        if not isinstance(value, dict):
            return value
        found = value.get("metadata")
        return {**value, "metadata": {**(found if isinstance(found, dict) else {}), **self.rng.choice(METADATA)}}

    def text(self, value: Any) -> bytes:
        """A value as JSON, which may say the same key twice."""
        text = json.dumps(value, ensure_ascii=self.rng.random() < 0.5).encode("utf-8", "surrogatepass")
        if self.rng.random() < 0.1:
            text = text.replace(b"{", b'{"name":1,"name":"a",', 1)
        if self.rng.random() < 0.05:
            depth = self.rng.choice((100, 1000, 20_000))
            text = text.replace(b"null", b"[" * depth + b"]" * depth, 1)
        return text

    def _changed(self, value: Any) -> Any:
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.9:
            key = rng.choice(list(value))
            match rng.randrange(10):
                case 0:
                    del value[key]
                case 1:
                    value[rng.choice(KEYS)] = value.pop(key)
                case 2:
                    value[rng.choice(KEYS)] = self._new()
                case 3:
                    value[key] = self._new()
                case _:
                    value[key] = self._changed(value[key])
            return value
        if isinstance(value, list) and value and rng.random() < 0.9:
            at = rng.randrange(len(value))
            match rng.randrange(8):
                case 0:
                    del value[at]
                case 1:
                    value.insert(at, self._new())
                case 2:
                    value.append(copy.deepcopy(value[at]))
                case _:
                    value[at] = self._changed(value[at])
            return value
        return self._new()

    def _new(self) -> Any:
        chosen = self.rng.choice(SCALARS if self.rng.random() < 0.75 else CONTAINERS)
        return copy.deepcopy(chosen)
