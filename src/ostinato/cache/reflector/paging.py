"""Paging: a whole collection, page by page.

- The first page says which state is wanted; the others carry the token of the page before and nothing else of it.
- A token that has expired means one more request, for all of it at once, in the state that was wanted.
- The version of the whole is that of the first page.
- An object that cannot be read is reported and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from ostinato.api.codec import ObjectError
from ostinato.api.errors import Expired, Gone
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.store import Replacement
from ostinato.client.list_watch import ListOptions, ListWatch
from ostinato.world import Clock

_TURN = 500  # objects after which others get their turn
_logger = logging.getLogger("ostinato.cache")


class Listed(msgspec.Struct, frozen=True):
    replacement: Replacement
    resource_version: str
    pages: int


class Pager:
    def __init__(
        self, source: ListWatch, decoder: EntryDecoder, begin: Callable[[], Replacement], clock: Clock
    ) -> None:
        self._source = source
        self._decoder = decoder
        self._begin = begin
        self._clock = clock

    async def list(self, options: ListOptions) -> Listed:
        asked, version, pages = options, "", 0
        replacement = self._begin()
        while True:
            try:
                answer = await self._source.list(asked)
            except (Expired, Gone):
                if not asked.continue_token:
                    raise
                asked, version, pages = msgspec.structs.replace(options, limit=0), "", 0
                replacement = self._begin()
                continue
            if answer.kind == "Table":
                raise ObjectError(f"{self._source}: the server sent a Table, and not the objects")
            pages += 1
            version = version or answer.metadata.resource_version
            await self._fill(replacement, answer.items)
            token = answer.metadata.continue_
            if not token:
                return Listed(replacement, version, pages)
            asked = msgspec.structs.replace(
                options, continue_token=token, resource_version="", resource_version_match=""
            )

    async def _fill(self, replacement: Replacement, items: Sequence[msgspec.Raw]) -> None:
        for number, item in enumerate(items, 1):
            try:
                replacement.put(self._decoder.decode(bytes(item)))
            except ObjectError as error:
                _logger.error("%s: an object of the list is left out: %s", self._source, error)
            if number % _TURN == 0:
                await self._clock.sleep(0)
