"""Controllers: loops that make what is match what is wanted, one object at a time.

    @controller(Widget, owns=[Deployment])
    async def widgets(widget: Widget, ctx: Context) -> None:
        deployment = await ctx.apply(deployment_for(widget), owner=widget)
        await ctx.status(available_replicas=deployment.status.available_replicas or 0)

    Manager().add(widgets).run()

Three doors lead to the same room: the decorator, the `Builder`, and `Controller` itself. What is told by `sources` goes
through `predicates` and `handlers` into a queue, and from there to a reconciler, whose `result` says what is next.
"""

import sys
from types import ModuleType
from typing import Any

from ostinato.controller.builder import Builder, Watched
from ostinato.controller.context import Context
from ostinato.controller.controller import Controller, ControllerError
from ostinato.controller.current import Reconcile, current_reconcile, reconcile_id
from ostinato.controller.decorator import ControllerFunction, Watch, controller
from ostinato.controller.metrics import ControllerStatistics
from ostinato.controller.objects.applying import ForeignObject, StillOwned
from ostinato.controller.objects.readiness import Readiness, readiness_of
from ostinato.controller.options import ControllerOptions
from ostinato.controller.request import Request
from ostinato.controller.result import BadResult, Result, TerminalError
from ostinato.controller.runnable import CoolsDown, Metrics, Recorder, Runnable, Span, Surroundings, Task, WarmsUp
from ostinato.controller.sources.channel import Channel, ChannelSource
from ostinato.controller.sources.handlers import ForEvent, ForObject, ForOwner, Handler, MapTo
from ostinato.controller.sources.kind import KindOptions, KindSource
from ostinato.controller.sources.predicates import (
    Predicate,
    added,
    all_of,
    annotation_changed,
    any_of,
    deleted,
    generation_changed,
    having_labels,
    in_namespaces,
    label_changed,
    none_of,
    on_update,
    resource_version_changed,
    updated,
    where,
)
from ostinato.controller.sources.sources import Sink, Source
from ostinato.controller.sources.timed import CronSource, StartupSource
from ostinato.controller.worker import ReconcileTimeout

__all__ = [
    "BadResult",
    "Builder",
    "Channel",
    "ChannelSource",
    "Context",
    "Controller",
    "ControllerError",
    "ControllerFunction",
    "ControllerOptions",
    "ControllerStatistics",
    "CoolsDown",
    "CronSource",
    "ForEvent",
    "ForObject",
    "ForOwner",
    "ForeignObject",
    "Handler",
    "KindOptions",
    "KindSource",
    "MapTo",
    "Metrics",
    "Predicate",
    "Readiness",
    "Reconcile",
    "ReconcileTimeout",
    "Recorder",
    "Request",
    "Result",
    "Runnable",
    "Sink",
    "Source",
    "Span",
    "StartupSource",
    "StillOwned",
    "Surroundings",
    "Task",
    "TerminalError",
    "WarmsUp",
    "Watch",
    "Watched",
    "added",
    "all_of",
    "annotation_changed",
    "any_of",
    "controller",
    "current_reconcile",
    "deleted",
    "generation_changed",
    "having_labels",
    "in_namespaces",
    "label_changed",
    "none_of",
    "on_update",
    "readiness_of",
    "reconcile_id",
    "resource_version_changed",
    "updated",
    "where",
]


class _Callable(ModuleType):
    """This package and its decorator have one name: `from ostinato import controller` may mean either, and is both."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return controller(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
