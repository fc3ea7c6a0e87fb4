"""MetaControllers: runs the CompositeControllers and DecoratorControllers of a cluster, or of files.

    manager.add(MetaControllers())                                  # those of the cluster
    manager.add(MetaControllers(read_definitions(["catset.yaml"]))) # those of files

- Follows the objects: a new one starts a controller, a deleted one stops it, one whose spec has changed restarts it.
- The CustomResourceDefinitions are applied first, if they are missing or older.
- A controller that fails is logged, gets an Event, and is started again later; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import APIError
from ostinato.api.selectors.labels import Selector, everything, parse
from ostinato.client.views import Unstructured, view_of
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.tasks import wait_for_end
from ostinato.frontends.composite.meta.controllers import MetaController, MetaSettings, controller_of
from ostinato.frontends.composite.meta.definitions import CompositeController, DecoratorController, definitions
from ostinato.frontends.kernel.sync import DeciderError, Json

_RESTART: Final = 10.0  # seconds before a controller that failed starts again
_ESTABLISHED: Final = 30.0  # seconds
_KINDS: Final = tuple(
    Unstructured(view.gvk, view.info) for view in (view_of(CompositeController), view_of(DecoratorController))
)

Key = tuple[str, str]
"""Kind and name of a definition."""


class MetaControllers(FrontEnd):
    """A runnable; see the module."""

    needs_leader_election = True

    def __init__(
        self,
        files: Sequence[Json] = (),
        *,
        follow: bool | None = None,
        selector: str = "",
        install: bool = True,
        settings: MetaSettings | None = None,
        name: str = "metacontroller",
    ) -> None:
        """
        - `files`: definitions to run, in addition to those of the cluster.
        - `follow`: run the definitions in the cluster. Defaults to True without `files`.
        - `selector`: labels of the definitions to run. Defaults to "", all.
        - `install`: apply the CustomResourceDefinitions. Defaults to True.
        - Raises DeciderError if a definition is not valid, or SelectorError.
        """
        self.name = name
        self.definitions = definitions() if install else ()
        self._files = {_key(each): each for each in files}
        for each in files:
            controller_of(each)
        self._follow = not files if follow is None else follow
        self._selector: Selector = parse(selector) if selector else everything()
        self._install = install
        self._settings = settings or MetaSettings()
        self._children: dict[Key, _Child] = {}
        self._failed: dict[Key, tuple[str, float]] = {}  # digest of a definition that failed, and when it may restart
        self._changed = asyncio.Event()
        self._is_following = False  # all definitions of the start have a controller

    @property
    def has_synced(self) -> bool:
        return self._is_following and all(each.controller.has_synced for each in self._children.values())

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the controllers that run now."""
        return tuple(each.controller.name for each in self._children.values())

    async def run(self, dependencies: Dependencies) -> None:
        self._changed = asyncio.Event()
        if self._install:
            await install(dependencies)
        registrations = []
        if self._follow:
            for view in _KINDS:
                informer = dependencies.informers.of(view)
                registrations.append(informer.add_handler(lambda _: self._changed.set(), name=self.name))
                informer.start()
        try:
            for registration in registrations:
                await registration.synced(_ESTABLISHED)
            while True:
                self._changed.clear()
                wait = await self._update(dependencies)
                self._is_following = True
                await self._wait(dependencies, wait)
        finally:
            for registration in registrations:
                registration.remove()
            await self._stop()

    def _wanted(self, dependencies: Dependencies) -> dict[Key, Json]:
        wanted: dict[Key, Json] = {}
        if self._follow:
            for view in _KINDS:
                for entry in dependencies.informers.of(view).store.entries():
                    if self._selector.matches(entry.labels) and not entry.is_being_deleted:
                        document = entry.read(view)
                        wanted[_key(document)] = document
        for key, document in self._files.items():
            if key in wanted:
                dependencies.logger.debug("definition of a file replaces that of the cluster object=%s/%s", *key)
            wanted[key] = document
        return wanted

    async def _update(self, dependencies: Dependencies) -> float | None:
        """Start and stop controllers; return the seconds until one that failed may start again."""
        clock = dependencies.world.clock
        wanted = self._wanted(dependencies)
        for key, child in list(self._children.items()):
            if child.task.done():
                del self._children[key]
                await self._ended(key, child, dependencies)
            elif key not in wanted or child.digest != _digest(wanted[key]):
                child.stop()  # its end is a change
        waits = []
        for key, document in wanted.items():
            if key in self._children:
                continue
            digest, at = self._failed.get(key, ("", 0.0))
            if digest == _digest(document) and clock.monotonic() < at:
                waits.append(at - clock.monotonic())
                continue
            self._failed.pop(key, None)
            self._start(key, document, dependencies)
        return min(waits, default=None)

    def _start(self, key: Key, document: Json, dependencies: Dependencies) -> None:
        try:
            controller = MetaController(controller_of(document), document, self._settings)
        except DeciderError as error:
            self._report(key, document, error, dependencies)
            return
        dependencies.logger.info("controller started controller=%s", controller.name)
        if access.uid(document):
            dependencies.recorder.event(document, "Starting", f"Starting controller: {key[1]}", action="Start")
        task = asyncio.get_running_loop().create_task(
            controller.run(dependencies), name=f"controller {controller.name}"
        )
        self._children[key] = _Child(controller, document, task)
        task.add_done_callback(lambda _: self._changed.set())

    async def _ended(self, key: Key, child: _Child, dependencies: Dependencies) -> None:
        error = None if child.task.cancelled() else child.task.exception()
        if error is not None:
            self._report(key, child.document, error, dependencies)
        else:
            dependencies.logger.info("controller stopped controller=%s", child.controller.name)
            if access.uid(child.document):
                dependencies.recorder.event(child.document, "Stopping", f"Stopping controller: {key[1]}", action="Stop")
        for view in child.controller.kinds:
            for informer in list(dependencies.informers.all(view.gvk)):
                await dependencies.informers.release(informer)  # unless others use it

    def _report(self, key: Key, document: Json, error: BaseException, dependencies: Dependencies) -> None:
        dependencies.logger.error(
            "controller failed kind=%s name=%s restart_seconds=%g error=%s", *key, _RESTART, error
        )
        if access.uid(document):
            dependencies.recorder.event(document, "SyncError", f"Sync error: {error}", kind="Warning", action="Start")
        self._failed[key] = (_digest(document), dependencies.world.clock.monotonic() + _RESTART)

    async def _wait(self, dependencies: Dependencies, seconds: float | None) -> None:
        if seconds is None:
            await self._changed.wait()
            return
        try:
            async with dependencies.world.clock.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _stop(self) -> None:
        tasks = [each.task for each in self._children.values()]
        for child in self._children.values():
            child.stop()
        await wait_for_end(tasks)


class _Child:
    """A running controller."""

    def __init__(self, controller: MetaController, document: Json, task: asyncio.Task[None]) -> None:
        self.controller = controller
        self.document = document
        self.digest = _digest(document)
        self.task = task
        self._is_stopping = False

    def stop(self) -> None:
        """Stop it gracefully. A second cancellation would end running syncs."""
        if not self._is_stopping:
            self._is_stopping = True
            self.task.cancel()


async def install(dependencies: Dependencies) -> None:
    """Apply the CustomResourceDefinitions, and wait until they are established."""
    from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition  # noqa: PLC0415 - only here

    client = dependencies.client.live
    for definition in definitions():
        name = definition["metadata"]["name"]
        try:
            await client.apply(definition, force=True, field_manager="ostinato-meta")
            await client.wait_for(CustomResourceDefinition, name, "Established", timeout=_ESTABLISHED)
        except APIError as error:
            found = await client.get(CustomResourceDefinition, name, missing=None)
            if found is None:
                raise
            dependencies.logger.warning(
                "definition not updated, using the one of the cluster crd=%s error=%s", name, error
            )


def _key(document: Mapping[str, Any]) -> Key:
    return str(document.get("kind")), str((document.get("metadata") or {}).get("name"))


def _digest(document: Json) -> str:
    return f"{access.uid(document)}/{msgspec.json.encode(document.get('spec'), order='deterministic').decode()}"
