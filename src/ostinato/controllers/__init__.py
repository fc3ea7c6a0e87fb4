"""Controllers: reconcile loops that drive the actual state of objects to the desired state.

    @controller(Widget, owns=[Deployment])
    async def widgets(widget: Widget, ctx: Context) -> None:
        deployment = await ctx.apply(deployment_for(widget), owner=widget)
        await ctx.status(available_replicas=deployment.status.available_replicas or 0)

    Manager().add(widgets).run()

A controller is defined by the `controller` decorator, by a `Builder`, or as a `Controller`; `daemon` and `timer` define
functions that run beside an object. Its `sources` receive
events, which pass `predicates` and event `handlers`; the handlers enqueue keys into a work queue. Workers take keys
from the queue and call the reconciler, whose `Result` says whether the key is requeued.
"""

from ostinato.controllers.blocking import BlockingClient, BlockingContext, BlockingLiveClient
from ostinato.controllers.builder import Builder, WatchedKind
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.current import Reconcile, current_reconcile, reconcile_id
from ostinato.controllers.daemons.decorators import daemon, timer
from ostinato.controllers.decorator import ControllerFunction, WatchKind, controller
from ostinato.controllers.failures.failures import ReconcileTimeout
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.controllers.loop import ControllerError
from ostinato.controllers.objects.applying import ForeignObject, StillOwned
from ostinato.controllers.objects.changes import Change
from ostinato.controllers.objects.readiness import (
    Readiness,
    readiness_check,
    readiness_of,
    unregister_readiness_check,
)
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.request import Request
from ostinato.controllers.result import BadResult, PermanentError, Result, TemporaryError, TerminalError
from ostinato.controllers.runnable import (
    Dependencies,
    Metrics,
    Recorder,
    Runnable,
    Span,
    Task,
    TeardownRunnable,
    WarmupRunnable,
)
from ostinato.controllers.sources.channel import Channel, ChannelSource
from ostinato.controllers.sources.handlers import ForEvent, ForObject, ForOwner, Handler, MapTo
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import (
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
from ostinato.controllers.sources.sources import Sink, Source
from ostinato.controllers.sources.timed import CronSource, StartupSource

__all__ = [
    "BadResult",
    "BlockingClient",
    "BlockingContext",
    "BlockingLiveClient",
    "Builder",
    "Change",
    "Channel",
    "ChannelSource",
    "Context",
    "Controller",
    "ControllerError",
    "ControllerFunction",
    "ControllerOptions",
    "ControllerStatistics",
    "CronSource",
    "Dependencies",
    "ForEvent",
    "ForObject",
    "ForOwner",
    "ForeignObject",
    "FrontEnd",
    "Handler",
    "KindOptions",
    "KindSource",
    "KindsOf",
    "MapTo",
    "Metrics",
    "PermanentError",
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
    "Task",
    "TeardownRunnable",
    "TemporaryError",
    "TerminalError",
    "WarmupRunnable",
    "WatchKind",
    "WatchedKind",
    "added",
    "all_of",
    "annotation_changed",
    "any_of",
    "controller",
    "current_reconcile",
    "daemon",
    "deleted",
    "generation_changed",
    "having_labels",
    "in_namespaces",
    "label_changed",
    "none_of",
    "on_update",
    "readiness_check",
    "readiness_of",
    "reconcile_id",
    "resource_version_changed",
    "timer",
    "unregister_readiness_check",
    "updated",
    "where",
]
