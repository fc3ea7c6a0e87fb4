"""The builder: a controller, put together step by step, in the words of controller-runtime.

    controller = (
        Builder("widgets")
        .watch_for(Widget, predicates=[generation_changed])
        .owns(Deployment)
        .watches(ConfigMap, map_to=widgets_using)
        .with_options(max_concurrent=4)
        .complete(WidgetReconciler(client))
    )

- `watch_for` is said once: it is the kind that requests are about. `owns` needs it. Without it, give a name.
- What is said twice adds up: predicates, event filters, options.
- Event filters are asked before the predicates of each kind that is watched, and not about other sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Self

import msgspec

from ostinato.cache.informers import AnyKind
from ostinato.client.arguments import summarize
from ostinato.client.views import View, view_of
from ostinato.controllers.controller import Controller, ControllerError
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.sources.handlers import ForObject, ForOwner, Handler, MapFunction, MapTo
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import EventFunction
from ostinato.controllers.sources.sources import Source

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?")


Role = Literal["for", "owned", "watched"]


class WatchedKind(msgspec.Struct, frozen=True):
    """A kind that a controller watches, and what for."""

    view: View[Any]
    role: Role


class Builder:
    def __init__(self, name: str = "", *, add: Callable[[Controller], object] | None = None) -> None:
        """
        - `name`: for logs, metrics, and as the owner of fields. Defaults to the kind, in lower case.
        - `add`: is given what `complete` makes. Defaults to nobody.
        """
        self._name = name
        self._add = add
        self._watched: list[tuple[WatchedKind, KindSource]] = []
        self._sources: list[Source] = []
        self._filters: list[EventFunction] = []
        self._options = ControllerOptions()
        self._access: list[Any] = []
        self._completed = False

    def watch_for(self, kind: AnyKind, *, predicates: Iterable[EventFunction] = (), **options: Any) -> Self:
        """Reconcile the objects of this kind. Options are those of `KindOptions`."""
        if self._primary() is not None:
            raise ControllerError(f"{self._title()}: watch_for was said twice; use watches for further kinds")
        return self._watch(kind, "for", ForObject(), predicates, options)

    def owns(
        self, kind: AnyKind, *, every_owner: bool = False, predicates: Iterable[EventFunction] = (), **options: Any
    ) -> Self:
        """Reconcile the object that manages an object of this kind, when that changes.

        `every_owner`: all of its owners. Defaults to the one that manages it.
        """
        primary = self._primary()
        if primary is None:
            raise ControllerError(f"{self._title()}: owns needs watch_for before it: whose is it?")
        return self._watch(kind, "owned", ForOwner(primary, every_owner=every_owner), predicates, options)

    def watches(
        self,
        kind: AnyKind,
        *,
        map_to: MapFunction | None = None,
        handler: Handler | None = None,
        predicates: Iterable[EventFunction] = (),
        **options: Any,
    ) -> Self:
        """Reconcile what a function says, or a handler, when an object of this kind changes."""
        if (map_to is None) == (handler is None):
            raise ControllerError(f"{self._title()}: watches needs either map_to or a handler")
        chosen = handler if handler is not None else MapTo(map_to)  # type: ignore[arg-type]  # just one is None
        return self._watch(kind, "watched", chosen, predicates, options)

    def watches_source(self, source: Source) -> Self:
        """Reconcile what a source tells."""
        if isinstance(source, type) or not callable(getattr(source, "run", None)):
            raise TypeError(
                f"{self._title()}: sources: {summarize(source)} is no source; give e.g. StartupSource([key])"
            )
        self._sources.append(source)
        return self

    def with_event_filter(self, *predicates: EventFunction) -> Self:
        """Hear only of events that all of these let pass, of every kind that is watched."""
        self._filters += predicates
        return self

    def with_options(self, options: ControllerOptions | None = None, **given: Any) -> Self:
        """Options of the controller; those that are given later win."""
        known = ControllerOptions.__struct_fields__
        if unknown := sorted(given.keys() - set(known)):
            raise TypeError(f"there is no option {unknown[0]!r} of a controller: there are {', '.join(known)}")
        added = ControllerOptions(**given) if options is None else options
        self._options = added.inheriting(self._options)
        return self

    def needs(self, *access: Any) -> Self:
        """Declare what it needs to be allowed beside the kinds that it watches (`ostinato.crd.Access`)."""
        self._access += access
        return self

    def named(self, name: str) -> Self:
        self._name = name
        return self

    @property
    def watched(self) -> tuple[WatchedKind, ...]:
        """The kinds that are watched, and what for."""
        return tuple(watched for watched, _ in self._watched)

    @property
    def name(self) -> str:
        """The name that was given, or the kind in lower case; "" if there is neither."""
        primary = self._primary()
        return self._name or ("" if primary is None else primary.gvk.kind.lower())

    @property
    def options(self) -> ControllerOptions:
        return self._options

    def complete(self, reconciler: Any) -> Controller:
        """The controller. May be called once: each reconciler is a controller of its own."""
        if self._completed:
            raise ControllerError(f"{self._title()}: there is a reconciler already; complete was called twice")
        controller = self.make(reconciler)
        self._completed = True
        if self._add is not None:
            self._add(controller)
        return controller

    def make(self, reconciler: Any) -> Controller:
        """A controller, however many there are."""
        if reconciler is None:
            raise ControllerError(f"{self._title()}: a reconciler is needed")
        name = self.name
        if not name:
            raise ControllerError("a controller that is for no kind needs a name")
        if not _NAME.fullmatch(name):
            raise ControllerError(
                f"{name!r} cannot be the name of a controller: letters, digits, '-', '_' and '.', 128 of them at most, "
                "and a letter or digit at both ends"
            )
        if not self._watched and not self._sources:
            raise ControllerError(f"controller {name} watches nothing: it would never run")
        return Controller(
            name,
            reconciler,
            view=self._primary(),
            owned=[each.view for each in self.watched if each.role == "owned"],
            sources=[*(source.with_filters(self._filters) for _, source in self._watched), *self._sources],
            options=self._options,
            access=self._access,
        )

    def _watch(
        self,
        kind: AnyKind,
        role: Role,
        handler: Handler,
        predicates: Iterable[EventFunction],
        options: dict[str, Any],
    ) -> Self:
        if role != "watched" and options.get("informers") is not None:
            raise ControllerError(f"{self._title()}: what is in another cluster is for watches(…, informers=…) alone")
        source = KindSource(kind, handler, KindOptions(predicates=_listed(predicates), **options))
        view = source.view if role == "for" else view_of(kind)
        self._watched.append((WatchedKind(view, role), source))
        return self

    def _primary(self) -> View[Any] | None:
        return next((watched.view for watched, _ in self._watched if watched.role == "for"), None)

    def _title(self) -> str:
        return f"controller {self.name}" if self.name else "a controller"


def _listed(predicates: Iterable[EventFunction]) -> tuple[EventFunction, ...]:
    if not isinstance(predicates, Iterable):
        raise TypeError(f"predicates is a list: predicates=[{getattr(predicates, '__name__', predicates)}]")
    return tuple(predicates)
