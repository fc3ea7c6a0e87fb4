"""Scheme: maps kinds to Python classes and back, and converts between versions.

- A kind has one class: registering another class is an error, registering the same class again is not. A class can be
  registered for several kinds.
- Unversioned kinds (Status, discovery documents) are found by name, in any version.
- Versions of a group are in the order of `prefer`, else of registration.
- Conversions are functions from class to class, and are chained: with a hub version, every pair is covered.
- Field selectors support `metadata.name` and `metadata.namespace`, and the fields that are registered for a kind.
- There is no global scheme.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

import msgspec

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.gvk import GroupKind, GroupVersion, GroupVersionKind
from ostinato.api.object import KindInfo, Object, kind_of

Kind = type[msgspec.Struct]
FieldLabels = Callable[[str, str], tuple[str, str]]  # converts field and value of a selector, or raises ValueError
A = TypeVar("A", bound=msgspec.Struct)
B = TypeVar("B", bound=msgspec.Struct)


class SchemeError(ValueError):
    """A class or kind cannot be registered, found or converted."""


class NotRegistered(SchemeError):  # noqa: N818 - the name of the condition in Kubernetes
    """The class or kind is not registered."""


class MissingKind(SchemeError):  # noqa: N818
    """An untyped object has no kind."""


class MissingVersion(SchemeError):  # noqa: N818
    """An untyped object has no apiVersion."""


class NoConversion(SchemeError):  # noqa: N818
    """There is no chain of conversions between the classes."""


class Scheme:
    def __init__(
        self, name: str = "scheme", lazy: Mapping[GroupVersionKind, Callable[[], type[Object]]] | None = None
    ) -> None:
        """
        - `name`: the name in errors.
        - `lazy`: functions that load the class of a kind on first use.
        """
        self.name = name
        self._known = lazy or {}
        self._lazy = dict(self._known)  # known kinds that are not loaded; moved to _types when loaded
        self._types: dict[GroupVersionKind, Kind] = {}
        self._gvks: dict[Kind, list[GroupVersionKind]] = {}  # in the order of registration
        self._unversioned: dict[str, Kind] = {}
        self._preferred: dict[str, tuple[str, ...]] = {}
        self._conversions: dict[Kind, dict[Kind, Callable[[Any], Any]]] = {}
        self._field_labels: dict[GroupVersionKind, FieldLabels] = {}

    def register(self, cls: Kind, gvk: GroupVersionKind | None = None) -> None:
        """Register a class. `gvk`: the kind. Defaults to that of the class."""
        gvk = gvk or kind_of(cast("type[Object]", cls)).gvk
        if not gvk.version:
            raise SchemeError(f"version is required on all types: {gvk} {_path(cls)}")
        known = self._load(gvk)
        if known is not None and known is not cls:
            raise SchemeError(
                f"Double registration of different types for {gvk}: "
                f'old={_path(known)}, new={_path(cls)} in scheme "{self.name}"'
            )
        self._add(gvk, cls)
        self._observe(gvk)

    def register_unversioned(self, cls: Kind, gvk: GroupVersionKind | None = None) -> None:
        """Register a class that is the same in all versions; its kind name must be unique."""
        gvk = gvk or kind_of(cast("type[Object]", cls)).gvk
        known = self._unversioned.get(gvk.kind)
        if known is not None and known is not cls:
            raise SchemeError(
                f'{_path(known)} has already been registered as unversioned kind "{gvk}" - '
                f'kind name must be unique in scheme "{self.name}"'
            )
        self.register(cls, gvk)
        self._unversioned[gvk.kind] = cls

    def type_of(self, gvk: GroupVersionKind) -> Kind:
        found = self._load(gvk) or self._unversioned.get(gvk.kind)
        if found is None:
            version = gvk.group_version
            raise NotRegistered(f'no kind "{gvk.kind}" is registered for version "{version}" in scheme "{self.name}"')
        return found

    def recognizes(self, gvk: GroupVersionKind) -> bool:
        return gvk in self._types or gvk in self._lazy

    def kinds(self, instance: msgspec.Struct | Kind | Mapping[str, Any]) -> tuple[GroupVersionKind, ...]:
        """Return the kinds of an object or class; of an untyped object, its own kind, registered or not."""
        if isinstance(instance, Mapping):
            return (_untyped_kind(instance),)
        cls = instance if isinstance(instance, type) else type(instance)
        self._load_itself(cls)
        gvks = self._gvks.get(cls)
        if gvks is None:
            raise NotRegistered(f'no kind is registered for the type {_path(cls)} in scheme "{self.name}"')
        return tuple(gvks)

    def is_unversioned(self, instance: msgspec.Struct | Kind) -> bool:
        cls = instance if isinstance(instance, type) else type(instance)
        return cls in self._unversioned.values()

    def info(self, gvk: GroupVersionKind) -> KindInfo:
        """Return resource, scope and other names of a kind. Raises TypeError for a class without a kind."""
        return kind_of(cast("type[Object]", self.type_of(gvk)))

    def type_of_list(self, gvk: GroupVersionKind) -> type[Object] | None:
        """Return the item class of a list kind such as PodList; None if there is none in that version."""
        item = gvk.group_version.kind(gvk.kind.removesuffix("List"))
        known = [item, *(each for each in (*self._types, *self._lazy) if each.group_version == gvk.group_version)]
        for each in known:
            cls = self._load(each)
            if cls is not None and issubclass(cls, Object) and kind_of(cls).list_kind == gvk.kind:
                return cls
        return None

    def known_types(self, version: GroupVersion) -> dict[str, Kind]:
        """Return the classes of a version by kind."""
        gvks = [gvk for gvk in (*self._types, *self._lazy) if gvk.group_version == version]
        return {gvk.kind: self.type_of(gvk) for gvk in gvks}

    # Versions

    def prefer(self, *versions: GroupVersion) -> None:
        """Set the order of the versions of one group; others follow."""
        groups = {version.group for version in versions}
        if len(groups) != 1:
            raise SchemeError(f"must register versions for exactly one group: {', '.join(sorted(groups))}")
        group = groups.pop()
        self._preferred[group] = tuple(version.version for version in versions)

    def versions(self, group: str) -> tuple[GroupVersion, ...]:
        """Return the versions of a group, the preferred one first."""
        preferred = self._preferred.get(group, ())
        rest = [version for version in self._versions.get(group, ()) if version not in preferred]
        return tuple(GroupVersion(group, version) for version in (*preferred, *rest))

    def versions_of(self, kind: GroupKind) -> tuple[GroupVersion, ...]:
        """Return the versions of a kind, the preferred one first."""
        return tuple(version for version in self.versions(kind.group) if self.recognizes(version.kind(kind.kind)))

    # Conversion

    def register_conversion(self, source: type[A], target: type[B], function: Callable[[A], B]) -> None:
        """Register a conversion function; it must neither modify nor share parts of its argument."""
        self._conversions.setdefault(source, {})[target] = function

    def convert(self, instance: msgspec.Struct | dict[str, Any], version: GroupVersion) -> Any:
        """Convert an object, typed or a dict, to another version of its group.

        An object of this version, or an unversioned one, is returned unchanged.
        """
        if isinstance(instance, dict):
            gvk = _untyped_kind(instance)
            if gvk.group_version == version:
                return instance
            return to_dict(self.convert(from_dict(self.type_of(gvk), instance), version))
        gvks = self.kinds(instance)
        if self.is_unversioned(instance) or any(gvk.group_version == version for gvk in gvks):
            return instance
        targets = [self._load(version.kind(gvk.kind)) for gvk in gvks if gvk.group == version.group]
        for target in filter(None, targets):
            for step in self._chain(type(instance), target):
                instance = step(instance)
            return instance
        raise NotRegistered(
            f'{_path(type(instance))} is not suitable for converting to "{version}" in scheme "{self.name}"'
        )

    def convertible(self, source: Kind, target: Kind) -> bool:
        """Whether there is a chain of conversions between the classes."""
        try:
            self._chain(source, target)
        except NoConversion:
            return False
        return True

    def _chain(self, source: Kind, target: Kind) -> list[Callable[[Any], Any]]:
        """Return the shortest chain of conversions, by breadth-first search."""
        chains: dict[Kind, list[Callable[[Any], Any]]] = {source: []}
        waiting = deque([source])
        while waiting:
            cls = waiting.popleft()
            if cls is target:
                return chains[cls]
            for following, function in self._conversions.get(cls, {}).items():
                if following not in chains:
                    chains[following] = [*chains[cls], function]
                    waiting.append(following)
        raise NoConversion(f"converting ({_path(source)}) to ({_path(target)}): unknown conversion")

    # Field selectors

    def register_field_labels(self, gvk: GroupVersionKind, function: FieldLabels) -> None:
        """Register the conversion of field selectors of a kind."""
        self._field_labels[gvk] = function

    def field_label(self, gvk: GroupVersionKind, label: str, value: str) -> tuple[str, str]:
        """Convert field and value of a field selector of a kind. Raises ValueError."""
        return self._field_labels.get(gvk, _metadata_labels)(label, value)

    def _load(self, gvk: GroupVersionKind) -> Kind | None:
        loader = self._lazy.pop(gvk, None)
        if loader is not None:
            self._add(gvk, loader())
        return self._types.get(gvk)

    def _load_itself(self, cls: Kind) -> None:
        """Register a lazy kind whose class was imported directly."""
        if cls not in self._gvks and issubclass(cls, Object) and cls.__kind__ is not None:
            self._load(cls.__kind__.gvk)

    def _add(self, gvk: GroupVersionKind, cls: Kind) -> None:
        self._types[gvk] = cls
        gvks = self._gvks.setdefault(cls, [])
        if gvk not in gvks:
            gvks.append(gvk)

    @cached_property
    def _versions(self) -> dict[str, list[str]]:
        """By group, in the order of registration."""
        found: dict[str, list[str]] = {}
        for gvk in self._known:
            versions = found.setdefault(gvk.group, [])
            if gvk.version not in versions:
                versions.append(gvk.version)
        return found

    def _observe(self, gvk: GroupVersionKind) -> None:
        versions = self._versions.setdefault(gvk.group, [])
        if gvk.version not in versions:
            versions.append(gvk.version)


def _untyped_kind(instance: Mapping[str, Any]) -> GroupVersionKind:
    kind, version = instance.get("kind"), instance.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise MissingKind("Object 'Kind' is missing in 'unstructured object has no kind'")
    gvk = GroupVersionKind.of(version, kind) if isinstance(version, str) else None
    if gvk is None or not gvk.version:
        raise MissingVersion("Object 'apiVersion' is missing in 'unstructured object has no version'")
    return gvk


def _metadata_labels(label: str, value: str) -> tuple[str, str]:
    if label not in ("metadata.name", "metadata.namespace"):
        raise SchemeError(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    return label, value


def _path(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
