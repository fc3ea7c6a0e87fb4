"""Aggregator: the extension API servers behind this one.

Core asks it, after authorization, whether an APIService claims the group version of a request (`claim`), or an
extension server a document (`claim_document`), and forwards the request then (`forward`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.server.aggregation.api_services import ApiService, ApiServices, GroupVersion, Priority, ServiceName
from ostinato.server.aggregation.availability import SERVICE_LABEL, Availability
from ostinato.server.aggregation.backends import Backends
from ostinato.server.aggregation.fetch import Fetcher
from ostinato.server.aggregation.front_proxy import FrontProxy
from ostinato.server.aggregation.monitor import Monitor, monitors
from ostinato.server.aggregation.proxy import AggregationProxy
from ostinato.server.aggregation.remote_discovery import RemoteDiscovery
from ostinato.server.aggregation.remote_openapi import RemoteOpenAPI
from ostinato.server.backends.addresses import AddressGuard
from ostinato.server.backends.headers import IdentityHeaders
from ostinato.server.request import Answer, Request
from ostinato.server.resources.registry import Registry
from ostinato.server.store.index import Index
from ostinato.server.store.records import Event
from ostinato.server.webhooks.target import Locate
from ostinato.world import World

_V3 = "/openapi/v3/"


class Aggregator:
    """Call `start` once the store is open, then `close`."""

    def __init__(
        self,
        world: World,
        registry: Registry,
        index: Index,
        locate: Locate,
        guard: AddressGuard,
        identity: IdentityHeaders,
        proxy: FrontProxy,
    ) -> None:
        """`identity`: headers that are not forwarded. `proxy`: this server's identity."""
        backends = Backends(locate, guard, proxy)
        fetcher = Fetcher(backends, world.clock)
        self.services = ApiServices(registry)
        self._proxy = AggregationProxy(backends, identity, world.clock)
        self._discovery = RemoteDiscovery(fetcher)
        self._openapi = RemoteOpenAPI(fetcher)
        self.availability = Availability(registry, index, self.services, fetcher, world.clock)
        self._make_monitor = monitors(self.services, self.availability, self._discovery, self._openapi, world.clock)
        self._monitors: dict[str, Monitor] = {}  # by APIService
        self._users: dict[ServiceName, set[str]] = {}  # APIServices by Service
        self._is_running = False
        self._claims = self.services.remote
        self.services.listen(self._on_change)
        services = registry.get("", "v1", "services")
        slices = registry.get("discovery.k8s.io", "v1", "endpointslices")
        assert services is not None
        assert services.collection is not None
        assert slices is not None
        assert slices.collection is not None
        services.collection.hub.listen(self._on_service)
        slices.collection.hub.listen(self._on_slice)

    def start(self) -> None:
        self._is_running = True
        self.services.load()

    def close(self) -> None:
        self._is_running = False
        for monitor in self._monitors.values():
            monitor.stop()
        self._monitors.clear()

    # Requests

    def claim(self, group: str, version: str) -> ApiService | None:
        """The APIService of an extension server that serves a group version; None if this server does."""
        return self._claims.get((group, version)) if self._claims else None

    def claim_document(self, path: str) -> ApiService | None:
        """The APIService whose server has the document at an unquoted path; None if this server does."""
        if not self._claims:
            return None
        match path.removesuffix("/").split("/"):
            case ["", "apis", group, version]:
                return self.claim(group, version)
        if path.startswith(_V3):
            wanted = path.removeprefix(_V3)
            return next((each for each in self._claims.values() if wanted in self._openapi.v3_index(each)), None)
        return None

    async def forward(self, service: ApiService, request: Request) -> Answer:
        """Forward an authorized request."""
        return await self._proxy.forward(service, request)

    # Documents

    @property
    def generation(self) -> tuple[int, int, int]:
        """Changes with everything that documents show."""
        return self.services.generation, self._discovery.generation, self._openapi.generation

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        return self.services.priorities

    @property
    def versions(self) -> Mapping[GroupVersion, Mapping[str, Any]]:
        """The versions of extension servers, as aggregated discovery lists them."""
        stale = {"freshness": "Stale"}
        return {key: self._discovery.entries.get(key) or {"version": key[1], **stale} for key in self._claims}

    @property
    def openapi_v2(self) -> Sequence[Mapping[str, Any]]:
        """The parts of extension servers, in order of preference."""
        ranked = sorted(
            self._claims.values(), key=lambda each: (-each.priority.group, -each.priority.version, each.name)
        )
        return [part for each in ranked if (part := self._openapi.v2(each)) is not None]

    @property
    def openapi_v3_index(self) -> Mapping[str, Any]:
        return {path: entry for each in self._claims.values() for path, entry in self._openapi.v3_index(each).items()}

    # Changes

    def _on_change(self, before: ApiService | None, after: ApiService | None) -> None:
        if before is not None and before.service is not None:
            self._users.get(before.service, set()).discard(before.name)
        if after is not None and after.is_remote:
            assert after.service is not None
            self._users.setdefault(after.service, set()).add(after.name)
        if not self._is_running:
            return
        if (
            before is not None
            and before.is_remote
            and (after is None or not after.is_remote or after.uid != before.uid)
        ):
            self._drop(before)
        if after is not None and after.is_remote:
            monitor = self._monitors.get(after.name)
            if monitor is None:
                monitor = self._monitors[after.name] = self._make_monitor(after.name)
                monitor.start()
            else:
                monitor.changed()

    def _drop(self, service: ApiService) -> None:
        monitor = self._monitors.pop(service.name, None)
        if monitor is not None:
            monitor.stop()
        self._discovery.forget(service)
        self._openapi.forget(service)

    def _on_service(self, event: Event) -> None:
        if self._users:
            self._check(event.key)

    def _on_slice(self, event: Event) -> None:
        entry = event.entry or event.previous
        if self._users and entry is not None and (name := entry.labels.get(SERVICE_LABEL)):
            self._check(f"{event.key.partition('/')[0]}/{name}")

    def _check(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        for user in self._users.get(ServiceName(namespace, name), ()):
            if (monitor := self._monitors.get(user)) is not None:
                monitor.check()
