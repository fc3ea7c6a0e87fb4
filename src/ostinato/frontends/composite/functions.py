"""Composites and decorators as Python functions.

    @composite(BlueGreen, children=[rolling(ReplicaSet), Service])
    def bluegreens(bg: BlueGreen, observed: Observed):
        yield service(bg)
        yield from replica_sets(bg, observed[ReplicaSet])

    @decorate(StatefulSet, when=annotation("service-per-pod-label"), attaches=[Service])
    def services(statefulset: StatefulSet):
        return [service(statefulset, index) for index in range(statefulset.spec.replicas)]

- The function returns or yields the desired objects, typed or dicts. Those that it leaves out are deleted. `Sync` adds
  a status, labels, Events, or the time of the next call.
- It is called for each parent at the start, and when the parent, a child or a related object changes. New code is
  therefore applied to all parents when the program is restarted, as `ostinato run --reload` does.
- Children of other kinds than the declared ones are allowed: their kinds are watched from then on, and recorded in an
  annotation of the parent.
- A plain function runs in a thread; an `async def`, or an async generator, on the event loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack

import msgspec

from ostinato.api import accessors as access
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.object import Object
from ostinato.cache.informers import AnyKind
from ostinato.client.arguments import summarize
from ostinato.client.views import Typed, view_of
from ostinato.controllers.decorator import function_name
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.options import ControllerOptions, OptionKeywords
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.signatures import is_async
from ostinato.frontends.composite.vocabulary import Child, Observed, Related, Sync, When, typed
from ostinato.frontends.kernel.applier import Strategy
from ostinato.frontends.kernel.controller import SyncController, SyncOptions, definition_access
from ostinato.frontends.kernel.related import Selection
from ostinato.frontends.kernel.sync import (
    Decider,
    DeciderError,
    Json,
    SyncRequest,
    SyncResult,
)
from ostinato.world import World


class _Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What the decorators have in common."""

    name: str
    kind: Any
    children: tuple[Child, ...]
    when: When | None
    related: Callable[[Any], Any] | None
    finalize: Callable[..., Any] | None
    resync: float
    decorates: bool
    access: tuple[Any, ...]
    options: ControllerOptions


class SyncFunction(FrontEnd):
    """The result of `@composite` and `@decorate`: a runnable that also calls the function."""

    sharded = True

    def __init__(self, function: Callable[..., Any], definition: _Definition) -> None:
        self.function = function
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self._definition = definition
        self.name = definition.name
        view = view_of(definition.kind)
        self._cls = view.cls if isinstance(view, Typed) else None
        self.reconciles = (definition.kind,)
        self.owns = tuple(each.kind for each in definition.children)
        self.access = (*definition.access, *definition_access([view_of(each).gvk for each in self.owns]))
        self.needs_leader_election = definition.options.needs_leader_election
        self._running: list[SyncController] = []
        _check_signature(function, ("parent", "observed"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{'decorator' if self._definition.decorates else 'composite'} {self.name}>"

    @property
    def has_synced(self) -> bool:
        return bool(self._running) and all(each.has_synced for each in self._running)

    def deciders(self) -> Mapping[str, Decider]:
        return {self.name: partial(self._decide, None)}

    async def run(self, dependencies: Dependencies) -> None:
        definition = self._definition
        strategies: dict[GroupKind, Strategy] = {
            view_of(each.kind).gvk.group_kind: each.strategy for each in definition.children
        }
        options = SyncOptions(
            children=tuple(view_of(each.kind).gvk for each in definition.children),
            strategies=strategies,
            related=None if definition.related is None else self._selections,
            finalizer=f"{self.name}.ostinato.dev/finalize" if definition.finalize is not None else "",
            selects=self._selects if definition.when is not None and definition.finalize is not None else None,
            resync=definition.resync,
            observed_generation=not definition.decorates,
            controller=definition.options,
        )
        decider = partial(self._decide, dependencies.world)
        controller = SyncController(self.name, definition.kind, decider, options)
        self._running.append(controller)
        try:
            await controller.run(dependencies)
        finally:
            self._running.remove(controller)

    def _selects(self, parent: Json) -> bool:
        when = self._definition.when
        return when is None or bool(when(typed(parent, self._cls)))

    async def _selections(self, parent: Json) -> Sequence[Selection]:
        related = self._definition.related
        assert related is not None
        found = related(typed(parent, self._cls))
        if inspect.isawaitable(found):
            found = await found
        chosen = [found] if isinstance(found, Related) else list(found or ())
        for each in chosen:
            if not isinstance(each, Related):
                raise DeciderError(f"{self.name}: related: {summarize(each)} is not a Related", permanent=True)
        return [each.selection() for each in chosen]

    async def _decide(self, world: World | None, request: SyncRequest) -> SyncResult:
        parent = request.parent or {}
        finalize = self._definition.finalize
        if request.finalizing and finalize is not None:
            return self._result(await self._called(finalize, world, request), finalizing=True)
        if not self._selects(parent):
            return SyncResult(children=[])
        return self._result(await self._called(self.function, world, request), finalizing=False)

    async def _called(self, function: Callable[..., Any], world: World | None, request: SyncRequest) -> Any:
        parent = request.parent or {}
        observed = Observed(access.namespace(parent), request.children, request.related, finalizing=request.finalizing)
        arguments = (typed(parent, self._cls), observed)[: _count(function)]
        if inspect.isasyncgenfunction(function):
            return [each async for each in function(*arguments)]
        if is_async(function):
            return await function(*arguments)
        call = partial(_complete, function, arguments)
        return call() if world is None else await world.executor.run(call)

    def _result(self, answer: Any, *, finalizing: bool) -> SyncResult:
        if finalizing and (answer is None or isinstance(answer, bool)):
            return SyncResult(finalized=answer is not False)  # children stay as they are
        sync = answer if isinstance(answer, Sync) else Sync(children=self._objects(answer))
        result = SyncResult(
            children=[self._document(each, place) for place, each in enumerate(self._objects(sync.children))],
            status=None if sync.status is None else _status(sync.status),
            labels=sync.labels,
            annotations=sync.annotations,
            resync_after=sync.resync_after,
            ready=sync.ready,
            events=sync.events,
        )
        if finalizing:
            result.finalized = sync.finalized is not False
        return result

    def _objects(self, answer: Any) -> Iterable[Any]:
        if isinstance(answer, Object) or (isinstance(answer, dict) and "kind" in answer):
            return (answer,)
        if answer is None or isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
            what = "None" if answer is None else summarize(answer)
            raise DeciderError(
                f"{self.name} returned {what}; return or yield objects, [] to delete all, or Sync(...)", permanent=True
            )
        return answer

    def _document(self, instance: Any, place: int) -> Json:
        if isinstance(instance, Object):
            return to_dict(instance)
        if isinstance(instance, dict):
            return instance
        raise DeciderError(
            f"{self.name}: object number {place + 1} is {summarize(instance)}; return typed objects or dicts",
            permanent=True,
        )


def composite(
    kind: AnyKind,
    *,
    children: Iterable[AnyKind | Child] = (),
    name: str = "",
    related: Callable[[Any], Iterable[Related] | Related | None] | None = None,
    finalize: Callable[..., Any] | None = None,
    when: When | None = None,
    resync: float = 0.0,
    access: Sequence[Any] = (),
    **options: Unpack[OptionKeywords],
) -> Callable[[Callable[..., Any]], SyncFunction]:
    """Return a decorator: the function decides on the children of each object of a kind.

    - `children`: kinds of the children; `rolling(ReplicaSet)` and the like say how they are updated. Others are
      learned.
    - `name`: in logs and metrics, and field manager. Defaults to the name of the function.
    - `related`: returns which other objects the function needs to see, for a parent.
    - `finalize`: called before a parent is deleted, or after it stopped matching `when`, until it returns True.
    - `when`: which parents have children; see `annotation` and `labels`. Defaults to all.
    - `resync`: seconds between calls for all parents. Defaults to 0: only at changes.
    - `access`: permissions beyond those for the kinds (`ostinato.crd.Access`); for manifests.
    - `options`: those of `ControllerOptions`.
    """
    _check_kind(kind, "composite")

    return _decorator(
        name,
        kind=kind,
        children=_children(children),
        when=when,
        related=related,
        finalize=finalize,
        resync=resync,
        decorates=False,
        access=tuple(access),
        options=ControllerOptions(**options),
    )


def decorate(
    kind: AnyKind,
    *,
    when: When | None = None,
    attaches: Iterable[AnyKind | Child] = (),
    name: str = "",
    related: Callable[[Any], Iterable[Related] | Related | None] | None = None,
    finalize: Callable[..., Any] | None = None,
    resync: float = 0.0,
    access: Sequence[Any] = (),
    **options: Unpack[OptionKeywords],
) -> Callable[[Callable[..., Any]], SyncFunction]:
    """Return a decorator: the function attaches objects, labels and annotations to objects of any kind.

    - `when`: which objects are decorated. The attachments of one that does not match any more are deleted.
    - `attaches`: kinds of the attachments.
    - Several decorators may attach objects to the same one. The other arguments are those of `composite`.
    """
    _check_kind(kind, "decorate")

    return _decorator(
        name,
        kind=kind,
        children=_children(attaches),
        when=when,
        related=related,
        finalize=finalize,
        resync=resync,
        decorates=True,
        access=tuple(access),
        options=ControllerOptions(**options),
    )


def _decorator(name: str, **fields: Any) -> Callable[[Callable[..., Any]], SyncFunction]:
    def made(function: Callable[..., Any]) -> SyncFunction:
        return SyncFunction(function, _Definition(name=name or function_name(function), **fields))

    return made


_IN_PLACE: Final = Strategy()


def _children(given: Iterable[AnyKind | Child]) -> tuple[Child, ...]:
    return tuple(each if isinstance(each, Child) else Child(each, _IN_PLACE) for each in given)


def _check_kind(kind: Any, name: str) -> None:
    if inspect.isroutine(kind):
        raise TypeError(f"@{name} needs a kind; write @{name}(Widget) above def {kind.__name__}")
    if not isinstance(kind, GroupVersionKind):
        view_of(kind)


def _check_signature(function: Callable[..., Any], given: Sequence[str]) -> None:
    count = _count(function)
    if count not in (1, 2):
        raise TypeError(f"{function_name(function)}: must take the {given[0]}, and may take {given[1]}")


def _count(function: Callable[..., Any]) -> int:
    """Return how many arguments a function takes."""
    return sum(
        1
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    )


def _complete(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    answer = function(*arguments)
    return list(answer) if inspect.isgenerator(answer) else answer


def _status(status: Any) -> Json:
    return status if isinstance(status, dict) else to_dict(status)
