"""Reading all objects of an etcd."""

from __future__ import annotations

from ostinato.etcd import EtcdClient, KeyValue, prefix_end
from ostinato.server.store.etcd.layout import Layout

_PAGE = 1000

Objects = dict[str, dict[str, KeyValue]]
"""By collection and key."""


async def load(client: EtcdClient, layout: Layout) -> tuple[int, Objects]:
    """The objects at one revision, and that revision. Raises EtcdError."""
    start, end = layout.start, prefix_end(layout.start)
    found: Objects = {}
    revision = 0
    while True:
        page = await client.range(start, end, limit=_PAGE, revision=revision)
        revision = revision or page.revision
        for kv in page.kvs:
            place = layout.split(kv.key)
            if place is not None:
                found.setdefault(place[0], {})[place[1]] = kv
        if not page.more:
            return revision, found
        start = page.kvs[-1].key + b"\0"
