"""Handlers: the handlers of a program as one runnable.

    @on.create(Site)
    def publish(spec, patch, **_): ...

    Manager().add(on.handlers(__name__)).run()

- `ostinato run sites.py` finds the handlers of a file, and of all modules that it imports, by itself.
- Each kind has one controller for its create, update, delete, resume and field handlers; each daemon and timer has its
  own, all on one cache.
- Startup handlers run first, then indexes are filled, then the controllers start. Cleanup handlers run at the end.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.client.views import Typed, Unstructured, View
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.kinds.controllers import KindControllers
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.tasks import run_together
from ostinato.crd.rbac import Access
from ostinato.frontends.handlers.handler import CHANGING, Handler, check_ids
from ostinato.frontends.handlers.kind import KindOperator
from ostinato.frontends.handlers.resources import NamedKinds, kind_info
from ostinato.frontends.handlers.running.activities import ActivityFailed, run_activities
from ostinato.frontends.handlers.running.calls import check_parameters
from ostinato.frontends.handlers.running.indexes import Indexer
from ostinato.frontends.handlers.running.memory import Shared
from ostinato.frontends.handlers.running.recording import CallRecorder, decider_of
from ostinato.frontends.handlers.settings import Settings
from ostinato.frontends.kernel.sync import Decider

_OBJECT_FORMS: Final = CHANGING | {"event", "daemon", "timer"}
_PERSISTENCE: Final = frozenset({"finalizer", "store", "namespace"})
_ADMISSION: Final = frozenset({"validate", "mutate"})
_WITHOUT_EFFECT: Final = {
    "login": "the manager connects as kubectl does",
    "probe": "use manager.add_health_check",
    "validate": "add on.webhooks(...) to the manager",
    "mutate": "add on.webhooks(...) to the manager",
}


class Handlers(ControllerFunction):
    """A set of handlers. Handlers can be added until it runs; each manager runs its own instance of it."""

    def __init__(self, name: str = "", *, finalizer: str = "") -> None:
        """
        - `name`: identifies progress and finalizers; unique among the operators of a kind. Defaults to the name of the
          file that is run.
        - `finalizer`: defaults to "handlers.ostinato.dev/NAME".
        """
        self._given_name = _valid(name) if name else ""
        self.default_name = "handlers"
        self._finalizer = finalizer
        self.handlers: list[Handler] = []
        self.options: dict[str, Any] = {}  # of `on.settings`
        self._declared: list[Access] = []
        self._recorder = CallRecorder()
        self._running: dict[Dependencies, Controller] = {}
        self.called = False
        self.is_served = False  # `on.webhooks` serves the admission handlers
        self.function = self.add

    def __repr__(self) -> str:
        return f"<handlers {self.name}: {', '.join(each.id for each in self.handlers)}>"

    def add(self, handler: Handler) -> None:
        self.handlers.append(handler)

    def merge(self, others: Iterable[Handlers]) -> Handlers:
        """Return one set with the handlers of this and others: they share names, indexes and settings."""
        merged = Handlers(self._given_name, finalizer=self._finalizer)
        merged._recorder = self._recorder
        merged.default_name = self.default_name
        for each in (self, *others):
            merged.handlers += each.handlers
            merged.options |= each.options
            merged._declared += each._declared
            merged.is_served = merged.is_served or each.is_served
            merged._given_name = merged._given_name or each._given_name
            merged._finalizer = merged._finalizer or each._finalizer
        return merged

    def configure(self, name: str = "", access: Sequence[Access] = (), **options: Any) -> None:
        """Set the name, permissions, and options of `settings.persistence`."""
        if name:
            self._given_name = _valid(name)
        self._declared += access
        if unknown := sorted(set(options) - _PERSISTENCE):
            raise TypeError(
                f"on.settings(): unknown option {unknown[0]!r}; options are {', '.join(sorted(_PERSISTENCE))}"
            )
        self.options |= options

    def deciders(self) -> Mapping[str, Decider]:
        """Return what replays recorded calls."""
        return {self.name: decider_of(self.handlers)}

    def use_finalizer(self, name: str) -> None:
        """Use a finalizer unless another one is set."""
        self._finalizer = self._finalizer or name

    @property
    def name(self) -> str:
        return self._given_name or _valid(self.default_name)

    @property
    def _shown(self) -> Controller:  # type: ignore[override]  # changes with each handler
        return self.make()

    def make(self) -> Controller:
        settings = Settings(**{"finalizer": self._finalizer, **self.options})
        handlers = [each for each in self.handlers if not (self.is_served and each.form in _ADMISSION)]
        return Operator(self.name, handlers, settings, self._declared, self._recorder)


class Operator(Controller):
    """The handlers of a program, for one run."""

    def __init__(
        self,
        name: str,
        handlers: Sequence[Handler],
        settings: Settings,
        access: Sequence[Access],
        recorder: CallRecorder,
    ) -> None:
        check_ids(handlers)
        indexes = [each for each in handlers if each.form == "index"]
        for each in handlers:
            check_parameters(each, [index.id for index in indexes])
        self._handlers = handlers
        self._views = _static_views(each for each in handlers if each.form in _OBJECT_FORMS)
        static = {each.id: _unstructured(each) for each in indexes if _view(each) is not None}
        self._indexer = Indexer(indexes, {name: view for name, view in static.items() if view is not None})
        self._shared = Shared(name, settings, self._indexer.indexes, recorder)
        super().__init__(
            name, _placeholder, options=ControllerOptions(), access=[*_records(handlers, settings), *access]
        )
        self._children: list[Controller] = []
        self._has_started = False  # the children exist

    # Manifests

    @property
    def reconciles(self) -> tuple[Any, ...]:
        views = (view.cls if isinstance(view, Typed) else view for view in self._views.values())
        return (*views, *(NamedKinds(wanted=(each,)) for each in self._named().wanted))

    @property
    def watches(self) -> tuple[Any, ...]:
        reconciled = {view.gvk for view in self._views.values()}
        views = [_view(each) for each in self._handlers if each.form == "index"]
        return tuple(view for view in views if view is not None and view.gvk not in reconciled)

    def _named(self) -> NamedKinds:
        """Return the kinds that are found by discovery."""
        wanted = [
            each.resources
            for each in self._handlers
            if each.form in _OBJECT_FORMS and each.resources is not None and each.resources.view is None
        ]
        excluded = tuple(view.gvk.group_kind for view in self._views.values())
        return NamedKinds(wanted=tuple(dict.fromkeys(wanted)), excluded=excluded)

    # Running

    @property
    def has_synced(self) -> bool:
        return self._has_started and all(each.has_synced for each in self._children)

    async def warm_up(self, dependencies: Dependencies) -> None:
        """No effect: startup handlers come first."""

    async def tear_down(self, dependencies: Dependencies) -> None:
        """No effect: `run` stops what it has started."""

    async def run(self, dependencies: Dependencies) -> None:
        for each in self._handlers:
            if each.form in _WITHOUT_EFFECT:
                dependencies.logger.warning(
                    "handler is not called; %s form=%s handler=%s", _WITHOUT_EFFECT[each.form], each.form, each.id
                )
        await run_activities(self._of("startup"), self._shared, dependencies)
        settings = self._shared.settings
        settings.report_ignored()
        if not settings.persistence.namespace:
            settings.persistence.namespace = dependencies.client.live.namespace or "default"
        try:
            await self._indexer.start(dependencies)
            self._children = self._made()
            self._has_started = True
            work: list[Callable[[Dependencies], Awaitable[None]]] = [each.run for each in self._children]
            await run_together([*work, self._indexer.run], dependencies)
        finally:
            await self._clean_up(dependencies)

    def _made(self) -> list[Controller]:
        made: list[Controller] = []
        for view in self._views.values():
            info = kind_info(view)
            made.append(self._kind(view, f".{info.plural}.{info.gvk.group}".rstrip(".")))
        named = self._named()
        if named.wanted:
            made.append(KindControllers(named, self._kind))
        return made

    def _kind(self, view: View[Any], suffix: str) -> Controller:
        info = kind_info(view)
        handlers = [
            each
            for each in self._handlers
            if each.form in _OBJECT_FORMS and each.resources is not None and each.resources.matches(info)
        ]
        return KindOperator(f"{self.name}{suffix}", view, handlers, self._shared)

    async def _clean_up(self, dependencies: Dependencies) -> None:
        """Run the cleanup handlers, also when the operator is cancelled."""
        handlers = self._of("cleanup")
        if not handlers:
            return
        try:
            await run_activities(handlers, self._shared, dependencies)
        except ActivityFailed as error:
            dependencies.logger.error("cleanup failed operator=%s error=%s", self.name, error)

    def _of(self, form: str) -> list[Handler]:
        return [each for each in self._handlers if each.form == form]


_SECRETS: Final = KindInfo(GroupVersionKind("", "v1", "Secret"), "secrets", "secret", namespaced=True)


def _records(handlers: Iterable[Handler], settings: Settings) -> list[Access]:
    """Return the access to records: in ConfigMaps, and in Secrets if a handler handles Secrets."""
    if settings.persistence.store == "status":
        return []
    changing = [each.resources for each in handlers if each.form in CHANGING and each.resources is not None]
    kinds = ("configmaps", "secrets") if any(each.matches(_SECRETS) for each in changing) else ("configmaps",)
    return [Access(groups=("",), resources=kinds, verbs=("get", "list", "create", "patch", "delete"))]


def _view(handler: Handler) -> View[Any] | None:
    return None if handler.resources is None else handler.resources.view


def _unstructured(handler: Handler) -> Unstructured | None:
    view = _view(handler)
    return None if view is None else Unstructured(view.gvk, view.info)


def _static_views(handlers: Iterable[Handler]) -> dict[Any, View[Any]]:
    """Return the kinds that need no discovery, by name; a class rather than a view without one."""
    found: dict[Any, View[Any]] = {}
    for each in handlers:
        view = _view(each)
        if view is not None and (view.gvk not in found or isinstance(view, Typed)):
            found[view.gvk] = view
    return found


def _valid(name: str) -> str:
    """Return a name that is valid in labels, finalizers and object names."""
    found = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:40].strip("-.")
    if not found:
        raise ValueError(f"{name!r} is not a name of an operator; use letters, digits and '-'")
    return found


async def _placeholder(request: Any, ctx: Any) -> None:
    """Never called: the kinds have controllers of their own."""
