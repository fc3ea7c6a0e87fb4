"""Kinds of a set: where to look for the objects of an owner.

A kind is recorded before the first object of it is created, and removed when no object of it is left. Together with
the marks on the objects (`tracking`) this is the inventory of the set: its size does not depend on the number of
objects, and a process that dies between two requests leaves no object that the next one does not find.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.client import CachedClient
from ostinato.controllers.objects.essence import KINDS_PREFIX
from ostinato.frontends.kernel.parents import write_metadata
from ostinato.frontends.kernel.sync import kind_key, parse_kind_key

_logger = logging.getLogger("ostinato.frontends")


class Kinds(Protocol):
    """The recorded kinds of the sets of one controller."""

    def known(self, owner: AnyObject, /) -> frozenset[GroupVersionKind]:
        """Return the kinds of the set of an owner."""

    async def record(self, owner: AnyObject, kinds: frozenset[GroupVersionKind], /) -> None:
        """Store the kinds of the set of an owner, unless they are stored."""


class StaticKinds:
    """Kinds that are declared in advance. Nothing is stored."""

    def __init__(self, kinds: Iterable[GroupVersionKind]) -> None:
        self._kinds = frozenset(kinds)

    def known(self, owner: AnyObject) -> frozenset[GroupVersionKind]:  # noqa: ARG002 - the same for all
        return self._kinds

    async def record(self, owner: AnyObject, kinds: frozenset[GroupVersionKind]) -> None:  # noqa: ARG002
        unknown = sorted(kind_key(kind) for kind in kinds - self._kinds)
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not a declared kind of children; declare it")


class AnnotatedKinds:
    """Kinds in an annotation of the owner, named after the field manager."""

    def __init__(self, client: CachedClient, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._annotation = KINDS_PREFIX + annotation_name(field_manager)

    def known(self, owner: AnyObject) -> frozenset[GroupVersionKind]:
        found = set()
        for each in access.annotations(owner).get(self._annotation, "").split(","):
            try:
                found.add(parse_kind_key(each.strip()))
            except ValueError as error:
                if each.strip():
                    _logger.warning(
                        "annotation ignored object=%r annotation=%s error=%s",
                        access.describe(owner),
                        self._annotation,
                        error,
                    )
        return frozenset(found)

    async def record(self, owner: AnyObject, kinds: frozenset[GroupVersionKind]) -> None:
        """Write the annotation, conditional on the resourceVersion, and update the given owner."""
        text = ",".join(sorted(map(kind_key, kinds))) or None
        if (access.annotations(owner).get(self._annotation) or None) == text:
            return
        await write_metadata(self._client, owner, {"annotations": {self._annotation: text}}, self._manager)


def annotation_name(field_manager: str) -> str:
    """Return a valid name of an annotation for a field manager, which may have any characters."""
    kept = "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "_" for each in field_manager)
    return kept[:63].strip("-_.") or "controller"
