"""Hooks as Python functions: `@hook` with the bindings that `hook --config` of an executable would print.

    @hook(watch("pods", Pod, keep=lambda pod: pod.metadata.labels), cron("*/5 * * * *"), group="pods")
    def labels(ctx: HookContext) -> None:
        for pod in ctx.snapshots["pods"]:
            ctx.gauge("pod_labels", len(pod.value or {}), {"pod": pod.name})
        ctx.merge_patch("ConfigMap", "report", {"data": {"pods": str(len(ctx.snapshots["pods"]))}}, namespace="default")

- The function runs in this process: a plain `def` in a thread, an `async def` on the event loop. An exception is a
  failed run, which is repeated with backoff.
- With `group`, a change of any binding runs the function with the snapshots of all; without it the function reads
  `ctx.contexts`, one for each event.
- Operations and metrics are collected, and executed when the function has returned.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

import msgspec

from ostinato.api.codec import from_json
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import Object
from ostinato.api.text.cron import ScheduleError
from ostinato.client.options import LabelSelection
from ostinato.client.views import view_of
from ostinato.controllers import FrontEnd
from ostinato.frontends.hooks.config.bindings import (
    MAIN,
    HookConfig,
    Key,
    KubernetesBinding,
    RunOptions,
    ScheduleBinding,
    Settings,
)
from ostinato.frontends.hooks.config.v1 import with_groups
from ostinato.frontends.kernel.cron import parse_crontab
from ostinato.frontends.kernel.snapshots.filters import Filter, PythonFilter

if TYPE_CHECKING:
    from ostinato.controllers.runnable import Dependencies
    from ostinato.frontends.hooks.hooks import Hooks
    from ostinato.frontends.hooks.running.function import HookContext
    from ostinato.frontends.kernel.sync import Decider

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[["HookContext"], Any]
Change = Literal["Added", "Modified", "Deleted"]


class WatchOptions(TypedDict, total=False):
    """
    - `keep`: a function of the object, or a filter: a change that does not change its result is ignored; its result is
      `value` in contexts and snapshots. Defaults to the whole object.
    - `keep_objects`: False: keep the results only. Defaults to True.
    - `events`: the changes for which the hook runs. Defaults to all.
    - `on_synchronization`: run once with all objects at the start. Defaults to True.
    - `labels`, `fields`, `names`, `namespaces`, `namespace_labels`: selection. Default to all objects.
    - `key`: "object" runs the hook in a queue of its own for each object. Defaults to "queue".
    - `allow_failure`: a failed run is not repeated. Defaults to False.
    - `include`: names of bindings whose snapshots are added. Defaults to none.
    - `queue`, `group`: override those of the hook.
    - `managed_fields`: objects include managedFields; needs a cache of its own. Defaults to False.
    """

    keep: Callable[[Any], Any] | Filter
    keep_objects: bool
    events: Sequence[Change]
    on_synchronization: bool
    labels: LabelSelection
    fields: str
    names: Sequence[str]
    namespaces: Sequence[str]
    namespace_labels: LabelSelection
    key: Key
    allow_failure: bool
    include: Sequence[str]
    queue: str
    group: str
    managed_fields: bool


class CronOptions(TypedDict, total=False):
    """
    - `name`: in contexts. Defaults to "schedule".
    - `time_zone`: IANA name. Defaults to UTC.
    - `allow_failure`, `include`, `queue`, `group`: as of `watch`.
    """

    name: str
    time_zone: str
    allow_failure: bool
    include: Sequence[str]
    queue: str
    group: str


class HookOptions(TypedDict, total=False):
    """
    - `name`: of the hook. Defaults to the name of the function.
    - `group`, `queue`: of all bindings. Default to none, and "main".
    - `timeout`: seconds for one run. Defaults to 0, no limit.
    - `attempts`, `backoff`, `longest_backoff`: repetition of failed runs; see `RunOptions`.
    - `interval`, `burst`: token bucket: one run every `interval` seconds, after a burst. Default to no limit.
    - `access`: what its operations need (`ostinato.crd.Access`), for the derived role. Defaults to none.
    """

    name: str
    group: str
    queue: str
    timeout: float
    attempts: int
    backoff: float
    longest_backoff: float
    interval: float
    burst: int
    access: Sequence[Any]


class Startup(msgspec.Struct, frozen=True):
    order: float


Binding = KubernetesBinding | ScheduleBinding | Startup


def watch(name: str, kind: Any, **options: Unpack[WatchOptions]) -> KubernetesBinding:
    """Run for changes of a kind: a class, a view or a GroupVersionKind. `name`: of its snapshot."""
    _check_names(options, WatchOptions, "watch()")
    view = view_of(kind)
    keep = options.get("keep")
    labels = options.get("namespace_labels")
    return KubernetesBinding(
        name=name,
        kind=view.gvk.kind,
        api_version=view.gvk.api_version,
        events=tuple(options.get("events", ("Added", "Modified", "Deleted"))),
        on_synchronization=options.get("on_synchronization", True),
        names=tuple(options.get("names", ())),
        namespaces=() if labels is not None else tuple(options.get("namespaces", ("",))),
        namespace_labels=labels,
        labels=options.get("labels"),
        fields=options.get("fields", ""),
        reduce=keep if isinstance(keep, Filter) or keep is None else _filter(keep, kind),
        keep_objects=options.get("keep_objects", True),
        queue=options.get("queue", ""),
        group=options.get("group", ""),
        include_snapshots=tuple(options.get("include", ())),
        allow_failure=options.get("allow_failure", False),
        key=options.get("key", "queue"),
        managed_fields=options.get("managed_fields", False),
    )


def cron(crontab: str, **options: Unpack[CronOptions]) -> ScheduleBinding:
    """Run on a schedule of five or six fields, or `@every 5m`."""
    _check_names(options, CronOptions, "cron()")
    try:
        schedule = parse_crontab(crontab, options.get("time_zone", "UTC"))
    except ScheduleError as error:
        raise ValueError(f"cron({crontab!r}) {error}") from None
    return ScheduleBinding(
        name=options.get("name", "schedule"),
        crontab=crontab,
        schedule=schedule,
        queue=options.get("queue", ""),
        group=options.get("group", ""),
        include_snapshots=tuple(options.get("include", ())),
        allow_failure=options.get("allow_failure", False),
    )


def startup(order: float = 0) -> Startup:
    """Run at the start, before all others; hooks with a lower order first."""
    return Startup(order)


class HookFunction(FrontEnd):
    """A function with its bindings. A runnable for a manager; still callable as the function."""

    needs_leader_election = True

    def __init__(self, function: Function, bindings: Sequence[Binding], options: HookOptions) -> None:
        self.function = function
        self.name = options.get("name") or function.__name__.replace("_", "-")
        self.is_async = inspect.iscoroutinefunction(function)
        self.config = _config(bindings, options, self.name)
        self.watches = [GroupVersionKind.of(each.api_version, each.kind) for each in self.config.kubernetes]
        self.access = list(options.get("access", ()))
        self.belongs_to = ""  # the name of the `Hooks` that runs it

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<hook {self.name}>"

    async def run(self, dependencies: Dependencies) -> None:
        """Run this hook alone, unless it belongs to a `Hooks`, which runs several in shared queues."""
        if not self.belongs_to:
            await self._alone().run(dependencies)

    def deciders(self) -> Mapping[str, Decider]:
        return {} if self.belongs_to else self._alone().deciders()

    def _alone(self) -> Hooks:
        from ostinato.frontends.hooks.hooks import Hooks  # noqa: PLC0415 - which imports this module

        alone = Hooks(self, name=f"{self.name}-hooks")
        self.belongs_to = ""
        return alone


def hook(*bindings: Binding, **options: Unpack[HookOptions]) -> Callable[[Function], HookFunction]:
    """Declare a function as a hook."""
    _check_names(options, HookOptions, "hook()")
    for each in bindings:
        if not isinstance(each, Binding):
            raise TypeError(f"hook() {each!r} is not a binding; use watch(...), cron(...) or startup()")
    if not bindings:
        raise TypeError("hook() needs a binding: watch(...), cron(...) or startup()")
    return lambda function: HookFunction(function, bindings, options)


def _config(bindings: Sequence[Binding], options: HookOptions, name: str) -> HookConfig:
    group, queue = options.get("group", ""), options.get("queue", MAIN)

    def completed(binding: Any) -> Any:
        return msgspec.structs.replace(binding, group=binding.group or group, queue=binding.queue or queue)

    interval = options.get("interval", 0.0)
    orders = [each.order for each in bindings if isinstance(each, Startup)]
    try:
        return with_groups(
            HookConfig(
                on_startup=orders[0] if orders else None,
                kubernetes=tuple(completed(each) for each in bindings if isinstance(each, KubernetesBinding)),
                schedules=tuple(completed(each) for each in bindings if isinstance(each, ScheduleBinding)),
                settings=Settings(interval, options.get("burst", 1)) if interval else None,
                options=RunOptions(
                    timeout=options.get("timeout", 0.0),
                    attempts=options.get("attempts", 0),
                    backoff=options.get("backoff", 5.0),
                    longest_backoff=options.get("longest_backoff", 32.0),
                ),
            )
        )
    except ValueError as error:
        raise ValueError(f"hook {name}: {error}") from None


def _filter(function: Callable[[Any], Any], kind: Any) -> Filter:
    if isinstance(kind, type) and issubclass(kind, Object):
        return _TypedFilter(function, kind)
    return PythonFilter(function)


class _TypedFilter(PythonFilter):
    """A filter whose function takes the object as its class."""

    def __init__(self, function: Callable[[Any], Any], cls: type[Object]) -> None:
        super().__init__(function)
        self._class = cls

    def read(self, data: bytes) -> Any:
        return from_json(self._class, data)


def _check_names(options: Mapping[str, Any], known: type[Any], where: str) -> None:
    if unknown := sorted(options.keys() - known.__annotations__.keys()):
        raise TypeError(f"{where} unknown option {unknown[0]!r}; options: {', '.join(known.__annotations__)}")
