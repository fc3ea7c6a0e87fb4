"""Latest writes: objects as a run itself last wrote them, so that it is not in conflict with itself.

A run that writes the status of an object, and then its finalizers, has read neither in between; the object that it has
in hand is older than what it knows. What was read later than it was written is taken as it was read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api import access
from ostinato.api.access import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.leaves import encode_leaf
from ostinato.api.object import Object, origin
from ostinato.cache.store.resource_versions import reached

_Identity = tuple[GroupVersionKind, NamespacedName, str]  # the last is the uid; what somebody made up has none


class ObjectState(msgspec.Struct, frozen=True, gc=False):
    """What is known of an object."""

    version: str
    document: bytes  # JSON that has its status at least
    finalizers: tuple[str, ...]

    @classmethod
    def of(cls, instance: AnyObject) -> ObjectState:
        return cls(access.resource_version(instance), _document(instance), tuple(access.finalizers(instance)))

    @property
    def status(self) -> dict[str, Any]:
        """One's own."""
        found = _alone.decode(self.document).status
        return found if isinstance(found, dict) else {}


class LatestWrites:
    """What one run has written."""

    def __init__(self) -> None:
        self._written: dict[_Identity, ObjectState] = {}

    def of(self, instance: AnyObject) -> ObjectState:
        """The object as it was last written, unless what is given was read later."""
        written = self._written.get(_identity(instance)) if self._written else None
        version = access.resource_version(instance)
        if written is None or (version != written.version and reached(version, written.version)):
            return ObjectState.of(instance)
        return written

    def wrote(self, instance: AnyObject, answer: AnyObject) -> ObjectState:
        """The server answered a write of the object with this."""
        seen = self._written[_identity(instance)] = ObjectState.of(answer)
        return seen


class _StatusAlone(msgspec.Struct):
    """Of an object."""

    status: Any = None  # Any: what a server sends


_alone = msgspec.json.Decoder(_StatusAlone)


def _identity(instance: AnyObject) -> _Identity:
    return access.gvk(instance), access.key(instance), access.uid(instance)


def _document(instance: AnyObject) -> bytes:
    """The JSON that the object was read from, as a class leaves out what is at its default; or one of its status."""
    data = origin(instance) if isinstance(instance, Object) else None
    if data is not None:
        return data
    document = to_dict(instance) if isinstance(instance, Object) else instance
    return msgspec.json.encode({"status": document.get("status")}, enc_hook=encode_leaf)
