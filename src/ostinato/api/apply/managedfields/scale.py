"""Ownership through the scale subresource: the owner of a Scale's `.spec.replicas` owns the replicas of its parent.

A Scale has no managedFields of its own. Before a write those of the parent are converted to the Scale's; afterwards
they are converted back. Corresponds to `ScaleHandler` in apimachinery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ostinato.api.apply.fieldpath.field_set import Path, difference, field_path, from_paths, has
from ostinato.api.apply.managedfields.entries import Entry, Managed, decode, encode
from ostinato.api.apply.managedfields.updater import Owned

SCALE_VERSION: Final = "autoscaling/v1"

_REPLICAS = field_path("spec", "replicas")


class ScaleOwnership:
    """Converts between the managedFields of a parent and those of its Scale."""

    def __init__(self, parent: Any, api_version: str, replicas: Mapping[str, Path | None]) -> None:
        """
        - `parent`: the parent's managedFields. Raises ManagedFieldsError if they are invalid.
        - `replicas`: the path of the replicas by apiVersion of the parent; None for a version without the subresource.
        """
        self._parent = decode(parent)
        self._api_version = api_version
        self._replicas = replicas

    def to_scale(self) -> list[Entry]:
        """Return the managedFields of the Scale: the managers of the parent's replicas."""
        managed = Managed()
        for identity, owned in self._parent.owners.items():
            path = self._replicas.get(owned.api_version)
            if path is not None and has(owned.fields, path):
                managed.owners[identity] = Owned(from_paths(_REPLICAS), SCALE_VERSION, owned.applied)
                if identity in self._parent.times:
                    managed.times[identity] = self._parent.times[identity]
        return encode(managed)

    def to_parent(self, scale: Any) -> list[Entry]:
        """Return the parent's managedFields after the Scale was written with these."""
        owners = decode(scale).owners
        managed = Managed(times=self._parent.times)
        for identity, owned in self._parent.owners.items():
            if owned.api_version not in self._replicas:
                continue
            path = self._replicas[owned.api_version]
            if path is None or not has(owned.fields, path) or identity in owners:
                managed.owners[identity] = owned
                if path is not None and has(owned.fields, path):
                    del owners[identity]
            elif rest := difference(owned.fields, from_paths(path)):
                managed.owners[identity] = owned._replace(fields=rest)
        path = self._replicas.get(self._api_version)
        for identity, owned in owners.items():
            if path is not None and has(owned.fields, _REPLICAS):
                managed.owners[identity] = Owned(from_paths(path), self._api_version, owned.applied)
        return encode(managed)
