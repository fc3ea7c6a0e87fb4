"""Cached reads: which cache has the answer to a query, and whether it has all of it.

- A cache of all objects of a kind, in the namespaces that it follows, answers every query about them: what it has
  not does not exist.
- A cache of some of them, by labels or fields, has an object or does not know; it answers a list only if the list asks
  for the same labels.
- A cache of metadata answers questions about metadata.
- A cache that nobody has started answers nothing. One that is not synced yet is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.api.fields import Term
from ostinato.api.fields import parse as parse_fields
from ostinato.api.gvk import NamespacedName
from ostinato.api.labels import Selector
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
    """What a list asks for. `index` is the name of an index and a value; `fresh` is to wait for own writes."""

    namespace: str = ""
    labels: LabelSelection = None
    fields: FieldSelection = None
    index: tuple[str, str] | None = None
    fresh: bool = True


class CachedEntries(msgspec.Struct, frozen=True):
    """The objects of a list, and the version of the cache that they are from."""

    entries: list[Entry]
    resource_version: str


class CacheLookup:
    def __init__(self, informers: Informers, clock: Clock, read_timeout: float) -> None:
        self._informers = informers
        self._clock = clock
        self.read_timeout = read_timeout  # seconds that a read waits for a cache

    def watching(self, view: View[Any]) -> Sequence[Informer]:
        """The caches that have objects in this form, those that have all of them first."""
        informers = self._informers.all(view.gvk)
        if len(informers) == 1 and informers[0].is_running and not informers[0].metadata_only:
            return informers  # as nearly always
        metadata = isinstance(view, MetadataOf)
        found = [each for each in informers if each.is_running and (metadata or not each.metadata_only)]
        return sorted(found, key=_is_partial)

    async def wait_synced(self, informer: Informer) -> None:
        """Wait until a cache has what was there when it began."""
        await informer.synced(self.read_timeout)

    async def wait_fresh(self, feed: Feed, key: NamespacedName | None = None, namespace: str = "") -> None:
        """Wait until a cache has seen what this process wrote."""
        pending = feed.expectations.pending(key, namespace)
        if pending:
            await wait_for(pending, self.read_timeout, self._clock)

    async def find(self, view: View[Any], query: ListQuery) -> CachedEntries | None:
        """The objects of a list, from a cache that has all of them; None if there is no such cache."""
        labels = selector_of(query.labels)
        for informer in self.watching(view):
            if not _answers(informer, labels):
                continue
            feed = informer.feed_of(query.namespace)
            if feed is None:
                continue
            if not feed.has_synced:
                await self.wait_synced(informer)
            assert feed.info is not None, "a cache that is filled knows its kind"
            check_namespace(feed.info, query.namespace)
            if query.fresh:
                await self.wait_fresh(feed, namespace=query.namespace)
            return CachedEntries(_select(feed.store, query, labels), feed.store.resource_version)
        return None


def is_authoritative(informer: Informer) -> bool:
    """Whether what a cache has not, in the namespaces it follows, does not exist."""
    return not _is_partial(informer)


def _is_partial(informer: Informer) -> bool:
    return informer.selector is not None or not informer.complete


def _answers(informer: Informer, labels: Selector) -> bool:
    """Whether all objects that a list asks for are in a cache, as far as labels and fields go."""
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
    """The objects that fit all that is asked of indexes and fields; None if nothing is."""
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
        raise ValueError(f"{term}: a cache finds what has a value, not what has another; ask the server (client.live)")
    if field == _NAMESPACE:
        return store.entries(value) if value else []
    if field == _NAME:
        return [entry for entry in store.entries() if entry.key.name == value]
    try:
        return store.by_index(field, value)
    except NoSuchIndex:
        raise ValueError(
            f"{field}: the cache keeps no index of this field; add by_field({field!r}), or ask the server (client.live)"
        ) from None
