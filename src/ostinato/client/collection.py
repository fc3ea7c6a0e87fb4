"""Collection: the list and watch requests for one kind, namespace and selectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ostinato.api.codec import RawList, raw_list_from_json
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.client.discovery.paths import collection_path
from ostinato.client.event_stream import ResponseEvents
from ostinato.client.list_watch import EventStream, ListOptions, WatchOptions
from ostinato.client.options import FieldSelection, LabelSelection, Query, selection_query
from ostinato.client.transport.exchange import Call, Exchange
from ostinato.client.views import View
from ostinato.world import Clock

Resolve = Callable[[View[Any]], Awaitable[KindInfo]]
_ALL = ListOptions()
_NOW = WatchOptions()


class Selection(NamedTuple):
    """Which objects of a kind to select. `namespace`: "" for all namespaces."""

    namespace: str = ""
    labels: LabelSelection = None
    fields: FieldSelection = None


class Collection:
    """`ListWatch` over a transport."""

    def __init__(
        self, exchange: Exchange, clock: Clock, resolve: Resolve, view: View[Any], selection: Selection
    ) -> None:
        self._exchange = exchange
        self._clock = clock
        self._resolve = resolve
        self._selected = selection_query(selection.labels, selection.fields)
        self.view = view
        self.namespace = selection.namespace

    @property
    def gvk(self) -> GroupVersionKind:
        return self.view.gvk

    def __str__(self) -> str:
        gvk, info = self.gvk, self.view.info
        what = str(info.gvr.group_resource) if info else str(gvk.group_kind)
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return what + where + "".join(f" with {value}" for _, value in self._selected)

    async def info(self) -> KindInfo:
        """Return the REST mapping of the kind, from discovery if necessary."""
        return self.view.info or await self._resolve(self.view)

    async def list(self, options: ListOptions = _ALL) -> RawList:
        return raw_list_from_json(await self.read(options))

    async def read(self, options: ListOptions = _ALL) -> bytes:
        """Request one page, and return its body."""
        query = [*self._selected]
        if options.limit:
            query.append(("limit", str(options.limit)))
        if options.continue_token:
            query.append(("continue", options.continue_token))
        _add_versions(query, options.resource_version, options.resource_version_match)
        info = await self.info()
        path = collection_path(info, self.namespace)
        call = Call(
            method="GET", path=path, query=query, accept=self.view.accept_list, timeout=options.timeout, info=info
        )
        return await self._exchange.send(call)

    async def watch(self, options: WatchOptions = _NOW) -> EventStream:
        query = [("watch", "true"), *self._selected]
        if options.bookmarks:
            query.append(("allowWatchBookmarks", "true"))
        if options.send_initial_events is not None:
            query.append(("sendInitialEvents", "true" if options.send_initial_events else "false"))
        if options.timeout_seconds is not None:
            query.append(("timeoutSeconds", str(options.timeout_seconds)))
        _add_versions(query, options.resource_version, options.resource_version_match)
        info = await self.info()
        call = Call(
            method="GET",
            path=collection_path(info, self.namespace),
            query=query,
            accept=self.view.accept,
            stream=True,
            timeout=options.stall_timeout,
            info=info,
        )
        return ResponseEvents(await self._exchange.open(call), self._clock, options.stall_timeout, f"watch of {self}")


def _add_versions(query: Query, version: str, match: str) -> None:
    if version:
        query.append(("resourceVersion", version))
    if match:
        query.append(("resourceVersionMatch", match))
