"""Event handlers of the controller of plans: which objects an event concerns."""

from __future__ import annotations

from typing import Any

from ostinato.api.gvk import NamespacedName
from ostinato.cache.client import CachedClient
from ostinato.cache.events import Event
from ostinato.cache.store.entry import Entry
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import ForOwner, Handler, Keys
from ostinato.frontends.plans.tasks.cluster import INSTANCE


class ForInstance(ForOwner):
    """Enqueues the owners of an object, all that plans run on; for cluster-scoped objects that of their annotation."""

    def __init__(self, view: View[Any], *, is_watched: bool = False) -> None:
        """`is_watched`: the events are of the kind that plans run on; the object itself is enqueued too."""
        super().__init__(view, every_owner=True)
        self._is_watched = is_watched

    def keys(self, event: Event) -> Keys:
        found = list(super().keys(event))
        if self._is_watched:
            found.append(event.object.key)
        elif not event.object.key.namespace:
            found += self._tracked(event.object)
        return found

    def _tracked(self, entry: Entry) -> list[NamespacedName]:
        annotation = (entry.metadata().metadata.annotations or {}).get(INSTANCE, "")
        kind, _, place = annotation.partition("/")
        if kind != f"{self._view.gvk.kind}.{self._view.gvk.group}":
            return []
        namespace, _, name = place.partition("/")
        return [NamespacedName(namespace, name)]


class ForVersion(Handler):
    """Enqueues the instances of an operator version."""

    def __init__(self) -> None:
        self._client: CachedClient | None = None

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._client = dependencies.client

    async def keys(self, event: Event) -> Keys:
        from ostinato.frontends.plans.subjects import Instances  # noqa: PLC0415 - subjects import this package

        assert self._client is not None, "prepare() is called before the first event"
        subject, version = Instances(), event.object.key
        return [
            NamespacedName(each["metadata"]["namespace"], each["metadata"]["name"])
            for each in await self._client.list(subject.view)
            if subject.reference(each) == (version.name, version.namespace)
        ]
