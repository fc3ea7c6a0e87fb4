"""Controllers of many kinds: one controller for each selected kind, while the server serves it.

- Discovery is read at the start, after each change of a CustomResourceDefinition, and at intervals, for kinds of
  aggregated API servers. A new kind gets a controller; the controller of a kind that is no longer served, or no longer
  selected, is stopped and awaited, and its cache is released.
- Kinds of a group version whose discovery fails are kept.
- Each controller has its own queue and workers, and the name NAME.PLURAL.GROUP.
- The controller of a kind that fails is logged and started again; the others are not affected, nor do they wait for one
  that takes long to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

from ostinato.api.errors import APIError
from ostinato.api.object import KindInfo
from ostinato.cache.informers import AnyKind, InformerSettings
from ostinato.client.discovery.discovery import Catalogue
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured, View
from ostinato.controllers.controller import Controller
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.controllers.loop import ControllerError
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.tasks import stop
from ostinato.world import Clock

_PERIOD: Final = 60.0  # seconds between reads of discovery
_FAST_PERIOD: Final = 2.0  # the same after a change of a definition, which discovery may show later
_FAST: Final = 30.0  # seconds after a change
_MAX_NAME: Final = 128  # characters of the name of a controller
_MIN_SUFFIX: Final = 28  # of these, for the kind
_PLACEHOLDER: Final = Unstructured.of("example.dev/v1", "Any")

Make = Callable[[View[Any], str], Controller]
"""Creates the controller of a kind, with a suffix of its name; "" for the placeholder that shows names and options."""


class KindControllers(Controller):
    def __init__(self, selector: KindsOf, make: Make) -> None:
        shown = make(_PLACEHOLDER, "")
        if len(shown.name) > _MAX_NAME - _MIN_SUFFIX:
            raise ControllerError(
                f"{shown.name!r} is too long a name for a controller of many kinds; use at most "
                f"{_MAX_NAME - _MIN_SUFFIX} characters"
            )
        super().__init__(shown.name, shown.reconciler, owned=shown.owned, options=shown.options, access=shown.access)
        self.selector = selector
        self._shown = shown
        self._make = make
        self._children: dict[KindInfo, _Child] = {}
        self._changed = asyncio.Event()  # a definition has changed, or a controller has failed
        self._is_following = False

    @property
    def reconciles(self) -> tuple[Any, ...]:
        """The selector of the kinds."""
        return (self.selector,)

    @property
    def watches(self) -> tuple[AnyKind, ...]:
        return self._shown.watches

    @property
    def has_synced(self) -> bool:
        return self._is_following and all(each.controller.has_synced for each in self._children.values())

    @property
    def kinds(self) -> tuple[KindInfo, ...]:
        """The kinds that have a controller now."""
        return tuple(self._children)

    async def warm_up(self, dependencies: Dependencies) -> None:
        """No effect: the kinds are followed by `run`."""

    async def tear_down(self, dependencies: Dependencies) -> None:
        """No effect: `run` stops what it has started."""

    async def run(self, dependencies: Dependencies) -> None:
        from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition  # noqa: PLC0415 - few programs need it

        definitions = dependencies.informers.of(MetadataOf(CustomResourceDefinition), InformerSettings())
        registration = definitions.add_handler(lambda _: self._changed.set(), name=f"controller {self.name}")
        options = self.options.complete(dependencies.controllers)
        try:
            definitions.start()
            await registration.synced(options.sync_timeout)
            clock, fast_until = dependencies.world.clock, 0.0
            while True:
                self._changed.clear()
                labels = {each.key.name: each.labels for each in definitions.store.entries()}
                await self._update(labels, dependencies)
                if await self._wait(clock, _FAST_PERIOD if clock.monotonic() < fast_until else _PERIOD):
                    fast_until = clock.monotonic() + _FAST
        finally:
            registration.remove()
            await stop([each.task for each in self._children.values()])

    async def _wait(self, clock: Clock, seconds: float) -> bool:
        """Wait for a change, and return whether there was one in this time."""
        try:
            async with clock.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _update(self, definitions: Mapping[str, Mapping[str, str]], dependencies: Dependencies) -> None:
        """Start and stop controllers according to discovery."""
        mapper = dependencies.client.live.mapper
        try:
            await mapper.refresh()
            catalogue: Catalogue = await mapper.catalogue()
        except (APIError, TransportError) as error:
            dependencies.logger.warning(
                "discovery failed, keeping the current kinds controller=%s error=%s", self.name, error
            )
            return
        wanted = dict.fromkeys(self.selector.select(catalogue, definitions))
        for info, child in list(self._children.items()):
            if child.task.done():
                await self._drop_kind(info, dependencies)
            elif info not in wanted and info.gvk.group_version not in catalogue.failed:
                child.stop()  # its end is a change
        for info in wanted:
            if info not in self._children:
                self._start_kind(info, dependencies)
        self._is_following = True

    def _start_kind(self, info: KindInfo, dependencies: Dependencies) -> None:
        suffix = _suffix(info, _MAX_NAME - len(self.name))
        controller = self._make(Unstructured(info.gvk, info), suffix)
        dependencies.logger.info("kind found, controller started controller=%s kind=%s", controller.name, info.gvk)
        task = asyncio.get_running_loop().create_task(
            controller.run(dependencies), name=f"controller {controller.name}"
        )
        self._children[info] = _Child(controller, task)
        task.add_done_callback(lambda _: self._changed.set())

    async def _drop_kind(self, info: KindInfo, dependencies: Dependencies) -> None:
        """Forget a controller that has ended, and release its cache."""
        child = self._children.pop(info)
        error = None if child.task.cancelled() else child.task.exception()
        name, logger = child.controller.name, dependencies.logger
        if error is not None:
            logger.error("controller failed, restarting controller=%s error=%s", name, error)
        else:
            logger.info("kind removed, controller stopped controller=%s kind=%s", name, info.gvk)
        for informer in list(dependencies.informers.all(info.gvk)):
            await dependencies.informers.release(informer)


class _Child:
    """The controller of one kind."""

    def __init__(self, controller: Controller, task: asyncio.Task[None]) -> None:
        self.controller = controller
        self.task = task
        self._is_stopping = False

    def stop(self) -> None:
        """Stop it gracefully. A second cancellation would end running reconciles."""
        if not self._is_stopping:
            self._is_stopping = True
            self.task.cancel()


def _suffix(info: KindInfo, most: int) -> str:
    """Return the suffix of a controller's name for a kind, of at most `most` characters."""
    suffix = f".{info.plural}.{info.gvk.group}".rstrip(".")
    if len(suffix) <= most:
        return suffix
    return f"{suffix[: most - 17]}-{blake2b(suffix.encode(), digest_size=8).hexdigest()}"
