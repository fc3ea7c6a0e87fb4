"""Lookup: which cache can answer a read.

- A cache of all objects of a kind, in its namespaces, answers every read: what it does not have does not exist.
- A cache with a label or field selector answers a get if it has the object, and a list only with the same labels.
- A cache of metadata answers reads of metadata.
- A cache that is not started answers nothing; a read waits for one that is not synced yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.selectors.fields import Term
from ostinato.api.selectors.fields import parse as parse_fields
from ostinato.api.selectors.labels import Selector
from ostinato.cache.informer import Informer
from ostinato.cache.informers import Informers
from ostinato.cache.lister import selected, selector_of
from ostinato.cache.own_writes.expectations import wait_for
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.reflector.feed import Feed
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.store import NoSuchIndex
from ostinato.client.discovery.paths import check_namespace
from ostinato.client.options import FieldSelection, LabelSelection, selection_query
from ostinato.client.views import MetadataOf, View
from ostinato.world import Clock

_NAME = "metadata.name"
_NAMESPACE = "metadata.namespace"


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a list. `index`: name and value; `fresh`: wait for own writes."""

    namespace: str = ""
    labels: LabelSelection = None
    fields: FieldSelection = None
    index: tuple[str, str] | None = None
    fresh: bool = True


class CachedEntries(msgspec.Struct, frozen=True):
    """The objects of a list, and the resourceVersion of the cache."""

    entries: list[Entry]
    resource_version: str


class CacheLookup:
    def __init__(self, informers: Informers, clock: Clock, read_timeout: float) -> None:
        self._informers = informers
        self._clock = clock
        self.read_timeout = read_timeout  # seconds that a read waits for a cache

    def watching(self, view: View[Any]) -> Sequence[Informer]:
        """Return the running caches of this form of objects, those without a selector first."""
        informers = self._informers.all(view.gvk)
        if len(informers) == 1 and informers[0].is_running and not informers[0].metadata_only:
            return informers  # the common case
        metadata = isinstance(view, MetadataOf)
        found = [each for each in informers if each.is_running and (metadata or not each.metadata_only)]
        return sorted(found, key=_is_partial)

    async def wait_synced(self, informer: Informer) -> None:
        """Wait until a cache has synced."""
        await informer.synced(self.read_timeout)

    async def wait_fresh(self, feed: Feed, key: NamespacedName | None = None, namespace: str = "") -> None:
        """Wait until a cache has observed own writes."""
        pending = feed.expectations.pending(key, namespace)
        if pending:
            await wait_for(pending, self.read_timeout, self._clock)

    async def find(self, view: View[Any], query: ListQuery) -> CachedEntries | None:
        """List from a cache that has all requested objects; None if there is no such cache."""
        labels = selector_of(query.labels)
        for informer in self.watching(view):
            if not _answers(informer, labels):
                continue
            feed = informer.feed_of(query.namespace)
            if feed is None:
                continue
            if not feed.has_synced:
                await self.wait_synced(informer)
            assert feed.info is not None, "a synced cache knows its kind"
            check_namespace(feed.info, query.namespace)
            if query.fresh:
                await self.wait_fresh(feed, namespace=query.namespace)
            return CachedEntries(_select(feed.store, query, labels), feed.store.resource_version)
        return None


def is_authoritative(informer: Informer) -> bool:
    """Whether an object that the cache does not have, in its namespaces, does not exist."""
    return not _is_partial(informer)


def _is_partial(informer: Informer) -> bool:
    return informer.selector is not None or not informer.complete


def _answers(informer: Informer, labels: Selector) -> bool:
    """Whether the cache has all objects that match the labels."""
    if not informer.complete:
        return False
    return informer.selector is None or set(informer.selector.requirements) <= set(labels.requirements)


def _select(store: ReadableStore, query: ListQuery, labels: Selector) -> list[Entry]:
    narrowed = _by_indexes(store, query)
    if narrowed is None:
        return selected(store, query.namespace, labels)
    return [
        entry
        for entry in narrowed
        if (not query.namespace or entry.key.namespace == query.namespace)
        and (labels.empty or labels.matches(entry.labels))
    ]


def _by_indexes(store: ReadableStore, query: ListQuery) -> list[Entry] | None:
    """Return the objects that match the index and fields of a query; None if it has neither."""
    parts = [store.by_index(*query.index)] if query.index is not None else []
    for _, text in selection_query(None, query.fields):
        parts += [_having(store, term) for term in parse_fields(text).terms]
    if not parts:
        return None
    first, *others = parts
    for other in others:
        keys = {entry.key for entry in other}
        first = [entry for entry in first if entry.key in keys]
    return first


def _having(store: ReadableStore, term: Term) -> list[Entry]:
    field, value = term.field, term.value
    if term.negated:
        raise ValueError(f"{term}: a cache supports equality only; use client.live")
    if field == _NAMESPACE:
        return store.entries(value) if value else []
    if field == _NAME:
        return [entry for entry in store.entries() if entry.key.name == value]
    try:
        return store.by_index(field, value)
    except NoSuchIndex:
        raise ValueError(
            f"{field}: not indexed in the cache; add the index by_field({field!r}), or use client.live"
        ) from None
