"""Attempts: reports of the scheduler to a live view: what it decided on a Pod, and why. Bounded."""

from __future__ import annotations

from typing import Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers.current import Reconcile
from ostinato.controllers.reasons import Cause, Why
from ostinato.controllers.reports.observing import Observer, Placement, RunOutcome, Verdict
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.runtime import FitError, ScheduleResult
from ostinato.plane.scheduler.framework.status import histogram
from ostinato.plane.scheduler.queue import QueuedPod
from ostinato.world import World

NAME: Final = "scheduler"
_POD: Final = GroupVersionKind("", "v1", "Pod")
_NODE: Final = GroupVersionKind("", "v1", "Node")
_FIRST: Final = ("Pod is not scheduled",)  # reasons
_RETRY: Final = (*_FIRST, "retry")
_MAX_NODES: Final = 100  # with verdicts in a report


class Attempts:
    """Reports attempts to an observer."""

    def __init__(self, world: World, observer: Observer) -> None:
        self._clock = world.clock
        self._observer = observer
        self._series = world.ids.uid()[:24]  # common prefix of the ids
        self._runs = 0
        observer.watches(NAME, _POD, primary=True)
        observer.watches(NAME, _NODE, primary=False)

    def made(self, queued: QueuedPod, found: ScheduleResult | FitError | None, began: float, message: str = "") -> None:
        """Report an attempt. `found`: None if there are no nodes."""
        pod, now = queued.pod, self._clock.monotonic()
        run = self._run(pod, queued)
        if isinstance(found, ScheduleResult):
            placement = Placement(pod=pod.key, uid=pod.uid, node=found.node.name, scores=found.scores or {})
        else:
            placement = _rejected(pod, found, message)
        self._observer.placed(run, placement)
        outcome = RunOutcome(
            result="success" if placement.node else "requeue",
            seconds=now - began,
            waited=max(0.0, began - queued.timestamp),
            error=message,
        )
        self._observer.finished(run, outcome)

    def _run(self, pod: PodInfo, queued: QueuedPod) -> Reconcile:
        self._runs += 1
        return Reconcile(
            id=f"{self._series}{self._runs:012x}",
            controller=NAME,
            request=pod.key,
            gvk=_POD,
            why=Why(_FIRST if queued.attempts <= 1 else _RETRY, (Cause(_POD, pod.key, pod.resource_version),)),
            attempt=queued.attempts,
        )


def _rejected(pod: PodInfo, found: FitError | None, message: str) -> Placement:
    if found is None:
        return Placement(pod=pod.key, uid=pod.uid, message=message)
    statuses = found.diagnosis.statuses
    verdicts = [
        Verdict(node, status.plugin, ", ".join(status.reasons)) for node, status in [*statuses.items()][:_MAX_NODES]
    ]
    if (status := found.diagnosis.pre_filter_status) is not None:
        verdicts.append(Verdict("", status.plugin, ", ".join(status.reasons)))
    return Placement(
        pod=pod.key, uid=pod.uid, message=message, verdicts=verdicts, counts=dict(histogram(statuses.values()))
    )
