"""Monitors: metadata informers of all kinds, which update the graph.

- Discovery is repeated every 30 seconds and when a CustomResourceDefinition or APIService changes. A kind is monitored
  in its preferred version.
- An existing informer of the full objects is reused.
- Kinds of API groups whose discovery fails are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind, GroupResource, GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.cache import Deleted, Entry, Event, Informer, Registration, SyncError, Updated
from ostinato.client.discovery.discovery import Catalogue
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.controllers.sources.sources import Sink
from ostinato.plane.controllers.garbage.graph import Graph, Node, Reference

_VERBS: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
_DEFINITIONS: Final = frozenset(
    {
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("apiregistration.k8s.io", "APIService"),
    }
)
_RESYNC_PERIOD: Final = 30.0  # seconds between two discoveries
_RETRY_PERIOD: Final = 1.0  # while definitions change: they are served with a delay
_FAST_RESYNC: Final = 5.0  # seconds of frequent discovery after a change
_SYNC_TIMEOUT: Final = 30.0  # seconds to wait for the initial lists
_START_DELAY: Final = 0.1  # seconds in which other controllers create their informers


class Monitor:
    """Informer of one kind."""

    def __init__(self, info: KindInfo, informer: Informer, graph: Graph) -> None:
        self.info = info
        self.informer = informer
        self._graph = graph
        self.registration = informer.add_handler(self._on_event, name="garbage collector")
        self._extra_registrations: list[Registration] = []

    def add_handler(self, handler: Callable[[Event], None]) -> None:
        """Add an event handler."""
        self._extra_registrations.append(self.informer.add_handler(handler, name="garbage collector: definitions"))

    def stop(self) -> None:
        for each in (self.registration, *self._extra_registrations):
            each.remove()

    def entry(self, key: NamespacedName) -> Entry | None:
        return self.informer.store.get(key)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Updated):
            new = event.new
            if new.deletion_timestamp is None and new.owners_json == event.old.owners_json:
                return  # neither owners nor deletion changed
            self._graph.put(self, new)
        elif isinstance(event, Deleted):
            self._graph.remove(event.last_known.uid)
        else:
            self._graph.put(self, event.object)


class Monitors:
    """Event source of the garbage collector: enqueues uids of objects to process."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._monitors: dict[GroupVersionKind, Monitor] = {}
        self._definitions_changed = asyncio.Event()

    def __str__(self) -> str:
        return "metadata of all kinds"

    async def run(self, sink: Sink) -> None:
        clock = sink.dependencies.world.clock
        self._graph.enqueue = lambda uid: sink.add(uid, "graph changed", 0, None)
        self._graph.on_invalid_namespace = lambda node, reference: _report_invalid_namespace(sink, node, reference)
        try:
            await clock.sleep(_START_DELAY)
            while not self._monitors:
                await self._resync(sink)
                if not self._monitors:
                    await clock.sleep(_RETRY_PERIOD)
            await self._wait_for_sync(sink)
            self._graph.complete()
            sink.ready()
            fast_until = 0.0
            while True:
                wait = _RETRY_PERIOD if clock.monotonic() < fast_until else _RESYNC_PERIOD
                try:
                    async with clock.timeout(wait):
                        await self._definitions_changed.wait()
                    fast_until = clock.monotonic() + _FAST_RESYNC
                except TimeoutError:
                    pass
                self._definitions_changed.clear()
                await self._resync(sink)
        finally:
            for monitor in self._monitors.values():
                monitor.stop()

    async def _resync(self, sink: Sink) -> None:
        """Start and stop monitors according to discovery."""
        mapper = sink.dependencies.client.live.mapper
        try:
            await mapper.refresh()
            catalogue = await mapper.catalogue()
        except (APIError, TransportError) as error:
            sink.logger.warning("discovery failed, keeping the current monitors error=%s", error)
            return
        wanted = collectable(catalogue)
        if not wanted:
            return
        for gvk in [each for each in self._monitors if each not in wanted]:
            if gvk.group_version not in catalogue.failed:
                await self._drop(gvk, sink)
        for gvk, info in wanted.items():
            if gvk not in self._monitors:
                self._add(info, sink)

    def _add(self, info: KindInfo, sink: Sink) -> None:
        informers = sink.dependencies.informers
        informer = informers.of(MetadataOf(Unstructured(info.gvk, info)))
        monitor = self._monitors[info.gvk] = Monitor(info, informer, self._graph)
        if info.gvk.group_kind in _DEFINITIONS:
            monitor.add_handler(self._on_definition)
        informer.start()

    async def _drop(self, gvk: GroupVersionKind, sink: Sink) -> None:
        monitor = self._monitors.pop(gvk)
        monitor.stop()
        self._graph.forget(monitor)
        await sink.dependencies.informers.release(monitor.informer)

    def _on_definition(self, event: Event) -> None:  # noqa: ARG002
        self._definitions_changed.set()

    async def _wait_for_sync(self, sink: Sink) -> None:
        """Wait for the initial lists, with a timeout: a kind that cannot be listed must not block the others."""
        clock = sink.dependencies.world.clock
        until = clock.monotonic() + _SYNC_TIMEOUT
        for monitor in list(self._monitors.values()):
            try:
                await monitor.registration.synced(max(0.0, until - clock.monotonic()))
            except SyncError as error:
                sink.logger.warning(
                    "kind not synced, continuing without it kind=%s error=%s", monitor.info.gvk.kind, error
                )


def collectable(catalogue: Catalogue) -> dict[GroupVersionKind, KindInfo]:
    """Return the collectable kinds, each in its preferred version."""
    preferred: dict[GroupResource, KindInfo] = {}
    for version in catalogue.versions:
        for resource in version.resources:
            name = resource.info.gvr.group_resource
            if _VERBS.issubset(resource.verbs) and name not in _IGNORED:
                preferred.setdefault(name, resource.info)
    return {info.gvk: info for info in preferred.values()}


def _report_invalid_namespace(sink: Sink, node: Node, reference: Reference) -> None:
    entry = node.entry()
    if entry is None:
        return
    namespace = node.key.namespace
    owner = (
        f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, name: {reference.name}, "
        f"uid: {reference.uid}]"
    )
    note = f'ownerRef {owner} does not exist in namespace "{namespace}"'
    sink.dependencies.recorder.event(entry.metadata(), "OwnerRefInvalidNamespace", note, kind="Warning")
