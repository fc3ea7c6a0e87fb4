"""Cached reader: reads from caches where they can answer; otherwise from the server, or not at all.

`CachedReader` is the read half of a cached client; see `ostinato.cache.client`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, Unpack, overload

import msgspec

from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.cache.informer import Informer
from ostinato.cache.informers import Informers
from ostinato.cache.lister import readable
from ostinato.cache.lookup import CachedEntries, CacheLookup, ListQuery, is_authoritative
from ostinato.client.arguments import key_from
from ostinato.client.client import Client
from ostinato.client.discovery.paths import Key, check_name, check_namespace, require_namespace
from ostinato.client.listing import Items, Listing
from ostinato.client.options import FieldSelection, LabelSelection, ReadOptions, read_query
from ostinato.client.views import Kind, View, view_of

T = TypeVar("T")
D = TypeVar("D")

READ_TIMEOUT: Final = 10.0
_RAISE: Final[Any] = object()  # the default of `missing`


class NotWatched(LookupError):  # noqa: N818 - named after the condition
    """No cache can answer the read, and the client does not read from the server."""


class CachedReader:
    def __init__(
        self, live: Client, informers: Informers, *, unwatched: Literal["server", "refuse"], read_timeout: float
    ) -> None:
        self.live = live
        self.world = live.world
        self.informers = informers
        self._unwatched = unwatched
        self._lookup = CacheLookup(informers, live.world.clock, read_timeout)

    if not TYPE_CHECKING:  # type checkers report it themselves

        def __getattr__(self, name: str) -> Any:
            live = self.__dict__.get("live")
            if live is not None and hasattr(live, name):
                raise AttributeError(f"a cached client has no attribute {name!r}; use client.live.{name}")
            raise AttributeError(f"a cached client has no attribute {name!r}")

    @overload
    async def get(self, kind: Kind[T], name: Key, *, fresh: bool = True, **options: Unpack[ReadOptions]) -> T: ...
    @overload
    async def get(
        self, kind: Kind[T], name: Key, *, missing: D, fresh: bool = True, **options: Unpack[ReadOptions]
    ) -> T | D: ...
    async def get(
        self, kind: Kind[T], name: Key, *, missing: Any = _RAISE, fresh: bool = True, **options: Unpack[ReadOptions]
    ) -> Any:
        """Return an object; if it does not exist, `missing`, or raise NotFound.

        - `fresh`: wait until the cache has observed own writes of the object. Defaults to True.
        """
        view = view_of(kind)
        if not options or not (read_query(options) or options.get("subresource")):
            for informer in self._lookup.watching(view):
                key = (
                    name
                    if isinstance(name, NamespacedName)
                    else self._key(view, name, options.get("namespace"), informer)
                )
                feed = informer.feed_of(key.namespace)
                if feed is None:
                    continue
                if not feed.has_synced:
                    await self._lookup.wait_synced(informer)
                if fresh and feed.expectations.has_pending:
                    await self._lookup.wait_fresh(feed, key)
                entry = feed.store.get(key)
                if entry is not None:
                    return entry.read(view)
                if is_authoritative(informer):
                    assert feed.info is not None, "a synced cache knows its kind"
                    check_namespace(feed.info, key.namespace)
                    require_namespace(feed.info, key)
                    check_name(feed.info, key.name)
                    if missing is not _RAISE:
                        return missing
                    raise NotFound.of(feed.info.gvr.group_resource, key.name)
        self.check_unwatched(view)
        if missing is _RAISE:
            return await self.live.get(view, name, **options)
        return await self.live.get(view, name, missing=missing, **options)

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        index: tuple[str, str] | None = None,
        fresh: bool = True,
        strict: bool = False,
    ) -> CachedListing[T]:
        """List the objects of a kind: `await client.list(Pod)`, or `async for pod in client.list(Pod)`.

        - `namespace`: Defaults to all, or to the namespaces of the default cache settings.
        - `fields`: equality of indexed fields, `metadata.name` and `metadata.namespace`.
        - `index`: the name of an index of the cache, and a value.
        - `fresh`: wait until the cache has observed own writes that may be in the list. Defaults to True.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False: it is skipped, logged
          and counted.
        """
        query = ListQuery(namespace=namespace, labels=labels, fields=fields, index=index, fresh=fresh)
        return CachedListing(self, view_of(kind), query, strict=strict)

    async def parts(self, view: View[Any], query: ListQuery) -> Sequence[ListQuery]:
        """Return the query, or one per cached namespace: with caches of some namespaces, all means those."""
        if query.namespace or self.informers.watches_all_namespaces:
            return (query,)
        info = view.info or await self.informers.info(view)
        if not info.namespaced:
            return (query,)
        namespaces = self.informers.settings_of(view).namespaces
        return [msgspec.structs.replace(query, namespace=each) for each in namespaces]

    async def found(self, view: View[Any], query: ListQuery) -> CachedEntries | None:
        """List from a cache; None if the list must go to the server. Raises NotWatched."""
        found = await self._lookup.find(view, query)
        if found is None:
            self.check_unwatched(view)
            if query.index is not None:
                raise NotWatched(
                    f"{view.gvk.kind}: no cache with an index {query.index[0]!r}; watch the kind and add the index"
                )
        return found

    async def fresh(self, kind: Kind[Any], name: Key | None = None, *, namespace: str | None = None) -> None:
        """Wait until the caches have observed own writes of a kind, or of one object."""
        view = view_of(kind)
        for informer in self._lookup.watching(view):
            if name is None:
                for feed in informer.feeds:
                    await self._lookup.wait_fresh(feed, namespace=namespace or "")
                continue
            key = self._key(view, name, namespace, informer)
            part = informer.feed_of(key.namespace)
            if part is not None:
                await self._lookup.wait_fresh(part, key)

    def check_unwatched(self, view: View[Any]) -> None:
        """Raise `NotWatched` unless reads may go to the server."""
        if self._unwatched == "refuse":
            raise NotWatched(
                f"{view.gvk.kind} of {view.gvk.api_version}: not watched, and this client reads from caches only; "
                "watch it, or use client.live"
            )

    def _key(
        self, view: View[Any], name: Key, namespace: str | None, informer: Informer | None = None
    ) -> NamespacedName:
        if not isinstance(name, str):
            return key_from(view.info, name)
        if namespace is not None:
            return NamespacedName(namespace, name)
        info = view.info or (None if informer is None else informer.info)
        return NamespacedName("" if info is not None and not info.namespaced else self.live.namespace, name)


class CachedListing(Generic[T]):
    """The result of `CachedReader.list`; evaluated when it is awaited or iterated."""

    def __init__(self, reader: CachedReader, view: View[T], query: ListQuery, *, strict: bool) -> None:
        self._reader = reader
        self._view = view
        self._query = query
        self._strict = strict

    def __await__(self) -> Generator[Any, None, Items[T]]:
        return self._all().__await__()

    async def _all(self) -> Items[T]:
        items: Items[T] = Items()
        for query in await self._reader.parts(self._view, self._query):
            found = await self._reader.found(self._view, query)
            if found is None:
                live = await self._live(query)
                items += live
                version = live.resource_version
            else:
                items += self._readable(found)
                version = found.resource_version
            items.resource_version = items.resource_version or version  # of several namespaces: that of the first
        return items

    async def __aiter__(self) -> AsyncIterator[T]:
        for query in await self._reader.parts(self._view, self._query):
            found = await self._reader.found(self._view, query)
            if found is not None:
                for item in self._readable(found):
                    yield item
                continue
            async for item in self._live(query):
                yield item

    def _readable(self, found: CachedEntries) -> Iterator[T]:
        return readable(found.entries, self._view, None if self._strict else self._reader.live.unreadable)

    def _live(self, query: ListQuery) -> Listing[T]:
        return self._reader.live.list(
            self._view, namespace=query.namespace, labels=query.labels, fields=query.fields, strict=self._strict
        )
