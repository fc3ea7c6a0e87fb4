"""Listing: objects of a kind, page by page, one after another or all together.

    async for pod in client.list(Pod, namespace="default"):   # a page is asked for when the one before is used up
        ...
    pods = await client.list(Pod, namespace="default")        # all of them, as they were at one moment
    async for event in client.watch(Pod, since=pods.resource_version):
        ...

Pages are parts of one state of the server, which it remembers for a few minutes. Who takes longer than that goes on all
the same: awaited, the list is read once more, in one piece; iterated, the pages that are left are those of a later
state, so that nothing is given twice, and nothing left out that was there all the time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import Any, Generic, TypeVar

import msgspec

from ostinato.api.errors import APIError, Expired, Gone
from ostinato.api.meta import ListMeta
from ostinato.client.collection import Collection
from ostinato.client.list_watch import ListOptions
from ostinato.client.views import View

T = TypeVar("T")

PAGE_SIZE = 500


class Items(list[T]):
    """The objects of a list, and the version of the state they are of: a watch from there misses nothing."""

    resource_version: str = ""


class Page(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T]


class Listing(Generic[T]):
    """What `client.list` gives. Nothing is asked for before it is awaited or iterated; each time it is asked anew."""

    def __init__(self, collection: Collection, view: View[T], options: ListOptions) -> None:
        self._collection = collection
        self._view = view
        self._options = options

    def __await__(self) -> Generator[Any, None, Items[T]]:
        return self._all().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Page after page, for those who need what is said of each: `remaining_item_count`, `continue_`."""
        options = self._options
        while True:
            try:
                page = await self._page(options)
            except (Expired, Gone) as error:
                token = _later_state(error) if options.continue_token else ""
                if not token:
                    raise
                options = self._following(token)
                continue
            yield page
            if not page.metadata.continue_:
                return
            options = self._following(page.metadata.continue_)

    async def _all(self) -> Items[T]:
        items: Items[T] = Items()
        options = self._options
        while True:
            try:
                page = await self._page(options)
            except (Expired, Gone):
                if not options.continue_token:
                    raise
                options = msgspec.structs.replace(self._options, limit=0)
                items.clear()
                items.resource_version = ""
                continue
            items.extend(page.items)
            items.resource_version = items.resource_version or page.metadata.resource_version
            if not page.metadata.continue_:
                return items
            options = self._following(page.metadata.continue_)

    async def _page(self, options: ListOptions) -> Page[T]:
        data = await self._collection.read(options)
        return Page(*self._view.read_list(data, await self._collection.info()))

    def _following(self, token: str) -> ListOptions:
        """The token says of which state the page is, and nothing else may."""
        return msgspec.structs.replace(
            self._options, continue_token=token, resource_version="", resource_version_match=""
        )


def _later_state(error: APIError) -> str:
    """The token with which a server offers to go on at the same place, in the state of now."""
    token = error.status.metadata.get("continue", "")
    return token if isinstance(token, str) else ""
