"""Identifiers: group, version, kind and resource; namespace and name.

The core group is the empty string. `apiVersion` is "v1" for the core group and "group/version" for all others.
"""

from __future__ import annotations

import re

import msgspec

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


class GroupVersion(msgspec.Struct, frozen=True, order=True, gc=False):
    group: str
    version: str

    @classmethod
    def parse(cls, text: str) -> GroupVersion:
        """Parse an `apiVersion`: "" and "/" are empty, "v1" is core, "apps/v1" has a group. Raises ValueError."""
        match text.split("/"):
            case [""] | ["", ""]:
                return cls("", "")
            case [version]:
                return cls("", version)
            case [group, version]:
                return cls(group, version)
        raise ValueError(f"unexpected GroupVersion string: {text}")

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def kind(self, kind: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, kind)

    def resource(self, resource: str) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, resource)


class GroupKind(msgspec.Struct, frozen=True, order=True, gc=False):
    group: str
    kind: str

    @classmethod
    def parse(cls, text: str) -> GroupKind:
        """Parse "Kind" or "Kind.group"."""
        kind, _, group = text.partition(".")
        return cls(group, kind)

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(msgspec.Struct, frozen=True, order=True, gc=False):
    group: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> GroupResource:
        """Parse "resource" or "resource.group"."""
        resource, _, group = text.partition(".")
        return cls(group, resource)

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersionKind(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, api_version: str, kind: str) -> GroupVersionKind:
        """From an object's `apiVersion` and `kind`."""
        return GroupVersion.parse(api_version).kind(kind)

    @classmethod
    def parse(cls, text: str) -> tuple[GroupVersionKind | None, GroupKind]:
        """Parse a command line argument: "Kind.version.group" can be read both ways, "Kind.group" only the second."""
        both = text.split(".", 2)
        full = cls(both[2], both[1], both[0]) if len(both) == 3 else None
        return full, GroupKind.parse(text)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def list_kind(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind + "List")

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class GroupVersionResource(msgspec.Struct, frozen=True, order=True, gc=False):
    group: str
    version: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> tuple[GroupVersionResource | None, GroupResource]:
        """Parse a command line argument: "resource.version.group" is read both ways, "resource.group" the second."""
        both = text.split(".", 2)
        full = cls(both[2], both[1], both[0]) if len(both) == 3 else None
        return full, GroupResource.parse(text)

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Resource={self.resource}"


class NamespacedName(msgspec.Struct, frozen=True, order=True, gc=False):
    """The key of an object within its kind; the namespace is "" for cluster-scoped objects."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> NamespacedName:
        """Parse "namespace/name" or, for cluster-scoped objects, "name". Raises ValueError."""
        match text.split("/"):
            case [name]:
                return cls("", name)
            case [namespace, name]:
                return cls(namespace, name)
        raise ValueError(f"unexpected key format: {text!r}; want name or namespace/name")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def version_priority(version: str) -> tuple[int, int, int, int, str]:
    """Return a sort key of API versions: stable before beta before alpha, higher numbers first, other names last."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = found.groups()
    return (0, -_STABILITY[stability], -int(major), -int(minor or 0), "")
