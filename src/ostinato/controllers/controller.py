"""Controller: sources enqueue keys, workers reconcile them.

- All sources start together. No reconcile runs before every source is ready, that is, has synced.
- Workers take keys from a work queue; a key is never reconciled by two workers at a time. See `result` for requeueing.
- A reconcile that fails is requeued with backoff; other keys are not affected.
- A key whose own last writes are not in the cache yet waits until they are.
- Cancelling `run` stops the controller: sources stop, running reconciles finish, queued keys are dropped. A second
  cancellation cancels running reconciles too. A controller runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.cache.informers import AnyKind
from ostinato.client.views import Typed, View
from ostinato.controllers.loop import ControllerError, ControlLoop
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reconcilers import Reconciler
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.kind import KindSource
from ostinato.controllers.sources.sources import Source


class Controller:
    definitions: Sequence[dict[str, Any]] = ()  # CustomResourceDefinitions that it brings, for a kind without a class

    def __init__(
        self,
        name: str,
        reconciler: Any,
        *,
        view: View[Any] | None = None,
        owned: Sequence[View[Any]] = (),
        sources: Sequence[Source] = (),
        options: ControllerOptions | None = None,
        access: Sequence[Any] = (),
    ) -> None:
        """
        - `reconciler`: a function, or an object with a method `reconcile`; see `reconcilers`.
        - `view`: the kind that is reconciled. Defaults to None: the sources define the keys.
        - `owned`: kinds of the objects that the controller creates and owns.
        - `access`: permissions beyond those for the watched kinds (`ostinato.crd.Access`); for manifests.
        """
        self.name = name
        self.view = view
        self.owned = tuple(owned)
        self.options = options or ControllerOptions()
        self.access = tuple(access)
        self.reconciler = reconciler if isinstance(reconciler, Reconciler) else Reconciler(reconciler, view)
        self._sources: list[Source] = [*sources, *self.reconciler.sources]
        self._loop: ControlLoop | None = None  # set by the first start
        self._ran = False

    def __repr__(self) -> str:
        return f"<controller {self.name}>"

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self._sources)

    @property
    def reconciles(self) -> tuple[AnyKind, ...]:
        """The kind that is reconciled: its class, or the view of a kind without a class."""
        return () if self.view is None else (_kind(self.view),)

    @property
    def owns(self) -> tuple[AnyKind, ...]:
        """The owned kinds: classes, or views of kinds without a class."""
        return tuple(map(_kind, self.owned))

    @property
    def watches(self) -> tuple[AnyKind, ...]:
        """The other kinds that are watched in the manager's cluster: classes, or views of kinds without a class."""
        others = [view.gvk for view in (self.view, *self.owned) if view is not None]
        kinds = (source for source in self._sources if isinstance(source, KindSource))
        views = (source.view for source in kinds if source.options.informers is None)
        return tuple(_kind(view) for view in views if view.gvk not in others)

    @property
    def needs_leader_election(self) -> bool | None:
        return self.options.needs_leader_election

    @property
    def statistics(self) -> ControllerStatistics | None:
        """The metrics; None before the start."""
        return None if self._loop is None else self._loop.statistics

    def watch(self, source: Source) -> None:
        """Add a source. If the controller has started, the source starts immediately.

        The workers do not wait for a source that is added while they run: a kind that does not exist is logged, and is
        watched when it is created.
        """
        if source in self._sources:
            raise ValueError(f"controller {self.name} already watches {source} by this source object")
        self._sources.append(source)
        if self._loop is not None:
            self._loop.start_source(source)

    async def unwatch(self, source: Source) -> None:
        """Remove a source and wait until it has stopped. Keys that it has enqueued are still reconciled.

        - Its informer keeps running for reads; `informers.release` stops it.
        - ValueError if the controller does not have this source.
        """
        if source not in self._sources:
            raise ValueError(f"controller {self.name} does not watch {source} by this source object")
        self._sources.remove(source)
        if self._loop is not None:
            await self._loop.end_source(source)

    @property
    def has_synced(self) -> bool:
        """Whether it was started and all its sources are ready."""
        return self._loop is not None and self._loop.is_ready

    async def warm_up(self, dependencies: Dependencies) -> None:
        """Start the sources and wait until all are ready, if the option `warm_up` is set."""
        options = self.options.complete(dependencies.controllers)
        if options.warm_up and options.needs_leader_election:
            try:
                await self._start(dependencies)
            except BaseException:
                await self.tear_down(dependencies)
                raise

    async def tear_down(self, dependencies: Dependencies) -> None:  # noqa: ARG002 - the same as at the warm-up
        """Stop what `warm_up` started, in a process that never became leader. No effect otherwise."""
        if self._loop is not None:
            await self._loop.end()

    async def run(self, dependencies: Dependencies) -> None:
        if self._ran:
            raise ControllerError(f"controller {self.name} can be started only once; was it added twice?")
        self._ran = True
        try:
            loop = await self._start(dependencies)
            await loop.work()
        finally:
            await self.tear_down(dependencies)

    async def _start(self, dependencies: Dependencies) -> ControlLoop:
        """Start the sources unless they run, and wait until they are ready."""
        if self._loop is None:
            if not self._sources:
                raise ControllerError(f"controller {self.name} has no sources; add one with watch()")
            options = self.options.complete(dependencies.controllers, None if self.view is None else self.view.gvk)
            self._loop = ControlLoop(self, options, dependencies)
            for source in self._sources:
                self._loop.start_source(source)
        await self._loop.ready()
        return self._loop


def _kind(view: View[Any]) -> AnyKind:
    return view.cls if isinstance(view, Typed) else view
