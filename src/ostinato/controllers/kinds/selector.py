"""Kind selector: the kinds of a controller for many kinds, given to `@controller` in place of one kind.

| selector | kinds |
|---|---|
| `KindsOf(group="example.dev")` | of an API group; "" is the core group |
| `KindsOf(group="*.example.dev")` | of all groups that match |
| `KindsOf(category="all")` | of a category, as in `kubectl get all` |
| `KindsOf(definition_labels="team=a")` | whose CustomResourceDefinition matches a label selector |

Conditions are combined: all must hold. Only kinds that can be listed, watched and patched are selected, each in the
version that the server prefers. Events are not selected: a report about one would be another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from ostinato.api.gvk import GroupKind
from ostinato.api.object import KindInfo
from ostinato.cache.lister import selector_of
from ostinato.client.discovery.discovery import Catalogue
from ostinato.client.options import LabelSelection

_VERBS: Final = frozenset({"get", "list", "watch", "patch"})
_EVENTS: Final = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})


class KindsOf(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds for which all given conditions hold; see the module."""

    group: str | None = None
    category: str = ""
    definition_labels: LabelSelection = None

    def __post_init__(self) -> None:
        if self.group is None and not self.category and self.definition_labels is None:
            raise ValueError('KindsOf() selects nothing; give group="example.dev", category= or definition_labels=')
        selector_of(self.definition_labels)

    def __str__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if getattr(self, name)]
        return f"kinds of {', '.join(given) or 'the core group'}"

    @property
    def api_group(self) -> str:
        """The one group of the kinds; "*" if there may be several."""
        return "*" if self.group is None or "*" in self.group or "?" in self.group else self.group

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of the kinds, with their subresources; "*" if they are not known in advance."""
        return ("*",)

    def select(self, catalogue: Catalogue, definitions: Mapping[str, Mapping[str, str]]) -> list[KindInfo]:
        """Return the selected kinds of a server. `definitions`: labels of its CustomResourceDefinitions, by name."""
        return list(self._selected(catalogue, definitions))

    def _selected(self, catalogue: Catalogue, definitions: Mapping[str, Mapping[str, str]]) -> Iterator[KindInfo]:
        seen = set(_EVENTS)
        for version in catalogue.versions:
            for resource in version.resources:
                info = resource.info
                if info.gvk.group_kind in seen or not _VERBS.issubset(resource.verbs):
                    continue
                seen.add(info.gvk.group_kind)  # preferred versions are first
                if self._matches(info, definitions):
                    yield info

    def _matches(self, info: KindInfo, definitions: Mapping[str, Mapping[str, str]]) -> bool:
        if self.group is not None and not fnmatchcase(info.gvk.group, self.group):
            return False
        if self.category and self.category not in info.categories:
            return False
        if self.definition_labels is None:
            return True
        labels = definitions.get(f"{info.plural}.{info.gvk.group}")
        return labels is not None and selector_of(self.definition_labels).matches(labels)
