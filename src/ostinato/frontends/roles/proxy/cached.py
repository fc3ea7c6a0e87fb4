"""Reads of proxied requests from the cache.

- Only kinds that the operator watches anyway; a read starts no watch.
- A read never returns a state older than what a run of this operator has written: until the cache has seen the write,
  reads of the kind go to the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.selectors import labels as label_selectors
from ostinato.api.selectors.label_parser import SelectorError
from ostinato.cache.informer import Informer
from ostinato.cache.informers import Informers
from ostinato.cache.lister import selected
from ostinato.cache.store.resource_versions import reached
from ostinato.client.views import Unstructured
from ostinato.frontends.roles.proxy.route import Route

Json = dict[str, Any]
Query = Mapping[str, Sequence[str]]

_LABELS: Final = "labelSelector"
_HARMLESS: Final = frozenset({_LABELS, "pretty", "timeout", "timeoutSeconds"})


class CachedReads:
    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._written: dict[GroupVersionKind, str] = {}  # resourceVersion of the last write
        self._deleted: dict[GroupVersionKind, set[NamespacedName]] = {}  # until the cache has dropped them

    def wrote(self, kind: KindInfo, written: Json) -> None:
        """Record a write, given the server's answer."""
        version = access.resource_version(written)
        if version:
            self._written[kind.gvk] = version

    def deleted(self, kind: KindInfo, key: NamespacedName) -> None:
        self._deleted.setdefault(kind.gvk, set()).add(key)

    def read(self, kind: KindInfo, route: Route, query: Query) -> Json | None:
        """Return an object, or a list; None if the server must be asked, for an object that does not exist too."""
        if not _HARMLESS.issuperset(query) or route.subresource:
            return None
        for informer in self._informers.all(kind.gvk):
            if self._is_usable(informer, kind, route.namespace):
                view = Unstructured(kind.gvk, kind)
                if route.name:
                    entry = informer.store.get(NamespacedName(route.namespace, route.name))
                    return None if entry is None else entry.read(view)
                try:
                    selector = label_selectors.parse(next(iter(query.get(_LABELS, ())), ""))
                except (SelectorError, ValueError):
                    return None  # the server explains it
                found = selected(informer.store, route.namespace, selector)
                return {
                    "apiVersion": kind.gvk.api_version,
                    "kind": kind.list_kind or f"{kind.gvk.kind}List",
                    "metadata": {"resourceVersion": informer.resource_version},
                    "items": [entry.read(view) for entry in found],
                }
        return None

    def _is_usable(self, informer: Informer, kind: KindInfo, namespace: str) -> bool:
        if not informer.has_synced or informer.has_stopped or informer.metadata_only or not informer.complete:
            return False
        feed = informer.feed_of(namespace)
        if informer.selector is not None or feed is None:
            return False
        if kind.gvk in self._written and not reached(feed.store.resource_version, self._written[kind.gvk]):
            return False
        gone = self._deleted.get(kind.gvk, set())
        gone -= {key for key in gone if informer.store.get(key) is None}
        return not gone
