"""Watched kinds: informers of kinds that are learned at run time.

- A kind is watched from its first use, before the first object of it is written; the informer is shared with everybody
  else in the process, and stopped when nobody uses it any more.
- The event of a child enqueues its owner, found by the controller reference or by the annotation of the child.
- If the CustomResourceDefinition of a kind is deleted, or created again (perhaps with another scope), the informer is
  replaced, and the users of the kind are enqueued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.cache.events import Added, Event, Updated
from ostinato.cache.informer import Informer, Registration
from ostinato.cache.informers import AnyKind
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import by_owner
from ostinato.cache.sync_tracker import SyncError
from ostinato.client import NoSuchKind
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured, view_of
from ostinato.controllers.controller import Controller
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.channel import Channel, ChannelSource
from ostinato.controllers.sources.handlers import ForOwner, Handler
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.frontends.kernel.applier.members import MARKED
from ostinato.frontends.kernel.applier.tracking import OWNER_UID, marked_owner
from ostinato.frontends.kernel.sync import kind_key
from ostinato.kinds.builtin import builtin_scheme

_SYNC_TIMEOUT: Final = 30.0  # seconds that a sync waits for the cache of a new kind
_DEFINITION: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class ForSetOwner(ForOwner):
    """Enqueues the owner of an object of a set: by its controller reference, or by its annotation."""

    def __init__(self, kind: AnyKind) -> None:
        super().__init__(kind)
        self._kind = view_of(kind).gvk.group_kind

    def _of(self, entry: Entry) -> list[NamespacedName]:
        found = super()._of(entry)
        if OWNER_UID in entry.labels:
            owner = marked_owner(entry.metadata().metadata.annotations)
            if owner is not None and owner[0] == self._kind:
                found.append(owner[1])
        return found


class _Watched(msgspec.Struct, eq=False):
    """A kind that is watched."""

    info: KindInfo
    source: KindSource
    informer: Informer


class WatchedKinds:
    """The kinds that a running controller watches for its users, which are keys of its queue."""

    def __init__(self, controller: Controller, handler: Handler) -> None:
        """`handler`: which keys the event of an object enqueues, such as `ForSetOwner(Widget)`."""
        self._controller = controller
        self._handler = handler
        self._changed = Channel()
        controller.watch(ChannelSource(self._changed))
        self._watched: dict[GroupVersionKind, _Watched] = {}
        self._users: dict[Hashable, frozenset[GroupVersionKind]] = {}
        self._lock = asyncio.Lock()  # of starting and stopping
        self._definitions: Registration | None = None
        self._dependencies: Dependencies | None = None

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds that are watched now."""
        return frozenset(self._watched)

    def start(self, dependencies: Dependencies) -> None:
        """Connect to the informers, once, before the first use."""
        self._dependencies = dependencies

    async def stop(self) -> None:
        """Stop following definitions. Sources stop with the controller."""
        if self._definitions is not None:
            self._definitions.remove()

    async def use(self, user: Hashable, kinds: Iterable[GroupVersionKind]) -> frozenset[GroupVersionKind]:
        """Set the kinds that a user needs, and wait until they are synced. Stops what is no longer used.

        Returns the kinds that are not served; the user is enqueued when one of them is. Raises `SyncError` if a cache
        does not sync in time.
        """
        wanted = frozenset(kinds)
        before = self._users.get(user, frozenset())
        if wanted:
            self._users[user] = wanted
        else:
            self._users.pop(user, None)
        missing = set()
        try:
            for kind in sorted(wanted):
                try:
                    informer = await self._started(kind)
                except NoSuchKind:
                    missing.add(kind)
                    continue
                if not informer.has_synced:
                    await informer.synced(_SYNC_TIMEOUT)
        finally:
            for kind in before - wanted:
                await self._stop_unused(kind)
        return frozenset(missing)

    async def _started(self, kind: GroupVersionKind) -> Informer:
        found = self._watched.get(kind)
        if found is not None:
            return found.informer
        async with self._lock:
            found = self._watched.get(kind)
            if found is None:
                found = self._watched[kind] = await self._start(kind)
        return found.informer

    async def _start(self, kind: GroupVersionKind) -> _Watched:
        assert self._dependencies is not None, "start() is called before the first use"
        informers = self._dependencies.informers
        if not builtin_scheme().recognizes(kind):
            await self._follow_definitions()
        info = await informers.info(Unstructured(kind))
        settings = informers.settings_of(Unstructured(kind, info))
        informer = informers.of(Unstructured(kind), settings)
        for index in (by_owner(), MARKED):
            with suppress(ValueError):  # the index exists
                informer.add_index(index)
        source = KindSource(Unstructured(kind), self._handler, KindOptions(settings=settings))
        self._controller.watch(source)
        informer.start()
        self._log("kind watched", kind)
        return _Watched(info, source, informer)

    async def _stop_unused(self, kind: GroupVersionKind) -> None:
        async with self._lock:
            if kind in self._watched and not any(kind in used for used in self._users.values()):
                await self._stop(kind)
                self._log("kind no longer watched", kind)

    async def _stop(self, kind: GroupVersionKind) -> None:
        assert self._dependencies is not None, "something was started"
        watched = self._watched.pop(kind)
        await self._controller.unwatch(watched.source)
        await self._dependencies.informers.release(watched.informer)

    # Definitions

    async def _follow_definitions(self) -> None:
        """Watch CustomResourceDefinitions. Without permission, changes of them are not noticed."""
        assert self._dependencies is not None, "start() is called before the first use"
        if self._definitions is not None:
            return
        informer = self._dependencies.informers.of(MetadataOf(_DEFINITION))
        self._definitions = informer.add_handler(self._definition_changed, name=f"controller {self._controller.name}")
        informer.start()
        try:
            await self._definitions.synced(_SYNC_TIMEOUT)
        except (SyncError, APIError, TransportError) as error:
            self._dependencies.logger.warning(
                "definitions not watched; a kind that is defined again needs a restart controller=%s error=%s",
                self._controller.name,
                error,
            )

    async def _definition_changed(self, event: Event) -> None:
        """Replace the informer of a kind whose definition was deleted or created again, and enqueue its users."""
        if isinstance(event, Added) and event.initial:
            return
        assert self._dependencies is not None
        plural, _, group = event.key.name.partition(".")
        if not isinstance(event, Updated):
            for kind in [kind for kind, each in self._watched.items() if each.info.plural == plural]:
                if kind.group == group:
                    await self._replace(kind)
        waiting = {kind for used in self._users.values() for kind in used if kind.group == group} - self.kinds
        for user, used in self._users.items():
            if not used.isdisjoint(waiting):
                self._changed.put(user)

    async def _replace(self, kind: GroupVersionKind) -> None:
        assert self._dependencies is not None
        async with self._lock:
            if kind in self._watched:
                await self._stop(kind)
        self._dependencies.client.live.mapper.forget(kind)
        self._log("definition of a watched kind deleted or created", kind)

    def _log(self, message: str, kind: GroupVersionKind) -> None:
        assert self._dependencies is not None
        self._dependencies.logger.info("%s controller=%s kind=%s", message, self._controller.name, kind_key(kind))
