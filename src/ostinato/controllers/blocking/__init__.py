"""Blocking API for reconcilers that are plain functions.

A reconciler that is a plain `def` runs in a thread, with a `BlockingContext`. Its methods are those of `Context`, and
block where the others are awaited:

    @controller(Widget, owns=[Deployment])
    def widgets(widget: Widget, ctx: BlockingContext) -> None:
        deployment = ctx.apply(deployment_for(widget), owner=widget)
        for pod in ctx.client.list(Pod, labels="app=web"): ...
        with ctx.finalizer(widget, "example.dev/cleanup") as deleting: ...

- Each call runs on the event loop and blocks the thread until it returns.
- After the reconcile timeout the next call raises `TimeoutError` instead.
- `ctx.wait(awaitable)` calls anything else: `ctx.wait(ctx.asynchronous.client.live.pods.log("web-0"))`.
"""

from ostinato.controllers.blocking.client import BlockingClient, BlockingLiveClient
from ostinato.controllers.blocking.context import BlockingContext

__all__ = ["BlockingClient", "BlockingContext", "BlockingLiveClient"]
