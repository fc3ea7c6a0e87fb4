"""Scanning: one pass over the bytes of an object finds its metadata and the fields that indexes go by.

Everything else is passed over without being decoded.

    scan = Scan([("spec", "nodeName")])
    document = scan.read(data)
    scan.fields(document)                       # {"spec.nodeName": "node-1"}

Fields that cannot be looked for in that pass are left out, and whoever needs them looks for them: those whose names
Python cannot spell, and those inside another that is looked for as a whole.
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
    """An object; subclasses have some of its fields besides."""

    metadata: Metadata | msgspec.UnsetType = msgspec.UNSET
    api_version: str | None = None
    kind: str | None = None


_bare = msgspec.json.Decoder(Document)


class Scan:
    def __init__(self, paths: Iterable[Path] = ()) -> None:
        tree: Json = {}  # by name, what is looked for inside; None if it is the field itself
        names = [".".join(path) for path in paths if _add(tree, path)]
        self._getters = {name: attrgetter(name) for name in names}
        self._decoder = _bare
        if tree:
            kind = cast("type[Document]", msgspec.defstruct("Scanned", _fields(tree), bases=(Document,), gc=False))
            self._decoder = msgspec.json.Decoder(kind)

    def read(self, data: bytes) -> Document:
        """A `msgspec.MsgspecError` if it is no object, or its metadata is none."""
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            if not self._getters:
                raise
            return _bare.decode(data)  # something else than an object is on the way to a field

    def fields(self, document: Document) -> Json | None:
        """The values by path, None for what is not there; None if they were not looked for."""
        if not self._getters or type(document) is Document:
            return None
        fields: Json = {}
        for name, get in self._getters.items():
            try:
                fields[name] = get(document)
            except AttributeError:  # nothing, or null, is on the way
                fields[name] = None
        return fields


def _add(tree: Json, path: Path) -> bool:
    """Whether it can be looked for with the others."""
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
