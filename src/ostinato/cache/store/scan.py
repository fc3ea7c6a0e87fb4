"""Scan: finds the metadata and the indexed fields of an object in one pass over its JSON.

All other fields are skipped without being decoded.

    scan = Scan([("spec", "nodeName")])
    document = scan.read(data)
    scan.fields(document)                       # {"spec.nodeName": "node-1"}

Some paths cannot be part of that pass, and the index decodes them itself: those with names that are not Python
identifiers, and those inside another indexed field.
"""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

Json = dict[str, Any]
Path = tuple[str, ...]

_OWN: Final = frozenset({"metadata", "apiVersion", "kind"})


class Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    generation: int | None = 0
    deletion_timestamp: str | None = None
    labels: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    managed_fields: msgspec.Raw = msgspec.Raw()


class Document(msgspec.Struct, rename={"api_version": "apiVersion"}, gc=False):
    """The scanned part of an object; generated subclasses add the indexed fields."""

    metadata: Metadata | msgspec.UnsetType = msgspec.UNSET
    api_version: str | None = None
    kind: str | None = None


_bare = msgspec.json.Decoder(Document)


class Scan:
    def __init__(self, paths: Iterable[Path] = ()) -> None:
        tree: Json = {}  # by name, the fields inside; None for an indexed field
        names = [".".join(path) for path in paths if _add(tree, path)]
        self._getters = {name: attrgetter(name) for name in names}
        self._decoder = _bare
        if tree:
            kind = cast("type[Document]", msgspec.defstruct("Scanned", _fields(tree), bases=(Document,), gc=False))
            self._decoder = msgspec.json.Decoder(kind)

    def read(self, data: bytes) -> Document:
        """Raise `msgspec.MsgspecError` for invalid JSON or metadata."""
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            if not self._getters:
                raise
            return _bare.decode(data)  # an unexpected type on the path of a field

    def fields(self, document: Document) -> Json | None:
        """Return the values by path, None for absent ones; None if the scan did not include them."""
        if not self._getters or type(document) is Document:
            return None
        fields: Json = {}
        for name, get in self._getters.items():
            try:
                fields[name] = get(document)
            except AttributeError:  # absent or null on the path
                fields[name] = None
        return fields


def _add(tree: Json, path: Path) -> bool:
    """Add a path; return whether it can be part of the pass."""
    if path[0] in _OWN or any(not name.isidentifier() or iskeyword(name) or name[0] == "_" for name in path):
        return False
    inside: Json | None = tree
    for name in path[:-1]:
        inside = inside.get(name, {}) if inside is not None else None
    if inside is None or inside.get(path[-1]):
        return False
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = None
    return True


def _fields(tree: Json) -> list[tuple[str, Any, Any]]:
    return [
        (name, Any if inside is None else msgspec.defstruct("Inside", _fields(inside), gc=False) | None, None)
        for name, inside in tree.items()
    ]
