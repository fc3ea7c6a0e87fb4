"""Pager: lists a collection page by page.

- The first request has the resourceVersion; later ones have the continue token instead.
- If the token expires (410), the list is repeated without a limit, at the requested resourceVersion.
- The resourceVersion of the list is that of the first page.
- An object that cannot be decoded is logged and skipped.
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

_YIELD_EVERY = 500  # objects
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
        request, version, pages = options, "", 0
        replacement = self._begin()
        while True:
            try:
                answer = await self._source.list(request)
            except (Expired, Gone):
                if not request.continue_token:
                    raise
                request, version, pages = msgspec.structs.replace(options, limit=0), "", 0
                replacement = self._begin()
                continue
            if answer.kind == "Table":
                raise ObjectError(f"{self._source}: the server sent a Table instead of objects")
            pages += 1
            version = version or answer.metadata.resource_version
            await self._fill(replacement, answer.items)
            token = answer.metadata.continue_
            if not token:
                return Listed(replacement, version, pages)
            request = msgspec.structs.replace(
                options, continue_token=token, resource_version="", resource_version_match=""
            )

    async def _fill(self, replacement: Replacement, items: Sequence[msgspec.Raw]) -> None:
        for number, item in enumerate(items, 1):
            try:
                replacement.put(self._decoder.decode(bytes(item)))
            except ObjectError as error:
                _logger.error("cannot decode object, skipped collection=%s error=%s", self._source, error)
            if number % _YIELD_EVERY == 0:
                await self._clock.sleep(0)
