"""Headers: the few fields of an object that caches, queues and predicates go by, read without the rest.

Reading one costs a fraction of a full decoding, since everything else is skipped over, not built. Times stay texts.
"""

from __future__ import annotations

from ostinato.api.codec import from_json
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.struct import Struct


class Header(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None  # as on the wire
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, if there is one."""
        for reference in self.owner_references or ():
            if reference.controller:
                return reference
        return None


class _Document(Struct):
    metadata: Header | None = None


def read_header(data: bytes) -> Header:
    """The header of an encoded object; an empty one if there is no metadata."""
    return from_json(_Document, data).metadata or Header()
