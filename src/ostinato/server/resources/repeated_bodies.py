"""Bodies that are created again and again: a controller sends the same one for every Pod of a ReplicaSet.

Such a body has `generateName` instead of a name. The first steps of a create decode, check and default it and add its
managedFields. Except for the time, their result depends on the body and on how it was sent alone, so it is cached.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

_MAX_BODIES: Final = 32
_MAX_BYTES: Final = 16 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Sent(NamedTuple):
    """A body, and what else affects the object that is made of it."""

    data: bytes
    media: str
    namespace: str
    manager: str  # of its fields
    validation: str


def may_repeat(data: bytes, media: str) -> bool:
    """Whether a body may have a generated name; a quick test, which never misses one as clients encode them."""
    return media != "json" or b'"generateName"' in data


class RepeatedBodies:
    """The bodies of one resource."""

    def __init__(self) -> None:
        self._known: dict[Sent, bytes] = {}  # the objects, encoded; the body that was used last is the last one

    def get(self, sent: Sent, now: str) -> dict[str, Any] | None:
        """Return a new object of the body; None if it is not known. `now`: the time of its managedFields."""
        known = self._known.pop(sent, None)
        if known is None:
            return None
        self._known[sent] = known
        obj: dict[str, Any] = _decode(known)
        for entry in obj["metadata"].get("managedFields", ()):
            entry["time"] = now
        return obj

    def put(self, sent: Sent, obj: dict[str, Any]) -> None:
        """Cache an object as it is before admission, unless it has a name: that can be created only once."""
        meta = obj["metadata"]
        if meta.get("name") or not meta.get("generateName") or len(sent.data) > _MAX_BYTES:
            return
        if len(self._known) >= _MAX_BODIES:
            del self._known[next(iter(self._known))]
        self._known[sent] = _encode(obj)
