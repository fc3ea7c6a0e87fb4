"""TTL-after-finished controller: deletes finished Jobs after `spec.ttlSecondsAfterFinished`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ostinato.controllers import Context, Request, Result
from ostinato.kinds.batch_v1 import Job
from ostinato.manager import Manager
from ostinato.plane.controllers import Options

NAME: Final = "ttl-after-finished-controller"
_WORKERS: Final = 5


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    manager.build(NAME).watch_for(Job).with_options(max_concurrent=_WORKERS).complete(TtlReconciler())


class TtlReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        job = await ctx.client.get(Job, request, missing=None)
        left = None if job is None else _left(job, ctx)
        if left is None:
            return None
        if left > 0:
            return Result(requeue_after=left)
        fresh = await ctx.client.live.get(Job, request, missing=None)  # the TTL may have been extended
        left = None if fresh is None else _left(fresh, ctx)
        if fresh is None or left is None:
            return None
        if left > 0:
            return Result(requeue_after=left)
        await ctx.client.delete(fresh, propagation="Foreground", missing_ok=True)
        return None


def _left(job: Job, ctx: Context) -> float | None:
    """Return the seconds until the Job expires; None if it has no TTL or is terminating."""
    ttl, ended = job.spec.ttl_seconds_after_finished, _ended_at(job)
    if ttl is None or ended is None or job.metadata.deletion_timestamp is not None:
        return None
    return (ended + timedelta(seconds=ttl) - ctx.world.clock.now()).total_seconds()


def _ended_at(job: Job) -> datetime | None:
    ends = (each for each in job.status.conditions if each.type in ("Complete", "Failed") and each.status == "True")
    return next((each.last_transition_time for each in ends), None)
