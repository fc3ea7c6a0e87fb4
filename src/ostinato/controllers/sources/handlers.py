"""Event handlers: which keys an event enqueues.

| handler | enqueues | in controller-runtime |
|---|---|---|
| `ForObject()` | the object | `EnqueueRequestForObject` |
| `ForOwner(Widget)` | its controller owner, if a Widget; `every_owner=True`: all its Widget owners | `…ForOwner` |
| `MapTo(function)` | the keys that a function of the object returns | `EnqueueRequestsFromMapFunc` |
| `ForEvent(function)` | the keys that a function of the event returns | `Funcs` |

- An update enqueues the keys of the old and the new state, each once: of an object whose owner changes, both owners.
- Initial objects and resyncs are enqueued with low priority.
- An owner matches by group and kind; the API version does not matter.
- If a handler raises, the error is logged with the object and nothing is enqueued for the event.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object
from ostinato.cache.events import Event, Updated
from ostinato.cache.informers import AnyKind
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import IndexBy, by_owner
from ostinato.client.arguments import summarize
from ostinato.client.views import View, view_of
from ostinato.controllers.runnable import Dependencies

T = TypeVar("T")
Keys: TypeAlias = Iterable[Hashable]
Mapped: TypeAlias = Keys | Hashable | Awaitable[Keys | Hashable | None] | None
MapFunction: TypeAlias = Callable[[T], Mapped] | Callable[[T, Dependencies], Mapped]
"""`function(object)` or `function(object, dependencies)`, plain or async; returns a key, several keys, or None."""

EventMapFunction: TypeAlias = Callable[[Event], Mapped]


class Handler(ABC):
    index: IndexBy | None = None  # added to the informer of the watched kind

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: B027 - optional
        """Called once before the first event, on a copy per source."""

    @abstractmethod
    def keys(self, event: Event) -> Keys | Awaitable[Keys]:
        """Return the keys to enqueue. Duplicates are allowed."""


class ForObject(Handler):
    """Enqueues the object itself."""

    def keys(self, event: Event) -> Keys:
        return (event.object.key,)


class ForOwner(Handler):
    """Enqueues the owner of the object, if it is of this kind."""

    index = by_owner()  # used by `prune`

    def __init__(self, kind: AnyKind, *, every_owner: bool = False) -> None:
        """`every_owner`: enqueue all owners of the kind. Defaults to False: the controller owner only."""
        self._view = view_of(kind)
        self._every = every_owner
        self._namespaced = True

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        info = self._view.info
        if info is None:
            info = await dependencies.client.live.mapper.kind(self._view.gvk)
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
    """Enqueues the keys that a function of the object returns."""

    def __init__(self, function: MapFunction[Any]) -> None:
        self._function: Callable[..., Mapped] = function
        self._arguments = _count_arguments(function)
        self._watched: View[Any] | None = None
        self._dependencies: Dependencies | None = None

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:
        self._watched = watched
        self._dependencies = dependencies

    async def keys(self, event: Event) -> Keys:
        found = await self._of(event.object)
        if isinstance(event, Updated) and event.old is not event.new:
            found += await self._of(event.old)
        return found

    async def _of(self, entry: Entry) -> list[Hashable]:
        assert self._watched is not None, "prepare() is called before the first event"
        arguments = (entry.read(self._watched), self._dependencies)
        answer = self._function(*arguments[: self._arguments])
        if inspect.isawaitable(answer):
            answer = await answer
        return keys_of(answer, f"{_name(self._function)} returned")


class ForEvent(Handler):
    """Enqueues the keys that a function of the event returns."""

    def __init__(self, function: EventMapFunction) -> None:
        self._function = function

    def keys(self, event: Event) -> Any:  # normalized by the caller with `keys_of`
        return self._function(event)


def keys_of(answer: Any, whence: str) -> list[Hashable]:
    """Return the keys in the result of a user's function: None, one key or several. `whence`: for error messages."""
    if answer is None:
        return []
    if isinstance(answer, str):
        raise TypeError(f"{whence} the string {answer!r}; return NamespacedName(namespace, name)")
    keys = list(answer) if isinstance(answer, Iterable) and not isinstance(answer, Mapping) else [answer]
    for key in keys:
        if isinstance(key, Mapping | Object):
            raise TypeError(f"{whence} {summarize(key)}; return NamespacedName(namespace, name)")
    return keys


@lru_cache(maxsize=1024)
def _group(api_version: str) -> str | None:
    """Return the group of an apiVersion; None if it is malformed."""
    try:
        return GroupVersion.parse(api_version).group
    except ValueError:
        return None


def _count_arguments(function: Callable[..., Any]) -> int:
    """Return 1 if the function takes the object, 2 if it takes the dependencies too."""
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(parameters) not in (1, 2):
        raise TypeError(f"{_name(function)}: a map function must take the object, and may take the dependencies")
    return len(parameters)


def _name(function: object) -> str:
    return getattr(function, "__qualname__", "") or type(function).__qualname__
