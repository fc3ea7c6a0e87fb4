"""Scheduling queue: activeQ, backoffQ and unschedulable Pods.

- *Active* Pods are popped by priority, then in order of arrival.
- An *unschedulable* Pod waits until an event for which a queueing hint of a rejecting plugin applies, or for five
  minutes.
- It then *backs off*: one second after the first failure, doubled up to ten. If activeQ is empty, Pods are popped from
  backoffQ early.
- A Pod whose attempt failed with an error always completes its backoff.
- A *gated* Pod is unschedulable until its gates are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count
from typing import Final

from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.events import Action, ClusterEvent, QueueingHint, pod_changes
from ostinato.queue.getters import Getters
from ostinato.queue.order import PriorityOrder
from ostinato.world import Clock, Timer

INITIAL_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
MAX_UNSCHEDULABLE_DURATION: Final = 300.0
_FLUSH_INTERVAL: Final = 30.0  # seconds between checks for expired unschedulable Pods

GatingPlugin = Callable[[PodInfo], str]
"""Returns the plugin that gates a Pod; "" if none does."""

QueueingHints = Mapping[str, Mapping[str, Sequence[QueueingHint]]]
"""Hints by profile and plugin name."""


class SubQueue(Enum):
    ACTIVE = auto()
    BACKOFF = auto()
    UNSCHEDULABLE = auto()
    IN_FLIGHT = auto()


class QueuedPod:
    """A queued Pod and its scheduling attempts."""

    __slots__ = (
        "attempts",
        "backoff_until",
        "errors",
        "failures",
        "pod",
        "sub_queue",
        "timestamp",
        "unschedulable_plugins",
    )

    def __init__(self, pod: PodInfo, timestamp: float) -> None:
        self.pod = pod
        self.sub_queue = SubQueue.IN_FLIGHT
        self.attempts = 0
        self.failures = 0  # unschedulable attempts
        self.errors = 0  # consecutive attempts with errors
        self.unschedulable_plugins: frozenset[str] = frozenset()  # rejected the last attempt
        self.timestamp = timestamp  # when it was added or last failed
        self.backoff_until = 0.0  # end of the backoff


class SchedulingQueue:
    def __init__(self, clock: Clock, hints: QueueingHints, gating_plugin: GatingPlugin) -> None:
        self._clock = clock
        self._hints = hints
        self._gating_plugin = gating_plugin
        self._pods: dict[str, QueuedPod] = {}  # all Pods, by uid
        self._active: PriorityOrder[QueuedPod] = PriorityOrder()  # activeQ; may contain stale entries
        self._backoff: list[
            tuple[float, int, int, QueuedPod]
        ] = []  # backoffQ: heap by time and priority; may contain stale entries
        self._error_backoff: list[tuple[float, int, int, QueuedPod]] = []  # Pods with errors: never popped early
        self._unschedulable: dict[str, QueuedPod] = {}  # by uid
        self._sequence = count()
        self._getters = Getters()
        self._backoff_timer: Timer | None = None  # end of the next backoff
        self._backoff_timer_at = 0.0
        self._flush_timer: Timer | None = None
        self._relevant_actions = _relevant_actions(hints)

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    @property
    def unschedulable(self) -> Iterable[PodInfo]:
        """Pods that wait for an event."""
        return [queued.pod for queued in self._unschedulable.values()]

    def add(self, pod: PodInfo) -> None:
        """Add or update a pending Pod."""
        queued = self._pods.get(pod.uid)
        if queued is not None:
            self._update(queued, pod)
            return
        queued = self._pods[pod.uid] = QueuedPod(pod, self._clock.monotonic())
        self._requeue(queued)

    def delete(self, uid: str) -> None:
        """Remove a deleted or assigned Pod; a no-op if it is not queued."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            queued.sub_queue = SubQueue.IN_FLIGHT
            self._unschedulable.pop(uid, None)

    async def pop(self) -> QueuedPod:
        """Wait for the next Pod. It is in flight until it is added again or deleted."""
        while True:
            queued = self.try_pop()
            if queued is not None:
                return queued
            await self._getters.wait()

    def try_pop(self) -> QueuedPod | None:
        """Return the next Pod without waiting; None if there is none."""
        while self._active.length:
            queued = self._active.pop()
            if queued.sub_queue is SubQueue.ACTIVE:
                return self._take(queued)
        while self._backoff:
            queued = heappop(self._backoff)[-1]
            if queued.sub_queue is SubQueue.BACKOFF:
                return self._take(queued)
        return None

    def add_unschedulable(self, queued: QueuedPod, plugins: frozenset[str]) -> None:
        """Add an unschedulable Pod and the plugins that rejected it."""
        queued.failures += 1
        queued.errors = 0
        queued.unschedulable_plugins = plugins
        self._start_backoff(queued, queued.failures)
        self._to_unschedulable(queued)

    def add_after_error(self, queued: QueuedPod) -> None:
        """Add a Pod whose attempt failed with an error."""
        queued.errors += 1
        queued.unschedulable_plugins = frozenset()
        self._start_backoff(queued, queued.errors)
        queued.sub_queue = SubQueue.BACKOFF
        heappush(self._error_backoff, (queued.backoff_until, -queued.pod.priority, next(self._sequence), queued))
        self._set_timer()

    def activate(self, uid: str) -> None:
        """Move a Pod to activeQ without backoff."""
        queued = self._pods.get(uid)
        if queued is not None and queued.sub_queue in (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF):
            queued.backoff_until = 0.0
            self._requeue(queued)

    def move_all(self, event: ClusterEvent, only: Callable[[PodInfo], bool] | None = None) -> None:
        """Move unschedulable Pods for which the event is relevant to activeQ or backoffQ."""
        if not self._unschedulable or not event.action & self._relevant_actions.get(event.resource, 0):
            return
        for queued in list(self._unschedulable.values()):
            if (only is None or only(queued.pod)) and self._is_worth_requeuing(queued, event):
                self._requeue(queued)

    def _take(self, queued: QueuedPod) -> QueuedPod:
        queued.sub_queue = SubQueue.IN_FLIGHT
        queued.attempts += 1
        return queued

    def _update(self, queued: QueuedPod, pod: PodInfo) -> None:
        before, queued.pod = queued.pod, pod
        if queued.sub_queue is not SubQueue.UNSCHEDULABLE:
            return
        if any(self._is_worth_requeuing(queued, event) for event in pod_changes(before, pod)):
            self._requeue(queued)

    def _is_worth_requeuing(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        if not queued.unschedulable_plugins:
            return True
        hints = self._hints.get(queued.pod.scheduler_name, {})
        return any(
            hint.is_worth_requeuing(queued.pod, event)
            for plugin in queued.unschedulable_plugins
            for hint in hints.get(plugin, ())
        )

    def _requeue(self, queued: QueuedPod) -> None:
        """Add to activeQ; a gated Pod stays unschedulable and one with pending backoff goes to backoffQ."""
        gate = self._gating_plugin(queued.pod)
        if gate:
            queued.unschedulable_plugins |= {gate}
            self._to_unschedulable(queued)
            return
        self._unschedulable.pop(queued.pod.uid, None)
        if queued.backoff_until > self._clock.monotonic():
            queued.sub_queue = SubQueue.BACKOFF
            heappush(self._backoff, (queued.backoff_until, -queued.pod.priority, next(self._sequence), queued))
            self._set_timer()
        else:
            queued.sub_queue = SubQueue.ACTIVE
            self._active.push(queued, queued.pod.priority)
        self._getters.wake_one()

    def _to_unschedulable(self, queued: QueuedPod) -> None:
        if queued.pod.uid in self._pods:
            queued.sub_queue = SubQueue.UNSCHEDULABLE
            self._unschedulable[queued.pod.uid] = queued
            if self._flush_timer is None:
                self._flush_timer = self._clock.timer(_FLUSH_INTERVAL, self._flush_unschedulable)

    def _start_backoff(self, queued: QueuedPod, tries: int) -> None:
        self._pods[queued.pod.uid] = queued
        queued.timestamp = self._clock.monotonic()
        queued.backoff_until = queued.timestamp + min(INITIAL_BACKOFF * 2.0 ** min(tries - 1, 10), MAX_BACKOFF)

    def _set_timer(self) -> None:
        heads = [heap[0][0] for heap in (self._backoff, self._error_backoff) if heap]
        if not heads:
            return
        at = min(heads)
        if self._backoff_timer is not None:
            if self._backoff_timer_at <= at:
                return
            self._backoff_timer.cancel()
        self._backoff_timer_at = at
        self._backoff_timer = self._clock.timer(max(at - self._clock.monotonic(), 0.0), self._flush_backoff)

    def _flush_backoff(self) -> None:
        self._backoff_timer = None
        now = self._clock.monotonic()
        for heap in (self._backoff, self._error_backoff):
            while heap and heap[0][0] <= now:
                queued = heappop(heap)[-1]
                if queued.sub_queue is SubQueue.BACKOFF:
                    self._requeue(queued)
        self._set_timer()

    def _flush_unschedulable(self) -> None:
        """Move Pods that were unschedulable for too long: a hint may be wrong."""
        self._flush_timer = None
        now = self._clock.monotonic()
        for queued in list(self._unschedulable.values()):
            if now - queued.timestamp > MAX_UNSCHEDULABLE_DURATION:
                queued.timestamp = now
                self._requeue(queued)
        if self._unschedulable and any(not self._gating_plugin(each.pod) for each in self._unschedulable.values()):
            self._flush_timer = self._clock.timer(_FLUSH_INTERVAL, self._flush_unschedulable)

    def close(self) -> None:
        """Stop the timers."""
        for timer in (self._backoff_timer, self._flush_timer):
            if timer is not None:
                timer.cancel()


def _relevant_actions(hints: QueueingHints) -> dict[str, Action]:
    """Return the actions with hints, by resource."""
    found: dict[str, Action] = {}
    for plugins in hints.values():
        for each in plugins.values():
            for hint in each:
                found[hint.resource] = found.get(hint.resource, Action(0)) | hint.actions
    return found
