"""The past: objects at a revision before the history of this server, read from etcd.

Pages of a list continue on a server that was started after the first one, as with kube-apiserver. Objects are decoded
a few at a time, so that other requests are served meanwhile.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ostinato.api.errors import Timeout
from ostinato.etcd import Compacted as CompactedRevision
from ostinato.etcd import EtcdClient, EtcdError, KeyValue, prefix_end
from ostinato.server.store.collection import Collection
from ostinato.server.store.etcd.freshness import TIMED_OUT
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.etcd.values import Values
from ostinato.server.store.records import Compacted, Entry
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

_PAGE = 500  # keys of one request
_SLICE = 50  # objects that are decoded at a time


class Range(NamedTuple):
    """The objects of a collection whose keys begin with `prefix` and come after `after`; `limit` of them, 0: all."""

    collection: Collection
    prefix: str
    after: str
    limit: int


async def read_past(
    client: EtcdClient, layout: Layout, values: Values, clock: Clock, wanted: Range, revision: int
) -> tuple[list[Entry], int]:
    """The objects at a revision, and how many there are beyond the limit.

    Raises Compacted if etcd has compacted it, Timeout if etcd does not answer.
    """
    name = wanted.collection.name
    start = layout.key(name, wanted.prefix)
    end = prefix_end(start)
    if wanted.after:
        start = layout.key(name, wanted.after) + b"\0"
    entries: list[Entry] = []
    while True:
        size = min(wanted.limit - len(entries), _PAGE) if wanted.limit else _PAGE
        try:
            page = await client.range(start, end, limit=size, revision=revision)
        except CompactedRevision as error:
            raise Compacted(error.revision) from None
        except EtcdError as error:
            _logger.warning("cannot read the past from etcd collection=%s revision=%d error=%s", name, revision, error)
            raise Timeout.of(TIMED_OUT, 1) from None
        for at in range(0, len(page.kvs), _SLICE):
            found = (_entry(layout, values, wanted.collection, kv) for kv in page.kvs[at : at + _SLICE])
            entries += [entry for entry in found if entry is not None]
            await clock.sleep(0)
        if not page.more or (wanted.limit and len(entries) >= wanted.limit):
            return entries, page.count - len(page.kvs)
        start = page.kvs[-1].key + b"\0"


def _entry(layout: Layout, values: Values, collection: Collection, kv: KeyValue) -> Entry | None:
    place = layout.split(kv.key)
    if place is None or place[0] != collection.name:
        return None
    try:
        data = values.read_past(collection, kv.key, kv.value, kv.mod_revision)
        return Entry(place[1], kv.mod_revision, data, *collection.describe(data))
    except Exception as error:  # noqa: BLE001 - other objects are listed
        _logger.error("stored object cannot be read collection=%s key=%s error=%s", collection.name, place[1], error)
        return None
