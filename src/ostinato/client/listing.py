"""Listing: the objects of a kind in pages, iterated or collected.

    async for pod in client.list(Pod, namespace="default"):   # requests a page when the previous one is consumed
        ...
    pods = await client.list(Pod, namespace="default")        # all objects, in a consistent state
    async for event in client.watch(Pod, since=pods.resource_version):
        ...

The pages are of one consistent state, which the server keeps for a few minutes. If its continue token expires:

- awaited, the list is requested again without pages;
- iterated, the remaining pages are of a later state: no object is returned twice, and none is skipped that existed all
  the time.

Objects that cannot be decoded are skipped and reported (`unreadable`), unless the list is strict.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import Any, Generic, TypeVar

import msgspec

from ostinato.api.errors import APIError, Expired, Gone
from ostinato.api.meta import ListMeta
from ostinato.client.collection import Collection
from ostinato.client.list_watch import ListOptions
from ostinato.client.unreadable import UnreadableObjects, read_page
from ostinato.client.views import View

T = TypeVar("T")

PAGE_SIZE = 500


class Items(list[T]):
    """The objects of a list, with its resourceVersion: a watch from there misses no change."""

    resource_version: str = ""


class Page(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T]


class Listing(Generic[T]):
    """Result of `client.list`. Requests are sent when it is awaited or iterated, each time again."""

    def __init__(
        self,
        collection: Collection,
        view: View[T],
        options: ListOptions,
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        """`unreadable`: receives objects that cannot be decoded. Defaults to None: they raise `ObjectError`."""
        self._collection = collection
        self._view = view
        self._options = options
        self._unreadable = unreadable

    def __await__(self) -> Generator[Any, None, Items[T]]:
        return self._all().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Iterate over pages, with their metadata: `remaining_item_count`, `continue_`."""
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
        return Page(*read_page(self._view, data, await self._collection.info(), self._unreadable))

    def _following(self, token: str) -> ListOptions:
        """Options of the next page: the token determines the state, so no resourceVersion may be sent."""
        return msgspec.structs.replace(
            self._options, continue_token=token, resource_version="", resource_version_match=""
        )


def _later_state(error: APIError) -> str:
    """Return the token with which the server offers to continue in the latest state; "" if it does not."""
    token = error.status.metadata.get("continue", "")
    return token if isinstance(token, str) else ""
