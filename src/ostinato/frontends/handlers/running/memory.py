"""Memory: what a process remembers of an operator and of its objects while it runs."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ostinato.cache.events import Deleted, Event
from ostinato.client.views import Unstructured
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.running.recording import CallRecorder
from ostinato.frontends.handlers.settings import Settings
from ostinato.frontends.handlers.state.progress import Record


class Memo(dict[str, Any]):
    """A dict whose keys are also attributes: `memo.count = 1`. Lost when the process ends."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"memo has no {name!r}; set it first, or use memo.get({name!r})") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None


class Shared:
    """What the handlers of one run of an operator share."""

    def __init__(
        self, name: str, settings: Settings, indexes: Mapping[str, Any], recorder: CallRecorder, memo: Any = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.indexes = indexes
        self.memo: Any = Memo() if memo is None else memo
        self.recorder = recorder

    @property
    def finalizer(self) -> str:
        return self.settings.persistence.finalizer or f"handlers.ostinato.dev/{self.name}"

    def new_memo(self) -> Any:
        """Return the memo of a new object: a copy of the operator's, as startup handlers left it."""
        return copy.copy(self.memo)


class Memory(msgspec.Struct):
    """What is remembered of an object."""

    uid: str
    memo: Any
    record: Record | None = None  # as last written, or as it should have been
    resumed: bool = False  # this process has handled it once
    failed: bool = False  # a handler has failed for good in the last handling
    is_dirty: bool = False  # the record could not be written
    unsent: Patch | None = None  # the patch of a handler that could not be sent
    begun: set[str] = msgspec.field(default_factory=set)  # daemons and timers that were called


class Forgetting:
    """Forgets deleted objects of a kind that has only daemons and timers, as a runnable."""

    def __init__(self, view: Unstructured, memories: Memories) -> None:
        self._view = view
        self._memories = memories

    async def run(self, dependencies: Dependencies) -> None:
        informer = dependencies.informers.of(self._view)
        registration = informer.add_handler(self._received, name="handlers")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            registration.remove()

    def _received(self, event: Event) -> None:
        if isinstance(event, Deleted):
            self._memories.gone(event.key)


class Memories:
    """The memories of the objects of a kind, by key. Handlers, daemons and timers of an object share its memo."""

    def __init__(self, shared: Shared, *, until_events: bool = False) -> None:
        """`until_events`: event handlers need the memory of a deleted object, and drop it."""
        self._shared = shared
        self._until_events = until_events
        self._known: dict[Any, Memory] = {}

    def of(self, key: Any, uid: str) -> Memory:
        found = self._known.get(key)
        if found is None or found.uid != uid:
            found = self._known[key] = Memory(uid, self._shared.new_memo())
        return found

    def gone(self, key: Any) -> None:
        """Forget an object that does not exist any more, unless event handlers will."""
        if not self._until_events:
            self.pop(key)

    def pop(self, key: Any) -> Memory | None:
        return self._known.pop(key, None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._known)
