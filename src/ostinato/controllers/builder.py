"""Builder: defines a controller step by step, as controller-runtime's builder does.

    controller = (
        Builder("widgets")
        .watch_for(Widget, predicates=[generation_changed])
        .owns(Deployment)
        .watches(ConfigMap, map_to=widgets_using)
        .with_options(max_concurrent=4)
        .complete(WidgetReconciler(client))
    )

- `watch_for` sets the kind that is reconciled; at most once. `owns` requires it. Without it, a name is required.
- Predicates, event filters and options accumulate over several calls.
- Event filters apply before the predicates of each watched kind; they do not apply to other sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Self, TypeVar, Unpack

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.informers import AnyKind
from ostinato.client.arguments import summarize
from ostinato.client.views import Kind, View, view_of
from ostinato.controllers.controller import Controller
from ostinato.controllers.loop import ControllerError
from ostinato.controllers.options import ControllerOptions, OptionKeywords, check_option_names
from ostinato.controllers.sources.handlers import ForObject, ForOwner, Handler, MapFunction, MapTo
from ostinato.controllers.sources.kind import KindKeywords, KindOptions, KindSource
from ostinato.controllers.sources.predicates import EventFunction
from ostinato.controllers.sources.sources import Source

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?")


Role = Literal["for", "owned", "watched"]
_METHODS: Final[dict[Role, str]] = {"for": "watch_for", "owned": "owns", "watched": "watches"}


class WatchedKind(msgspec.Struct, frozen=True):
    """A kind that a controller watches, and its role."""

    view: View[Any]
    role: Role


class Builder:
    def __init__(self, name: str = "", *, add: Callable[[Controller], object] | None = None) -> None:
        """
        - `name`: name in logs and metrics, and field manager. Defaults to the kind in lower case.
        - `add`: called with the controller that `complete` creates. Defaults to None.
        """
        self._name = name
        self._add = add
        self._watched: list[tuple[WatchedKind, KindSource]] = []
        self._sources: list[Source] = []
        self._filters: list[EventFunction] = []
        self._options = ControllerOptions()
        self._access: list[Any] = []
        self._completed = False

    def watch_for(
        self, kind: AnyKind, *, predicates: Iterable[EventFunction] = (), **options: Unpack[KindKeywords]
    ) -> Self:
        """Reconcile the objects of this kind. Options are those of `KindOptions`."""
        if self._primary() is not None:
            raise ControllerError(f"{self._title()}: watch_for() may be called once; call watches() for further kinds")
        return self._watch(kind, "for", ForObject(), predicates, options)

    def owns(
        self,
        kind: AnyKind,
        *,
        every_owner: bool = False,
        predicates: Iterable[EventFunction] = (),
        **options: Unpack[KindKeywords],
    ) -> Self:
        """Reconcile the owner of an object of this kind when the object changes.

        `every_owner`: reconcile all owners. Defaults to False: only the controller owner.
        """
        primary = self._primary()
        if primary is None:
            raise ControllerError(f"{self._title()}: owns() needs a parent kind; call watch_for() first")
        return self._watch(kind, "owned", ForOwner(primary, every_owner=every_owner), predicates, options)

    def watches(
        self,
        kind: Kind[T] | GroupVersionKind,
        *,
        map_to: MapFunction[T] | None = None,
        handler: Handler | None = None,
        predicates: Iterable[EventFunction] = (),
        **options: Unpack[KindKeywords],
    ) -> Self:
        """Reconcile the keys that a function or an event handler returns when an object of this kind changes."""
        if (map_to is None) == (handler is None):
            raise ControllerError(f"{self._title()}: watches() needs either map_to or handler")
        chosen = handler if handler is not None else MapTo(map_to)  # type: ignore[arg-type]  # exactly one is None
        return self._watch(kind, "watched", chosen, predicates, options)

    def watches_source(self, source: Source) -> Self:
        """Reconcile the keys that a source enqueues."""
        if isinstance(source, type) or not callable(getattr(source, "run", None)):
            raise TypeError(
                f"{self._title()}: sources: {summarize(source)} is not a source; pass one such as StartupSource([key])"
            )
        self._sources.append(source)
        return self

    def with_event_filter(self, *predicates: EventFunction) -> Self:
        """Ignore events of any watched kind that one of these predicates rejects."""
        self._filters += predicates
        return self

    def with_options(self, options: ControllerOptions | None = None, **given: Unpack[OptionKeywords]) -> Self:
        """Set options of the controller. Later calls override earlier ones."""
        check_option_names(given, ControllerOptions.__struct_fields__, "with_options()")
        added = ControllerOptions(**given) if options is None else options
        self._options = added.inheriting(self._options)
        return self

    def needs(self, *access: Any) -> Self:
        """Declare permissions needed beyond those for the watched kinds (`ostinato.crd.Access`); for manifests."""
        self._access += access
        return self

    def named(self, name: str) -> Self:
        self._name = name
        return self

    @property
    def watched(self) -> tuple[WatchedKind, ...]:
        """The watched kinds and their roles."""
        return tuple(watched for watched, _ in self._watched)

    @property
    def name(self) -> str:
        """The given name, or the kind in lower case; "" without either."""
        primary = self._primary()
        return self._name or ("" if primary is None else primary.gvk.kind.lower())

    @property
    def options(self) -> ControllerOptions:
        return self._options

    def complete(self, reconciler: Any) -> Controller:
        """Create the controller and pass it to `add`. May be called once."""
        if self._completed:
            raise ControllerError(
                f"{self._title()}: complete() may be called once; use a new Builder for another reconciler"
            )
        controller = self.make(reconciler)
        self._completed = True
        if self._add is not None:
            self._add(controller)
        return controller

    def make(self, reconciler: Any) -> Controller:
        """Create a controller without adding it. May be called any number of times."""
        if reconciler is None:
            raise ControllerError(f"{self._title()}: complete() needs a reconciler")
        name = self.name
        if not name:
            raise ControllerError("a controller without a kind needs a name; call watch_for() or named()")
        if not _NAME.fullmatch(name):
            raise ControllerError(
                f"{name!r} is not a valid controller name; use at most 128 letters, digits, '-', '_' and '.', "
                "beginning and ending with a letter or digit"
            )
        if not self._watched and not self._sources:
            raise ControllerError(f"controller {name} has no sources; call watch_for(), watches() or watches_source()")
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
        kind: Kind[Any] | GroupVersionKind,
        role: Role,
        handler: Handler,
        predicates: Iterable[EventFunction],
        options: KindKeywords,
    ) -> Self:
        known = [name for name in KindOptions.__struct_fields__ if name != "predicates"]
        check_option_names(options, known, f"{self._title()}: {_METHODS[role]}()")
        if role != "watched" and options.get("informers") is not None:
            raise ControllerError(f"{self._title()}: informers of another cluster are supported by watches() only")
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
        raise TypeError(f"predicates must be a list; use predicates=[{getattr(predicates, '__name__', predicates)}]")
    return tuple(predicates)
