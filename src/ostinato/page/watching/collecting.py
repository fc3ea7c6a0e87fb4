"""Collecting: all objects of a namespace, listed once through the API; for commands without a page."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.client.client import Client
from ostinato.client.views import Unstructured
from ostinato.page.masking import masking
from ostinato.page.watching.kinds import SECRET, watched_kinds
from ostinato.world import Clock

_CONCURRENT: Final = 8
_KEY: Final = b"not shown"  # of digests that no one sees


async def collect(client: Client, namespace: str, clock: Clock) -> tuple[list[Entry], list[str]]:
    """Return all objects of a namespace, or of the cluster if it is ""; and the kinds that cannot be listed."""
    limit = asyncio.Semaphore(_CONCURRENT)
    unlisted: list[str] = []

    async def read(gvk: GroupVersionKind) -> list[Entry]:
        info = await client.mapper.kind(gvk)
        if namespace and not info.namespaced:
            return []
        transform = masking(_KEY) if gvk.group_kind == SECRET else None
        decoder = EntryDecoder(CollectionInfo(info), keep_managed_fields=True, transform=transform)
        async with limit:
            try:
                found: list[dict[str, Any]] = [*await client.list(Unstructured(gvk, info), namespace=namespace)]
            except APIError:
                unlisted.append(gvk.kind)
                return []
            await clock.sleep(0)
        return [decoder.decode(msgspec.json.encode(each)) for each in found]

    kinds = watched_kinds(await client.mapper.catalogue())
    found = [entry for entries in await asyncio.gather(*map(read, kinds)) for entry in entries]
    return found, sorted(unlisted)
