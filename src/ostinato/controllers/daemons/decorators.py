"""`@daemon` and `@timer`: define them by a function of the object and the context.

    @daemon(Widget, labels="tier=web")
    async def listen(widget: Widget, ctx: Context) -> None:
        async for message in subscribe(widget.spec.topic):
            await ctx.status(last_message=message)

    @timer(Widget, every=60, idle=10)
    def measure(widget: Widget, ctx: BlockingContext) -> None:
        ctx.status(size=size_of(widget))

Both are added to a manager like controllers, and run by `ostinato run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import isroutine
from typing import Any, Final, TypeVar, Unpack

from ostinato.cache.informers import AnyKind
from ostinato.client.options import LabelSelection
from ostinato.client.views import Kind, view_of
from ostinato.controllers.builder import Builder
from ostinato.controllers.controller import Controller
from ostinato.controllers.daemons.reconciler import DaemonReconciler
from ostinato.controllers.daemons.selection import Selection
from ostinato.controllers.daemons.timer import Interval, TimerReconciler
from ostinato.controllers.decorator import ControllerFunction, function_name, maker
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.controllers.objects.finalizing import check_finalizer
from ostinato.controllers.options import ControllerOptions, OptionKeywords, check_option_names
from ostinato.controllers.signatures import is_request, parameters_of

T = TypeVar("T")
Decorator = Callable[[Callable[..., Any]], ControllerFunction]

_COMMON: Final = ("name", "labels", "when", "owns", "access")


def daemon(
    kind: Kind[T] | KindsOf,
    *,
    name: str = "",
    labels: LabelSelection = None,
    when: Callable[[T], object] | None = None,
    finalizer: str = "",
    owns: Iterable[AnyKind] = (),
    access: Sequence[Any] = (),
    **options: Unpack[OptionKeywords],
) -> Decorator:
    """Return a decorator that makes a function the daemon of each object of a kind.

    - `name`: name in logs and metrics, and field manager. Defaults to the name of the function.
    - `labels`, `when`: which objects have a daemon: a label selector, a function of the object. Default to all.
    - `finalizer`: name of a finalizer that keeps the object until its daemon has ended. Defaults to "": without.
    - `owns`: kinds of the objects that it creates; for manifests, and for `ctx.prune`.
    - `access`: further permissions (`ostinato.crd.Access`); for manifests.
    - `options`: those of `ControllerOptions`.
    """
    _check("daemon", kind, options, ("finalizer",))
    selection = Selection(labels, when)
    if finalizer:
        check_finalizer(finalizer)

    def decorate(function: Callable[..., Any]) -> ControllerFunction:
        def made(kind: Any, suffix: str) -> Controller:
            builder = _builder("daemon", function, kind, f"{name or function_name(function)}{suffix}", owns, options)
            reconciler = DaemonReconciler(
                function, view_of(kind), selection, finalizer=finalizer, options=builder.options
            )
            return builder.needs(*access).make(reconciler)

        return ControllerFunction(function, maker(kind, made))

    return decorate


def timer(
    kind: Kind[T] | KindsOf,
    *,
    every: float | None = None,
    idle: float | None = None,
    initial_delay: float = 0.0,
    jitter: float = 0.0,
    name: str = "",
    labels: LabelSelection = None,
    when: Callable[[T], object] | None = None,
    owns: Iterable[AnyKind] = (),
    access: Sequence[Any] = (),
    **options: Unpack[OptionKeywords],
) -> Decorator:
    """Return a decorator that calls a function for each object of a kind at intervals.

    - `every`: seconds from one call to the next. Defaults to None: once after each change, with `idle`.
    - `idle`: seconds without a change of spec, labels and annotations before a call. Defaults to None.
    - `initial_delay`: seconds before the first call. Defaults to 0.
    - `jitter`: fraction by which each interval is prolonged at random, at most. Defaults to 0.
    - The others are those of `daemon`.
    """
    _check("timer", kind, options, Interval.__struct_fields__)
    interval = Interval(every=every, idle=idle, initial_delay=initial_delay, jitter=jitter)
    selection = Selection(labels, when)

    def decorate(function: Callable[..., Any]) -> ControllerFunction:
        def made(kind: Any, suffix: str) -> Controller:
            builder = _builder("timer", function, kind, f"{name or function_name(function)}{suffix}", owns, options)
            return builder.needs(*access).make(TimerReconciler(function, view_of(kind), selection, interval))

        return ControllerFunction(function, maker(kind, made))

    return decorate


def _check(what: str, kind: object, options: OptionKeywords, known: Sequence[str]) -> None:
    if isroutine(kind):
        raise TypeError(f"@{what} needs a kind; write @{what}(Widget) above def {kind.__name__}")
    check_option_names(options, (*_COMMON, *known, *ControllerOptions.__struct_fields__), f"@{what}")


def _builder(
    what: str,
    function: Callable[..., Any],
    kind: Kind[Any],
    name: str,
    owns: Iterable[AnyKind],
    options: OptionKeywords,
) -> Builder:
    if is_request(function, parameters_of(function, name)[0]):
        raise TypeError(f"{what} {name} takes a request; its first parameter must be the object")
    builder = Builder(name).watch_for(kind)
    for each in owns:
        builder.owns(each)
    return builder.with_options(**options)
