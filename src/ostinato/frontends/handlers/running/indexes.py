"""Indexes: mappings that index functions keep over the objects of a kind, passed to handlers by the function's name.

    @on.index("pods")
    def by_node(name, spec, **_):
        return {spec["nodeName"]: name}

    @on.timer("reports", interval=60)
    def report(by_node, **_):
        for pod in by_node.get("node-1", ()): ...

- A function returns a dict, whose values are added under their keys; another value, which is added under the key None;
  or None: nothing of this object.
- All indexes are complete before the first handler is called. Indexes are kept in memory.
- Values of an object whose function fails are removed until its next event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ostinato.cache.events import Deleted, Event
from ostinato.cache.informer import Registration
from ostinato.client.views import Unstructured
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.handlers.handler import Handler
from ostinato.frontends.handlers.objects.filters import Change
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.resources import NamedKinds, Resource
from ostinato.frontends.handlers.running.calls import Kwargs, log_failure, object_arguments, selected
from ostinato.frontends.handlers.running.memory import Memo
from ostinato.frontends.handlers.state.stores import is_record

Json = dict[str, Any]

_PERIOD: Final = 5.0  # seconds between looks for a kind that does not exist


class Values(Collection[Any]):
    """The values under a key, of all objects."""

    def __init__(self, by_object: dict[Any, Any]) -> None:
        self._by_object = by_object

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._by_object.values()))

    def __len__(self) -> int:
        return len(self._by_object)

    def __contains__(self, value: object) -> bool:
        return value in self._by_object.values()

    def __repr__(self) -> str:
        return repr(list(self))


class Index(Mapping[Any, Values]):
    """A read-only index."""

    def __init__(self) -> None:
        self._values: dict[Any, dict[Any, Any]] = {}  # by key, then by object
        self._keys: dict[Any, tuple[Any, ...]] = {}  # of each object

    def __getitem__(self, key: Any) -> Values:
        return Values(self._values[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr({key: list(values.values()) for key, values in self._values.items()})

    def _replace(self, about: Any, result: Any) -> None:
        """Replace what an object contributes. None: nothing."""
        for key in self._keys.pop(about, ()):
            del self._values[key][about]
            if not self._values[key]:
                del self._values[key]
        if result is None:
            return
        entries = result if isinstance(result, Mapping) else {None: result}
        for key, value in entries.items():
            self._values.setdefault(key, {})[about] = value
        if entries:
            self._keys[about] = tuple(entries)


class Indexer:
    """Keeps the indexes of an operator while it runs."""

    def __init__(self, handlers: list[Handler], static: Mapping[str, Unstructured]) -> None:
        """`static`: the views of handlers whose kind needs no discovery, by id."""
        self._handlers = handlers
        self._static = static
        self.indexes: dict[str, Index] = {each.id: Index() for each in handlers}
        self._registrations: list[Registration] = []
        self._memos: dict[Any, Memo] = {}
        self._found: set[str] = set()  # ids of the handlers whose kinds are watched

    async def start(self, dependencies: Dependencies) -> None:
        """Watch the kinds of all indexes, and return when they are complete. Kinds that do not exist are skipped."""
        for handler in self._handlers:
            await self._watch(handler, await self._views(handler, dependencies), dependencies)

    async def run(self, dependencies: Dependencies) -> None:
        """Look for kinds that did not exist at the start, until cancelled."""
        try:
            while True:
                for handler in [each for each in self._handlers if each.id not in self._found]:
                    await self._watch(handler, await self._views(handler, dependencies), dependencies)
                if len(self._found) == len(self._handlers):
                    await asyncio.get_running_loop().create_future()
                await dependencies.world.clock.sleep(_PERIOD)
        finally:
            for registration in self._registrations:
                registration.remove()

    async def _views(self, handler: Handler, dependencies: Dependencies) -> list[Unstructured]:
        if handler.id in self._static:
            return [self._static[handler.id]]
        assert handler.resources is not None
        mapper = dependencies.client.live.mapper
        await mapper.refresh()
        kinds = NamedKinds(wanted=(handler.resources,)).select(await mapper.catalogue(), {})
        if not kinds:
            dependencies.logger.warning("kind of an index does not exist yet index=%s", handler.id)
        return [Unstructured(each.gvk, each) for each in kinds]

    async def _watch(self, handler: Handler, views: list[Unstructured], dependencies: Dependencies) -> None:
        for view in views:
            informer = dependencies.informers.of(view)
            received = partial(self._received, handler, view, dependencies)
            registration = informer.add_handler(received, name=f"index {handler.id}")
            self._registrations.append(registration)
            informer.start()
            await registration.synced()
        if views:
            self._found.add(handler.id)

    def _received(self, handler: Handler, view: Unstructured, dependencies: Dependencies, event: Event) -> Any:
        about = (view.gvk, event.key)
        index = self.indexes[handler.id]
        if isinstance(event, Deleted):
            index._replace(about, None)
            self._memos.pop(about, None)
            return None
        body = event.object.read(view)
        memo = self._memos.setdefault(about, Memo())
        arguments: Kwargs = {
            **object_arguments(body),
            "memo": memo,
            "patch": Patch(),
            "param": handler.param,
            "resource": Resource.of(view),
            "logger": dependencies.logger,
            "retry": 0,
            **{name: each for name, each in self.indexes.items() if name != handler.id},
        }
        if is_record(body) or not handler.filters.match_object(Change(body, lambda: arguments)):
            index._replace(about, None)
            return None
        return self._indexed(handler, arguments, index, about, dependencies)

    async def _indexed(
        self, handler: Handler, arguments: Kwargs, index: Index, about: Any, dependencies: Dependencies
    ) -> None:
        try:
            result = handler.function(**selected(handler.function, arguments))
            if handler.is_async:
                result = await result
            index._replace(about, result)
        except Exception as error:  # noqa: BLE001 - a user's function
            index._replace(about, None)
            log_failure(dependencies.logger, handler, error, f"index function failed object={about[1]}")
