"""Connections: the clients, caches and Event recorders of a manager.

- Two clients share the caches. The leader's is fenced: it can write only while the process leads. The other is for
  runnables that need no leadership, and for the caches. Without leader election they are the same.
- A runnable with an identity of its own has clients of its own: cached reads use the manager's permissions, all other
  requests are made with the identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ostinato.cache.client import CachedClient
from ostinato.cache.informers import AnyKind, Informers, InformerSettings
from ostinato.client.client import Client
from ostinato.client.transport.metrics import ClientMetrics
from ostinato.client.transport.protocol import Transport
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import View, view_of
from ostinato.controllers.reports.observing import Observer
from ostinato.manager.connecting import Connect, Purpose
from ostinato.manager.election.fence import AnyFence, Fence, FencedTransport
from ostinato.manager.events.events import Events
from ostinato.manager.metrics import request_metrics
from ostinato.manager.observed_requests import ObservedRequests
from ostinato.manager.options import ClientOptions
from ostinato.manager.sharding.shards import ShardFence
from ostinato.manager.tracing import traced
from ostinato.world import World


class CacheOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `settings`: informer settings by kind.
    - `defaults`: informer settings of other kinds. Defaults to all objects.
    - `unwatched`: whether reads of kinds without an informer go to the server or raise. Defaults to "server".
    - `sync_timeout`: seconds that the caches may take to sync at the start. Defaults to 120.
    """

    settings: Mapping[AnyKind, InformerSettings] = {}
    defaults: InformerSettings = InformerSettings()
    unwatched: Literal["server", "refuse"] = "server"
    sync_timeout: float = 120.0

    def of(self, kind: AnyKind) -> InformerSettings:
        """Return the informer settings of a kind. Namespaces in the defaults do not apply to cluster-scoped kinds."""
        view: View[Any] = view_of(kind)
        found = next((each for kind, each in self.settings.items() if view_of(kind).gvk == view.gvk), self.defaults)
        return found.for_view(view)


class Connections:
    def __init__(
        self,
        connect: Connect,
        world: World,
        namespace: str,
        options: ClientOptions,
        caches: CacheOptions,
        fence: Fence | None,
        shards: ShardFence | None = None,
        observer: Observer | None = None,
    ) -> None:
        """
        - `namespace`: of objects that name none.
        - `shards`: the fence of sharded controllers.
        - `observer`: receives what is throttled. Defaults to None.
        """
        self.request_metrics = request_metrics()
        metrics: ClientMetrics = self.request_metrics
        self._metrics = metrics if observer is None else ObservedRequests(metrics, observer)
        self.unreadable = UnreadableObjects()
        self._connect = connect
        self._world = world
        self._namespace = namespace
        self._options = options
        self._fence = fence
        self._shards = shards
        self._unwatched = caches.unwatched
        self._by_identity: dict[tuple[str, bool], CachedClient] = {}  # by identity, and whether it is a leader's
        self._sharded: dict[str, CachedClient] = {}  # by identity
        self.live = self._client(traced(connect(Purpose(metrics=self._metrics))))
        self._clients = [self.live]
        measured = self._measured(caches)
        self.informers = Informers(
            self.live, settings=measured.settings, defaults=measured.defaults, unreadable=self.unreadable
        )
        self.unfenced = CachedClient(self.live, self.informers, unwatched=caches.unwatched)
        self.leaders = self.unfenced if fence is None else self._cached("", leads=True)
        self.events = Events(self.live, world)

    def client_of(self, identity: str, *, leads: bool) -> CachedClient:
        """Return the client for an identity; "" is the manager's."""
        if not identity:
            return self.leaders if leads else self.unfenced
        leads = leads and self._fence is not None
        found = self._by_identity.get((identity, leads))
        if found is None:
            found = self._by_identity[identity, leads] = self._cached(identity, leads=leads)
        return found

    def sharded_client(self, identity: str) -> CachedClient:
        """Return the client of sharded controllers: it writes only for objects of shards that this replica holds."""
        assert self._shards is not None
        found = self._sharded.get(identity)
        if found is None:
            found = self._sharded[identity] = self._fenced(identity, self._shards)
        return found

    def _cached(self, identity: str, *, leads: bool) -> CachedClient:
        return self._fenced(identity, self._fence if leads else None)

    def _fenced(self, identity: str, fence: AnyFence | None) -> CachedClient:
        if fence is None:
            transport = traced(self._connect(Purpose(metrics=self._metrics, identity=identity)))
        else:
            purpose = Purpose(deadline=fence.deadline, metrics=self._metrics, identity=identity)
            transport = FencedTransport(traced(self._connect(purpose)), fence)
        client = self._client(transport)
        self._clients.append(client)
        return CachedClient(client, self.informers, unwatched=self._unwatched)

    def client_for(self, purpose: str) -> Client:
        """Return a new client for one purpose, which the caller closes."""
        return self._client(self._connect(Purpose(purpose)))

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    def _client(self, transport: Transport) -> Client:
        return Client(
            transport,
            world=self._world,
            namespace=self._namespace,
            field_manager=self._options.field_manager,
            warn=self._options.warn,
            unreadable=self.unreadable,
        )

    def _measured(self, caches: CacheOptions) -> CacheOptions:
        """Return the options with the manager's metrics, unless they have metrics of their own."""
        defaults = caches.defaults
        if defaults.feed.metrics is not None:
            return caches
        feed = msgspec.structs.replace(defaults.feed, metrics=self.request_metrics)
        return msgspec.structs.replace(caches, defaults=msgspec.structs.replace(defaults, feed=feed))
