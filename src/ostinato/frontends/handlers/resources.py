"""Resources: the kinds of a handler, by class or by name.

| written | kinds |
|---|---|
| `Site`, `Unstructured.of("example.dev/v1", "Site")` | this kind |
| `"sites"` | any kind with this plural, singular, short name or kind, in the version that the server prefers |
| `"sites.example.dev"`, `"sites.v1.example.dev"` | of this group, and version |
| `"example.dev", "sites"`, `"example.dev/v1", "sites"`, `"example.dev", "v1", "sites"` | the same |
| `group=`, `version=`, `kind=`, `plural=`, `singular=`, `shortcut=`, `category=` | which match all of them |
| `EVERYTHING` | all kinds that can be watched and patched |

A name alone prefers the core group: "pods" are not those of a metrics API. Kinds that are named are found by discovery,
also if their CustomResourceDefinition is created later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.client.discovery.discovery import Catalogue
from ostinato.client.views import View, view_of
from ostinato.controllers.kinds.selector import KindsOf

_VERBS: Final = frozenset({"list", "watch"})
_EVENTS: Final = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})
_VERSIONED: Final = re.compile(r"([^.]+)\.(v\d+(?:(?:alpha|beta)\d+)?)(?:\.(.+))?")
_KEYWORDS: Final = ("group", "version", "kind", "plural", "singular", "shortcut", "category")


class Marker(Enum):
    EVERYTHING = "everything"


EVERYTHING: Final = Marker.EVERYTHING


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds for which all given conditions hold. None is any."""

    view: View[Any] | None = None  # of a class, or of a kind that is named completely
    group: str | None = None
    version: str | None = None
    any_name: str | None = None
    kind: str | None = None
    plural: str | None = None
    singular: str | None = None
    shortcut: str | None = None
    category: str | None = None

    @classmethod
    def of(cls, *given: Any, **keywords: str | None) -> Resources:
        """Parse the arguments of a decorator."""
        if unknown := set(keywords) - set(_KEYWORDS):
            raise TypeError(f"unknown argument {min(unknown)!r}; kinds are named by {', '.join(_KEYWORDS)}")
        named: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
        if not given and not named:
            raise TypeError("a handler needs a kind; write @on.create(Site) or @on.create('sites')")
        if not given or (len(given) == 1 and given[0] is EVERYTHING):
            return cls(**named)
        if len(given) == 1 and not isinstance(given[0], str):
            if isinstance(given[0], KindsOf):
                return cls(group=given[0].group, category=given[0].category or None)
            view: View[Any] = view_of(given[0])
            return cls(view=view)
        if not all(isinstance(each, str) for each in given):
            raise TypeError(f"{given!r} does not name a kind; write 'sites', or 'example.dev', 'v1', 'sites'")
        return cls(**{**_parsed(list(given)), **named})

    def __str__(self) -> str:
        if self.view is not None:
            return str(self.view.gvk)
        given = [f"{name}={getattr(self, name)}" for name in self.__struct_fields__ if getattr(self, name) is not None]
        return " ".join(given) or "every kind"

    def matches(self, info: KindInfo) -> bool:
        """Return whether a kind is one of them. The version is compared only if one is given."""
        gvk = info.gvk
        if self.view is not None:
            return gvk == self.view.gvk
        names = {info.plural, info.singular, gvk.kind, gvk.kind.lower(), *info.short_names}
        return (
            (self.group is None or self.group == gvk.group)
            and (self.version is None or self.version == gvk.version)
            and (self.any_name is None or self.any_name in names)
            and (self.kind is None or self.kind == gvk.kind)
            and (self.plural is None or self.plural == info.plural)
            and (self.singular is None or self.singular == info.singular)
            and (self.shortcut is None or self.shortcut in info.short_names)
            and (self.category is None or self.category in info.categories)
        )

    @property
    def resource(self) -> str | None:
        """The resource, as far as the names tell; None for a short name, or for many kinds."""
        if self.plural is not None or self.kind is not None:
            return self.plural or plural_of(self.kind or "")
        name = self.any_name or ""
        if name and name != name.lower():
            return plural_of(name)
        return name if name.endswith("s") else None

    @property
    def is_specific(self) -> bool:
        """Whether it names a kind, rather than many."""
        return any(each is not None for each in (self.view, self.any_name, self.kind, self.plural, self.singular))


class NamedKinds(KindsOf, frozen=True, kw_only=True):
    """The kinds of several handlers, for one controller of many kinds."""

    wanted: tuple[Resources, ...] = ()
    excluded: tuple[GroupKind, ...] = ()  # kinds that have a controller of their own

    def __post_init__(self) -> None:
        """Accept no condition of the base class: `wanted` selects."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.wanted))

    @property
    def api_group(self) -> str:
        groups = {each.group for each in self.wanted}
        only = groups.pop() if len(groups) == 1 else None
        return "*" if only is None else only

    @property
    def resources(self) -> tuple[str, ...]:
        names = {each.resource for each in self.wanted}
        if None in names:
            return ("*",)
        return tuple(f"{name}{part}" for name in names for part in ("", "/status", "/finalizers"))

    def select(self, catalogue: Catalogue, definitions: Mapping[str, Mapping[str, str]]) -> list[KindInfo]:  # noqa: ARG002
        found: dict[KindInfo, None] = {}
        for wanted in self.wanted:
            kinds = [*_watched(catalogue, wanted)]
            if wanted.is_specific and wanted.group is None:  # of several groups, the core group
                core = [each for each in kinds if not each.gvk.group]
                kinds = core or kinds
            found.update(dict.fromkeys(kinds))
        return [each for each in found if each.gvk.group_kind not in self.excluded]


class Resource(NamedTuple):
    """The argument `resource`: the names of the kind of an object."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    shortcuts: frozenset[str]
    categories: frozenset[str]
    namespaced: bool

    @classmethod
    def of(cls, view: View[Any]) -> Resource:
        info = kind_info(view)
        gvk, names = info.gvk, (frozenset(info.short_names), frozenset(info.categories))
        return cls(gvk.group, gvk.version, info.plural, gvk.kind, info.singular, *names, info.namespaced)


def kind_info(view: View[Any]) -> KindInfo:
    """Return the names of a kind, by convention where they are not known."""
    if view.info is not None:
        return view.info
    gvk = view.gvk
    return KindInfo(gvk=gvk, plural=plural_of(gvk.kind), singular=gvk.kind.lower(), namespaced=True)


def is_builtin(gvk: GroupVersionKind) -> bool:
    """Return whether a kind belongs to Kubernetes itself, rather than to a CustomResourceDefinition of an operator."""
    return "." not in gvk.group or gvk.group.endswith(".k8s.io")


def _watched(catalogue: Catalogue, wanted: Resources) -> Iterator[KindInfo]:
    seen = set(_EVENTS) if not wanted.is_specific else set()
    for version in catalogue.versions:
        for resource in version.resources:
            info = resource.info
            if info.gvk.group_kind in seen or not _VERBS.issubset(resource.verbs):
                continue
            if wanted.version is None or wanted.version == info.gvk.version:
                seen.add(info.gvk.group_kind)  # preferred versions are first
            if wanted.matches(info):
                yield info


def _parsed(given: list[str]) -> dict[str, Any]:
    """Parse one to three texts: [GROUP[/VERSION]] [VERSION] NAME."""
    *where, name = given
    if len(where) > 2 or not name:
        raise TypeError(f"{tuple(given)!r} does not name a kind; write 'sites', or 'example.dev', 'v1', 'sites'")
    found: dict[str, Any] = {"any_name": name}
    if not where:
        if match := _VERSIONED.fullmatch(name):
            found = {"any_name": match[1], "version": match[2], "group": match[3] or ""}
        elif "." in name:
            plural, _, group = name.partition(".")
            found = {"any_name": plural, "group": group}
        return found
    group, slash, version = where[0].partition("/")
    if len(where) == 2:
        found |= {"group": group, "version": where[1]}
    elif slash:
        found |= {"group": group, "version": version}
    elif group == "v1":
        found |= {"group": "", "version": "v1"}
    else:
        found["group"] = group
    return found
