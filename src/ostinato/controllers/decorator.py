"""`@controller`: defines a controller by a function.

    @controller(Widget, owns=[Deployment], max_concurrent=4)
    async def widgets(widget: Widget, ctx: Context) -> None:
        ...

    Manager().add(widgets).run()

The function can still be called directly, in a test for example: `await widgets(widget, ctx)`. Each manager runs its
own `Controller`, so that several managers can run the same function.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from inspect import isroutine, signature
from typing import Any, Final, Generic, TypeVar, Unpack

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.informers import AnyKind
from ostinato.client.views import Kind, View
from ostinato.controllers.builder import Builder
from ostinato.controllers.controller import Controller
from ostinato.controllers.guards.program import program
from ostinato.controllers.kinds.controllers import KindControllers
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.controllers.options import ControllerOptions, OptionKeywords, check_option_names
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, MapFunction
from ostinato.controllers.sources.predicates import EventFunction
from ostinato.controllers.sources.sources import Source

T = TypeVar("T")
K = TypeVar("K")


class WatchKind(msgspec.Struct, Generic[T], frozen=True):
    """A further kind to watch: `WatchKind(ConfigMap, map_to=widgets_using)`. See `Builder.watches`."""

    kind: Kind[T] | GroupVersionKind
    map_to: MapFunction[T] | None = None
    handler: Handler | None = None
    predicates: tuple[EventFunction, ...] = ()
    options: dict[str, Any] = {}


class ControllerFunction:
    """The result of `@controller`, `@daemon` and `@timer`: a runnable that also calls the function."""

    def __init__(self, function: Callable[..., Any], make: Callable[[], Controller]) -> None:
        """`make`: creates a controller, to run once."""
        self.function = function
        self._make = make
        self._running: dict[Dependencies, Controller] = {}
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.called = False  # the function was called directly
        self._shown = self.make()  # never run; created here to report errors at the definition
        if getattr(function, "__module__", "") == "__main__":
            _check_at_exit()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.called = True
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<controller {self.name}>"

    @property
    def name(self) -> str:
        return self._shown.name

    @property
    def needs_leader_election(self) -> bool | None:
        return self._shown.needs_leader_election

    @property
    def reconciles(self) -> tuple[AnyKind, ...]:
        return self._shown.reconciles

    @property
    def owns(self) -> tuple[AnyKind, ...]:
        return self._shown.owns

    @property
    def watches(self) -> tuple[AnyKind, ...]:
        return self._shown.watches

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources like those of its controllers; never started."""
        return self._shown.sources

    @property
    def access(self) -> tuple[Any, ...]:
        return self._shown.access

    @property
    def has_synced(self) -> bool:
        """Whether it was started and all its sources are ready, in every manager that runs it."""
        return bool(self._running) and all(each.has_synced for each in self._running.values())

    def make(self) -> Controller:
        """Create a `Controller`, to run once."""
        return self._make()

    async def warm_up(self, dependencies: Dependencies) -> None:
        await self._made(dependencies).warm_up(dependencies)

    async def tear_down(self, dependencies: Dependencies) -> None:
        made = self._running.pop(dependencies, None)
        if made is not None:
            await made.tear_down(dependencies)

    async def run(self, dependencies: Dependencies) -> None:
        try:
            await self._made(dependencies).run(dependencies)
        finally:
            self._running.pop(dependencies, None)

    def _made(self, dependencies: Dependencies) -> Controller:
        made = self._running.get(dependencies)
        if made is None:
            made = self._running[dependencies] = self.make()
        return made


def controller(
    kind: AnyKind | KindsOf | None = None,
    *,
    name: str = "",
    owns: Iterable[AnyKind] = (),
    watches: Iterable[WatchKind[Any]] = (),
    sources: Sequence[Source] = (),
    predicates: Iterable[EventFunction] = (),
    access: Sequence[Any] = (),
    **options: Unpack[OptionKeywords],
) -> Callable[[Callable[..., Any]], ControllerFunction]:
    """Return a decorator that makes a function a controller; see `reconcilers` for its arguments.

    - `kind`: the kind that is reconciled, or a selector of many kinds. Defaults to None: the sources define the keys.
    - `name`: name in logs and metrics, and field manager. Defaults to the name of the function.
    - `owns`: kinds of the objects that it creates. A change of one reconciles its owner.
    - `watches`: further kinds to watch, each with a map function or an event handler.
    - `sources`: further sources of keys.
    - `predicates`: filter the events of `kind`. Defaults to none.
    - `access`: permissions beyond those for the watched kinds (`ostinato.crd.Access`); for manifests.
    - `options`: those of `ControllerOptions`.
    """

    if kind is not None and isroutine(kind):
        raise TypeError(f"@controller needs a kind; write @controller(Widget) above def {kind.__name__}")

    check_option_names(options, _KEYWORDS, "@controller")

    def built(function: Callable[..., Any], kind: AnyKind | None, suffix: str = "") -> Controller:
        builder = Builder(f"{name or function_name(function)}{suffix}")
        if kind is not None:
            builder.watch_for(kind, predicates=predicates)
        for each in _listed("owns", owns):
            builder.owns(each)
        for watch in _listed("watches", watches):
            if not isinstance(watch, WatchKind):
                raise TypeError(
                    f"watches: {_shown(watch)} is not a WatchKind; use WatchKind({_shown(watch)}, map_to=…)"
                )
            builder.watches(
                watch.kind,
                map_to=watch.map_to,
                handler=watch.handler,
                predicates=watch.predicates,
                **watch.options,
            )
        for source in sources:
            builder.watches_source(source)
        return builder.with_options(**options).needs(*access).make(function)

    def decorate(function: Callable[..., Any]) -> ControllerFunction:
        return ControllerFunction(function, maker(kind, lambda each, suffix: built(function, each, suffix)))

    return decorate


def maker(kind: K | KindsOf, made: Callable[[K | View[Any], str], Controller]) -> Callable[[], Controller]:
    """Return a function that creates the controller of a kind, or of all kinds of a selector.

    `made`: creates the controller of one kind, with a suffix of its name.
    """
    if isinstance(kind, KindsOf):
        return lambda: KindControllers(kind, made)
    return lambda: made(kind, "")


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a controller that is defined by a function; "" for a lambda."""
    return getattr(function, "__name__", "").strip("_").replace("<lambda>", "")


_KEYWORDS: Final = (
    *(name for name, each in signature(controller).parameters.items() if each.kind is each.KEYWORD_ONLY),
    *ControllerOptions.__struct_fields__,
)


@cache
def _check_at_exit() -> None:
    """Register the report, once. The name is determined here: `__main__` has no `__file__` at exit."""
    atexit.register(_report_not_run, program())


def _report_not_run(name: str) -> None:
    """Print how to run a program that defines controllers and ends without a manager."""
    main = sys.modules["__main__"]
    controllers = {key: each for key, each in vars(main).items() if isinstance(each, ControllerFunction)}
    failed = hasattr(sys, "last_type")
    if not name or failed or "ostinato.manager" in sys.modules or not controllers:
        return
    if not any(each.called for each in controllers.values()):
        names = ", ".join(controllers)
        sys.stderr.write(
            f"{name} defines controllers ({names}) and does not run them; use `ostinato run {name}`, or end the file "
            f"with Manager().add({names}).run()\n"
        )


def _listed(name: str, given: Iterable[T]) -> Iterable[T]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list; use {name}=[{_shown(given)}]")
    return given


def _shown(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)
