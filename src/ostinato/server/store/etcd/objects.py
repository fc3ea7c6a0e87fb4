"""Reading all objects of an etcd."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from ostinato.etcd import Compacted, EtcdClient, KeyValue, RangeResult, prefix_end
from ostinato.server.store.etcd.layout import Layout

_logger = logging.getLogger(__name__)

_FIRST_PAGE = 100  # keys
_PAGE_BYTES = 8 << 20  # that later pages have, about
_LARGEST_PAGE = 10_000

Objects = dict[str, dict[str, KeyValue]]
"""By collection and key."""


async def load(client: EtcdClient, layout: Layout) -> tuple[int, Objects]:
    """The objects at one revision, and that revision. Raises EtcdError.

    Pages are of one revision, which may be compacted meanwhile. Then all is read again, the second time at once.
    """
    try:
        return await _load(client, layout, _FIRST_PAGE)
    except Compacted:
        _logger.warning("etcd was compacted while all objects were loaded, loading them at once")
        return await _load(client, layout, 0)


async def _load(client: EtcdClient, layout: Layout, limit: int) -> tuple[int, Objects]:
    found: Objects = {}
    revision = 0
    async for page in pages(client, layout.start, limit):
        revision = revision or page.revision
        for kv in page.kvs:
            place = layout.split(kv.key)
            if place is not None:
                found.setdefault(place[0], {})[place[1]] = kv
    return revision, found


async def pages(client: EtcdClient, prefix: bytes, limit: int = _FIRST_PAGE) -> AsyncIterator[RangeResult]:
    """Yield the keys with a prefix at one revision, that of the first page. `limit`: of that page; 0: there is one.

    Raises EtcdError; Compacted if the revision is compacted meanwhile.
    """
    start, end, revision = prefix, prefix_end(prefix), 0
    while True:
        page = await client.range(start, end, limit=limit, revision=revision)
        yield page
        if not page.more:
            return
        revision = revision or page.revision
        start = page.kvs[-1].key + b"\0"
        size = sum(len(kv.value) for kv in page.kvs) // len(page.kvs) + 1
        limit = min(max(_PAGE_BYTES // size, 1), _LARGEST_PAGE)
