"""References: which object, in messages and lists."""

from __future__ import annotations

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupVersionKind, NamespacedName


class ObjectRef(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, instance: AnyObject) -> ObjectRef:
        gvk, key = access.gvk(instance), access.key(instance)
        return cls(gvk.api_version, gvk.kind, key.namespace, key.name)

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind.of(self.api_version, self.kind)

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
