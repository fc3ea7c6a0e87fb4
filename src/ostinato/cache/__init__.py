"""Caches: local copies of the objects of a server, kept in sync by list and watch.

    informers = Informers(client)
    pods = informers.of(Pod)
    pods.add_index(by_field("spec.nodeName"))
    pods.add_handler(lambda event: queue.add(event.key))
    informers.start()
    await informers.synced(timeout=60)
    pod = await CachedClient(client, informers).get(Pod, "web-0")

From the server to a handler: `Reflector`, `Fifo`, `Store`, `Listener`; an `Informer` combines them.
"""

from ostinato.cache.client import CachedClient
from ostinato.cache.events import Added, Deleted, Event, Updated, filtered
from ostinato.cache.informer import Informer, InformerStopped, Registration
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.cache.lister import Lister
from ostinato.cache.metrics import CacheMetrics
from ostinato.cache.own_writes.expectations import StaleCache
from ostinato.cache.own_writes.recorder import OwnWrites, own_writes
from ostinato.cache.reader import CachedListing, CachedReader, NotWatched
from ostinato.cache.reflector.feed import FeedOptions
from ostinato.cache.reflector.reflector import ReflectorOptions
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.entry_decoder import Transform
from ostinato.cache.store.indexes import NAMESPACE, OWNER, IndexBy, by, by_field, by_label, by_namespace, by_owner
from ostinato.cache.store.store import NoSuchIndex, Store
from ostinato.cache.sync_tracker import SyncError

__all__ = [
    "NAMESPACE",
    "OWNER",
    "Added",
    "CacheMetrics",
    "CachedClient",
    "CachedListing",
    "CachedReader",
    "Deleted",
    "Entry",
    "Event",
    "FeedOptions",
    "IndexBy",
    "Informer",
    "InformerSettings",
    "InformerStopped",
    "Informers",
    "Lister",
    "NoSuchIndex",
    "NotWatched",
    "OwnWrites",
    "ReflectorOptions",
    "Registration",
    "StaleCache",
    "Store",
    "SyncError",
    "Transform",
    "Updated",
    "by",
    "by_field",
    "by_label",
    "by_namespace",
    "by_owner",
    "filtered",
    "own_writes",
]
