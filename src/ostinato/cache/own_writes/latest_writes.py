"""Latest writes: objects as a reconcile last wrote them, so that it does not conflict with itself.

A reconcile that writes the status of an object and then its finalizers does not read in between; the object that it
holds is older than its own first write. `LatestWrites.of` returns the newer of the two.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import Object, origin
from ostinato.api.serializer.scalars import encode_scalar
from ostinato.cache.store.resource_versions import reached

_Identity = tuple[GroupVersionKind, NamespacedName, str]  # the last is the uid; "" for an object that was not read


class ObjectState(msgspec.Struct, frozen=True, gc=False):
    """What a later write of an object needs to know."""

    resource_version: str
    document: bytes  # JSON with at least the status
    finalizers: tuple[str, ...]

    @classmethod
    def of(cls, instance: AnyObject) -> ObjectState:
        return cls(access.resource_version(instance), _document(instance), tuple(access.finalizers(instance)))

    @property
    def status(self) -> dict[str, Any]:
        """A copy that the caller may change."""
        found = _status_decoder.decode(self.document).status
        return found if isinstance(found, dict) else {}


class LatestWrites:
    """The objects that one reconcile has written."""

    def __init__(self) -> None:
        self._written: dict[_Identity, ObjectState] = {}

    def of(self, instance: AnyObject) -> ObjectState:
        """Return the state last written, or that of `instance` if it is newer."""
        written = self._written.get(_identity(instance)) if self._written else None
        version = access.resource_version(instance)
        if written is None or (version != written.resource_version and reached(version, written.resource_version)):
            return ObjectState.of(instance)
        return written

    def wrote(self, instance: AnyObject, answer: AnyObject) -> ObjectState:
        """Record the server's response to a write of `instance`."""
        state = self._written[_identity(instance)] = ObjectState.of(answer)
        return state


class _StatusOnly(msgspec.Struct):
    status: Any = None  # Any: validated by the caller


_status_decoder = msgspec.json.Decoder(_StatusOnly)


def _identity(instance: AnyObject) -> _Identity:
    return access.gvk(instance), access.key(instance), access.uid(instance)


def _document(instance: AnyObject) -> bytes:
    """Return the JSON that the object was read from, which keeps fields at their default; else its status as JSON."""
    data = origin(instance) if isinstance(instance, Object) else None
    if data is not None:
        return data
    document = to_dict(instance) if isinstance(instance, Object) else instance
    return msgspec.json.encode({"status": document.get("status")}, enc_hook=encode_scalar)
