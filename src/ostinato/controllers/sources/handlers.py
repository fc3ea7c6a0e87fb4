"""Handlers: whose reconcile an event is for.

| handler | the key is |
|---|---|
| `ForObject()` | that of the object itself |
| `ForOwner(Widget)` | that of the Widget that manages it; `every_owner=True`: of all Widgets that own it |
| `MapTo(function)` | what a function of the object says: none, one or many |
| `ForEvent(function)` | what a function of the event says, for those who need to know what happened |

- An update counts for the old and the new state, each key once: an object that moves from one owner to another is of
  interest to both.
- What was there at the beginning, and resyncs, come with a low priority: nobody waits for them.
- An owner is one by group and kind; its version does not matter.
- A function that raises is reported with the object it failed for, and the event is lost. It goes on with the next.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object
from ostinato.cache.events import Event, Updated
from ostinato.cache.informers import AnyKind
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import IndexBy, by_owner
from ostinato.client.arguments import summarize
from ostinato.client.views import View, view_of

if TYPE_CHECKING:
    from ostinato.controllers.runnable import Surroundings

Keys: TypeAlias = Iterable[Hashable]
MapFunction = Callable[..., Keys | Hashable | Awaitable[Keys | Hashable | None] | None]
"""`function(object)` or `function(object, surroundings)`, plain or async: a key, several, or None."""

EventMapFunction = Callable[[Event], Keys | Hashable | Awaitable[Keys | Hashable | None] | None]


class Handler(ABC):
    index: IndexBy | None = None  # that the cache of what is watched is to keep

    async def prepare(self, watched: View[Any], surroundings: Surroundings) -> None:  # noqa: B027 - most need nothing
        """Called before the first event of a source, on a copy of its own: several may have the same handler."""

    @abstractmethod
    def keys(self, event: Event) -> Keys | Awaitable[Keys]:
        """What is to be reconciled because of the event; each key may come several times."""


class ForObject(Handler):
    """The object itself."""

    def keys(self, event: Event) -> Keys:
        return (event.object.key,)


class ForOwner(Handler):
    """The owner of the object, if it is of this kind."""

    index = by_owner()  # for `prune`, which looks for what an owner manages

    def __init__(self, kind: AnyKind, *, every_owner: bool = False) -> None:
        """`every_owner`: all owners of the kind. Defaults to the one that manages the object."""
        self._view = view_of(kind)
        self._every = every_owner
        self._namespaced = True

    async def prepare(self, watched: View[Any], surroundings: Surroundings) -> None:  # noqa: ARG002
        info = self._view.info
        if info is None:
            info = await surroundings.client.live.mapper.kind(self._view.gvk)
        self._namespaced = info.namespaced

    def keys(self, event: Event) -> Keys:
        found = self._of(event.object)
        if isinstance(event, Updated) and event.old is not event.new:
            found += self._of(event.old)
        return found

    def _of(self, entry: Entry) -> list[NamespacedName]:
        references: Iterable[OwnerReference | None] = entry.owner_references if self._every else (entry.controller,)
        namespace = entry.key.namespace if self._namespaced else ""
        return [NamespacedName(namespace, each.name) for each in references if each is not None and self._is_kind(each)]

    def _is_kind(self, reference: OwnerReference) -> bool:
        gvk = self._view.gvk
        return reference.kind == gvk.kind and _group(reference.api_version) == gvk.group


class MapTo(Handler):
    """What a function says of the object."""

    def __init__(self, function: MapFunction) -> None:
        self._function = function
        self._arguments = _count_arguments(function)
        self._watched: View[Any] | None = None
        self._surroundings: Surroundings | None = None

    async def prepare(self, watched: View[Any], surroundings: Surroundings) -> None:
        self._watched = watched
        self._surroundings = surroundings

    async def keys(self, event: Event) -> Keys:
        found = await self._of(event.object)
        if isinstance(event, Updated) and event.old is not event.new:
            found += await self._of(event.old)
        return found

    async def _of(self, entry: Entry) -> list[Hashable]:
        assert self._watched is not None, "a handler is prepared before the first event"
        arguments = (entry.read(self._watched), self._surroundings)
        answer = self._function(*arguments[: self._arguments])
        if inspect.isawaitable(answer):
            answer = await answer
        return keys_of(answer, f"{_name(self._function)} returned")


class ForEvent(Handler):
    """What a function says of the event."""

    def __init__(self, function: EventMapFunction) -> None:
        self._function = function

    def keys(self, event: Event) -> Any:  # none, one or many, now or later: whoever asks makes keys of it
        return self._function(event)


def keys_of(answer: Any, whence: str) -> list[Hashable]:
    """The keys that somebody gave: none, one or several. `whence` they come, for the error about a text."""
    if answer is None:
        return []
    if isinstance(answer, str):
        raise TypeError(f"{whence} the text {answer!r}: give NamespacedName(namespace, name)")
    keys = list(answer) if isinstance(answer, Iterable) and not isinstance(answer, Mapping) else [answer]
    for key in keys:
        if isinstance(key, Mapping | Object):
            raise TypeError(f"{whence} {summarize(key)}: give NamespacedName(namespace, name)")
    return keys


@lru_cache(maxsize=1024)
def _group(api_version: str) -> str | None:
    """None if that is no version."""
    try:
        return GroupVersion.parse(api_version).group
    except ValueError:
        return None


def _count_arguments(function: Callable[..., Any]) -> int:
    """Whether it takes the object alone, or the surroundings too."""
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(parameters) not in (1, 2):
        raise TypeError(f"{_name(function)}: a map function takes an object, or an object and the surroundings")
    return len(parameters)


def _name(function: object) -> str:
    return getattr(function, "__qualname__", "") or type(function).__qualname__
