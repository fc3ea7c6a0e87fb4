"""Layout of etcd: the key of each object, and the kind and media type in which it is stored.

- `data/etcd_layout.json` has what kube-apiserver v1.36 was observed to write: path and storage version of each built-in
  collection, and "json" for the two kinds that have no protobuf there. One row differs: see `definitions`.
- Custom resources are below /registry/GROUP/PLURAL/.
- A collection is named "plural" or "plural.group"; its keys are "name" or "namespace/name".
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec

EVENTS = "events"
RESTORING = "/ostinato/restoring"  # below the prefix: the mark of a restore that is not complete


class Stored(NamedTuple):
    """How the objects of a built-in collection are stored."""

    path: str  # below the prefix
    api_version: str
    kind: str
    media: str = "protobuf"


@cache
def _table() -> dict[str, Stored]:
    data = resources.files("ostinato.server").joinpath("data/etcd_layout.json").read_bytes()
    return {name: Stored(*row) for name, row in msgspec.json.decode(data, type=dict[str, list[str]]).items()}


class Layout:
    def __init__(self, prefix: str) -> None:
        """`prefix`: of all keys, without a slash at its end."""
        self._prefix = f"{prefix}/"
        self.start = self._prefix.encode()
        self._table = _table()
        self._names = {stored.path: name for name, stored in self._table.items()}
        self._heads: dict[str, str] = {}  # by collection: what its keys begin with

    def stored(self, collection: str) -> Stored | None:
        """How a built-in collection is stored; None for a custom resource."""
        return self._table.get(collection)

    def key(self, collection: str, key: str) -> bytes:
        head = self._heads.get(collection)
        if head is None:
            stored = self._table.get(collection)
            plural, _, group = collection.partition(".")
            path = f"{group}/{plural}" if stored is None else stored.path
            head = self._heads[collection] = f"{self._prefix}{path}/"
        return (head + key).encode()

    def split(self, key: bytes) -> tuple[str, str] | None:
        """The collection and the key of an object; None for other keys, such as those of other programs."""
        try:
            first, _, rest = key[len(self.start) :].decode().partition("/")
        except UnicodeDecodeError:
            return None
        name = self._names.get(first)
        if name is None:
            second, _, rest = rest.partition("/")
            name = self._names.get(f"{first}/{second}")
            if name is None and "." in first and second:  # the group of a custom resource has a dot
                name = f"{second}.{first}"
        return None if name is None or not rest else (name, rest)
