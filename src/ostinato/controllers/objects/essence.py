"""Essence: what users set of an object: labels, annotations, and all fields beside metadata and status.

Two states of an object with the same digest differ only in what the system and controllers write: status, generation,
finalizers, managed fields.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.object import Object, origin

Json = dict[str, Any]

CHANGES_PREFIX = "changes.ostinato.dev/"  # of annotations in which controllers record what they have reconciled
KINDS_PREFIX = "kinds.ostinato.dev/"  # of annotations in which controllers record the kinds of the objects of an owner
_SYSTEM = frozenset({"apiVersion", "kind", "metadata", "status"})


def content(instance: AnyObject) -> Json:
    """Return an object as it was read, in JSON; not a copy if it is a dict already."""
    if not isinstance(instance, Object):
        return instance
    data = origin(instance)
    found: Json = to_dict(instance) if data is None else msgspec.json.decode(data)
    return found


def digest(instance: AnyObject) -> bytes:
    """Return a digest of the essence."""
    whole = content(instance)
    metadata = whole.get("metadata") or {}
    essence = {name: value for name, value in whole.items() if name not in _SYSTEM}
    annotations = (metadata.get("annotations") or {}).items()
    own = {name: value for name, value in annotations if not name.startswith((CHANGES_PREFIX, KINDS_PREFIX))}
    essence["metadata"] = [metadata.get("labels") or {}, own]
    return blake2b(msgspec.json.encode(essence, order="deterministic"), digest_size=16).digest()
