"""Sync controller: calls a decider for each object of a kind, and makes its answer true.

    watch the parents and their children -> queue -> collect -> decider -> children, metadata, status, Events

- A sync is level-based: it sees the parent and all its children as they are, and runs at the start for every parent.
- Kinds of children may be declared, or are learned from what the decider returns.
- With a finalizer, the decider is called with `finalizing` before the parent is deleted, until it answers `finalized`.
  Without one, children that the garbage collector does not delete with their parent are deleted all the same.
- A parent that stops matching the selector is finalized too, if it has the finalizer.
- An answer that fails half-way is repeated with backoff. The status is written also if children fail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.cache.informers import AnyKind
from ostinato.client.views import Unstructured, view_of
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.loop import ControllerError
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.request import Request
from ostinato.controllers.result import PermanentError, Result, TemporaryError
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import ForObject
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import EventFunction
from ostinato.controllers.sources.sources import Source
from ostinato.crd import Access
from ostinato.frontends.kernel.applier import AnnotatedKinds, Kinds, Outcome, SetApplier, StaticKinds, Strategy
from ostinato.frontends.kernel.applier.kinds import annotation_name
from ostinato.frontends.kernel.applier.strategies import IN_PLACE
from ostinato.frontends.kernel.parents import ParentWriter
from ostinato.frontends.kernel.recording import recorded
from ostinato.frontends.kernel.related import RelatedObjects, Selection
from ostinato.frontends.kernel.sync import Decider, DeciderError, Json, SyncRequest, SyncResult, Trigger
from ostinato.frontends.kernel.watching import ForSetOwner, WatchedKinds
from ostinato.kinds.builtin import builtin_scheme

_READS_DEFINITIONS: Final = Access(
    groups=("apiextensions.k8s.io",), resources=("customresourcedefinitions",), verbs=("get", "list", "watch")
)
_POLL: Final = 1.0  # seconds until a kind that is not served is tried again


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `children`: declared kinds of children, which are watched from the start and always in the request.
    - `learn_kinds`: accept children of other kinds, and record them in an annotation of the parent. Defaults to True.
    - `strategies`, `default_strategy`: how existing children are updated, by kind. Default to in place.
    - `related`: returns which other objects the decider needs, for a parent. Defaults to None.
    - `finalizer`: added to every parent. Defaults to "": only to parents that need it for their children.
    - `selects`: which parents are synced. Defaults to None, all.
    - `predicates`: filter the events of parents. Default to none.
    - `resync`: seconds between syncs of all parents. Defaults to 0, none.
    - `shared_owner`: other controllers may create children of the same parents, so that children carry the name of
      theirs. Defaults to True.
    - `adopt`: take over existing objects without a controller. Defaults to False.
    - `observed_generation`: set it in the status. Defaults to True.
    - `collect`: completes a request, with snapshots for example. Defaults to None.
    - `act`: performs the operations and metrics of a result, before its children. Defaults to None.
    - `sources`: further sources of keys.
    - `controller`: options of the controller, such as `max_concurrent`.
    - `definitions`, `access`: CustomResourceDefinitions and permissions beyond those that follow from the kinds.
    """

    children: tuple[GroupVersionKind, ...] = ()
    learn_kinds: bool = True
    strategies: Mapping[GroupKind, Strategy] = {}
    default_strategy: Strategy = IN_PLACE
    related: Callable[[Json], Awaitable[Sequence[Selection]]] | None = None
    finalizer: str = ""
    selects: Callable[[Json], bool] | None = None
    predicates: tuple[EventFunction, ...] = ()
    resync: float = 0.0
    shared_owner: bool = True
    adopt: bool = False
    observed_generation: bool = True
    collect: Callable[[SyncRequest], Awaitable[SyncRequest]] | None = None
    act: Callable[[SyncRequest, SyncResult], Awaitable[None]] | None = None
    sources: tuple[Source, ...] = ()
    controller: ControllerOptions | None = None
    definitions: tuple[Json, ...] = ()
    access: tuple[Any, ...] = ()


_DEFAULTS: Final = SyncOptions()


class SyncController(FrontEnd):
    """A front end with one kind of parents. It may run again after it has ended, as in several tests."""

    sharded = True

    def __init__(self, name: str, parent: AnyKind, decider: Decider, options: SyncOptions = _DEFAULTS) -> None:
        """
        - `name`: in logs and metrics; also the field manager.
        - `parent`: the kind of the parents.
        """
        self.name = name
        self.decider = decider
        self.parent = parent
        self.options = options
        self.decide = recorded(decider)
        self.reconciles = (parent,)
        self.owns = options.children
        self.definitions = options.definitions
        self.access = (*options.access, *(definition_access(options.children) if options.learn_kinds else ()))
        self.needs_leader_election = (options.controller or ControllerOptions()).needs_leader_election
        self._syncing: _Syncing | None = None  # while it runs

    def deciders(self) -> Mapping[str, Decider]:
        return {self.name: self.decider}

    @property
    def has_synced(self) -> bool:
        return self._syncing is not None and self._syncing.controller.has_synced

    @property
    def watched(self) -> frozenset[GroupVersionKind]:
        """The kinds of children that are watched now."""
        return frozenset() if self._syncing is None else self._syncing.children.kinds

    async def run(self, dependencies: Dependencies) -> None:
        if self._syncing is not None:
            raise ControllerError(f"controller {self.name} runs already; was it added twice?")
        self._syncing = _Syncing(self, dependencies)
        try:
            await self._syncing.run(dependencies)
        finally:
            self._syncing = None


class _Syncing:
    """One run of a sync controller."""

    def __init__(self, definition: SyncController, dependencies: Dependencies) -> None:
        options = self._options = definition.options
        self._name = definition.name
        self._decide = definition.decide
        view = view_of(definition.parent)
        self._view = Unstructured(view.gvk, view.info)
        kind = KindOptions(predicates=options.predicates, resync=options.resync)
        self.controller = Controller(
            definition.name,
            _Reconciler(self._reconcile),
            view=self._view,
            sources=[KindSource(self._view, ForObject(), kind), *options.sources],
            options=options.controller,
        )
        self.children = WatchedKinds(self.controller, ForSetOwner(definition.parent))
        self._related = RelatedObjects(self.controller)
        self._acting = _Acting(definition.name, options, dependencies)

    async def run(self, dependencies: Dependencies) -> None:
        for kinds in (self.children, self._related.kinds):
            kinds.start(dependencies)
        try:
            await self.controller.run(dependencies)
        finally:
            for kinds in (self.children, self._related.kinds):
                await kinds.stop()

    async def _reconcile(self, request: Request, context: Context) -> Result:
        parent = await context.client.get(self._view, request, missing=None)
        if parent is None:
            await self.children.use(request, ())
            await self._related.forget(request)
            return Result()
        context.object = parent
        try:
            return await self._sync(parent, context)
        except DeciderError as error:
            if error.permanent:
                raise PermanentError(str(error)) from error
            raise TemporaryError(str(error), delay=error.retry_after) from error

    async def _sync(self, parent: Json, context: Context) -> Result:
        options, acting = self._options, self._acting
        deleting = access.is_being_deleted(parent)
        finalizing = deleting or (options.selects is not None and not options.selects(parent))
        if finalizing and not access.has_finalizer(parent, acting.finalizer):
            return Result()  # nothing was done for it, or the garbage collector does the rest
        if finalizing and not options.finalizer:
            return await self._finish(parent, context)
        if not finalizing and options.finalizer:
            await acting.parents.finalizer(parent, options.finalizer, present=True)
        known = acting.kinds.known(parent) | frozenset(options.children)
        await self.children.use(context.request, known)
        request = await self._request(parent, known, context, finalizing=finalizing)
        result = await self._decide(request)
        return await self._act(parent, request, result, context)

    async def _request(
        self,
        parent: Json,
        known: frozenset[GroupVersionKind],
        context: Context,
        *,
        finalizing: bool,
    ) -> SyncRequest:
        options, related = self._options, {}
        if options.related is not None:
            related = await self._related.collect(context.request, await options.related(parent), context.client)
        request = SyncRequest(
            controller=self._name,
            trigger=Trigger(reasons=list(context.reconcile.why.reasons)),
            parent=parent,
            children=await self._acting.applier.members(parent, known),
            related=related,
            finalizing=finalizing,
            attempt=context.reconcile.attempt,
        )
        return request if options.collect is None else await options.collect(request)

    async def _act(self, parent: Json, request: SyncRequest, result: SyncResult, context: Context) -> Result:
        acting = self._acting
        if self._options.act is not None:
            await self._options.act(request, result)
        outcome, is_polled = Outcome(), False
        if result.children is not None:
            used = acting.kinds.known(parent) | _kinds_of(result.children) | frozenset(self._options.children)
            is_polled = bool(await self.children.use(context.request, used))
            outcome = await acting.apply(parent, result.children)
        await acting.parents.metadata(parent, result.labels, result.annotations)
        observed = self._options.observed_generation
        await acting.parents.status(parent, result.status, ready=result.ready, observed_generation=observed)
        if result.ready is not None:
            context.conditions_set.add("Ready")
        for event in result.events:
            context.event(parent, event.reason, event.note, kind=event.type, action=event.action or event.reason)
        outcome.raise_errors()
        if request.finalizing and result.finalized:
            return await self._finish(parent, context)
        delays = [each for each in (result.resync_after, _POLL if is_polled and outcome.held else None) if each]
        return Result(requeue_after=min(delays, default=None))

    async def _finish(self, parent: Json, context: Context) -> Result:
        """Delete the children that the garbage collector does not delete, then remove the finalizer."""
        acting = self._acting
        known = acting.kinds.known(parent) | frozenset(self._options.children)
        await self.children.use(context.request, known)
        await acting.applier.finalize(parent, kinds=acting.kinds, reachable=False)
        return Result()


def definition_access(children: Sequence[GroupVersionKind]) -> tuple[Access, ...]:
    """Return the access to CustomResourceDefinitions, unless only children of built-in kinds are expected."""
    scheme = builtin_scheme()
    return () if children and all(map(scheme.recognizes, children)) else (_READS_DEFINITIONS,)


class _Reconciler:
    """A method as a reconciler, whatever its class."""

    def __init__(self, function: Callable[[Request, Context], Awaitable[Result]]) -> None:
        self._function = function

    async def reconcile(self, request: Request, context: Context) -> Result:
        return await self._function(request, context)


class _Acting:
    """What writes to the cluster."""

    def __init__(self, name: str, options: SyncOptions, dependencies: Dependencies) -> None:
        client = dependencies.client
        self.finalizer = options.finalizer or f"ostinato.dev/{annotation_name(name)}"
        self.kinds: Kinds = AnnotatedKinds(client, name) if options.learn_kinds else StaticKinds(options.children)
        self.parents = ParentWriter(client, name)
        self.applier = SetApplier(client, name, finalizer=self.finalizer, shared_owner=options.shared_owner)
        self.apply = partial(self._apply, options)

    async def _apply(self, options: SyncOptions, parent: Json, children: Sequence[Json]) -> Outcome:
        return await self.applier.apply(
            parent,
            children,
            kinds=self.kinds,
            strategies=options.strategies,
            default=options.default_strategy,
            adopt=options.adopt,
        )


def _kinds_of(children: Sequence[Any]) -> frozenset[GroupVersionKind]:
    """Return the kinds of children that can be named; malformed ones are reported when they are applied."""
    found = set()
    for each in children:
        if isinstance(each, dict) and isinstance(each.get("apiVersion"), str) and each["apiVersion"].count("/") < 2:
            gvk = access.gvk(each)
            if gvk.kind and gvk.version:
                found.add(gvk)
    return frozenset(found)
