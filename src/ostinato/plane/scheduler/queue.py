"""The scheduling queue: Pods that want a node, in the order in which they are tried.

- *Active* Pods are tried next: those of the highest priority first, then in the order in which they came.
- A Pod that fits nowhere is *unschedulable*: it waits until something happens of which a plugin that refused it says
  that it may help (`events`), or for five minutes.
- Then it *backs off*: one second after its first failure, twice as long after each further one, ten at most. While
  there is nothing else to do, nobody waits for that.
- A Pod whose try failed by an error backs off in any case.
- A *gated* Pod is unschedulable, too, and not tried before its gate has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count
from typing import Final

from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.events import Action, ClusterEvent, Hint, pod_changes
from ostinato.queue.getters import Getters
from ostinato.queue.order import PriorityOrder
from ostinato.world import Clock, Timer

SHORTEST: Final = 1.0
LONGEST: Final = 10.0
PATIENCE: Final = 300.0
_LOOK: Final = 30.0  # seconds between looks for those who have waited for so long

Gates = Callable[[PodInfo], str]
"""The plugin that holds a Pod back; "" if none does."""

HintsOf = Mapping[str, Mapping[str, Sequence[Hint]]]
"""The hints of each plugin, by profile and name of the plugin."""


class Place(Enum):
    ACTIVE = auto()
    BACKOFF = auto()
    UNSCHEDULABLE = auto()
    TAKEN = auto()


class QueuedPod:
    """A Pod that wants a node, and how it has fared."""

    __slots__ = ("attempts", "errors", "failures", "place", "pod", "ready_at", "refused_by", "since")

    def __init__(self, pod: PodInfo, since: float) -> None:
        self.pod = pod
        self.place = Place.TAKEN
        self.attempts = 0
        self.failures = 0  # tries after which it fitted nowhere
        self.errors = 0  # tries in a row that failed otherwise
        self.refused_by: frozenset[str] = frozenset()  # plugins
        self.since = since  # when it came, or failed last
        self.ready_at = 0.0  # when it need not back off any more


class SchedulingQueue:
    def __init__(self, clock: Clock, hints: HintsOf, gates: Gates) -> None:
        self._clock = clock
        self._hints = hints
        self._gates = gates
        self._pods: dict[str, QueuedPod] = {}  # by uid, wherever they are
        self._active: PriorityOrder[QueuedPod] = PriorityOrder()  # and such as are elsewhere by now
        self._backoff: list[tuple[float, int, int, QueuedPod]] = []  # a heap, by time and priority; with stale ones
        self._errors: list[tuple[float, int, int, QueuedPod]] = []  # the same, of those that nobody hastens
        self._unschedulable: dict[str, QueuedPod] = {}  # by uid
        self._numbers = count()
        self._getters = Getters()
        self._timer: Timer | None = None  # for the end of the next backoff
        self._timer_at = 0.0
        self._looking: Timer | None = None
        self._interest = _interest(hints)

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    @property
    def unschedulable(self) -> Iterable[PodInfo]:
        """Those that wait for something to happen."""
        return [queued.pod for queued in self._unschedulable.values()]

    def add(self, pod: PodInfo) -> None:
        """A Pod that wants a node; one that is here already has changed."""
        queued = self._pods.get(pod.uid)
        if queued is not None:
            self._update(queued, pod)
            return
        queued = self._pods[pod.uid] = QueuedPod(pod, self._clock.monotonic())
        self._requeue(queued)

    def delete(self, uid: str) -> None:
        """It wants none any more: it is gone, or has one. Harmless when it is not here."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            queued.place = Place.TAKEN
            self._unschedulable.pop(uid, None)

    async def pop(self) -> QueuedPod:
        """The next to be tried. It waits no more, and is to be given back, or deleted."""
        while True:
            queued = self.pop_now()
            if queued is not None:
                return queued
            await self._getters.wait()

    def pop_now(self) -> QueuedPod | None:
        """The same, if there is one now."""
        while self._active.length:
            queued = self._active.pop()
            if queued.place is Place.ACTIVE:
                return self._take(queued)
        while self._backoff:
            queued = heappop(self._backoff)[-1]
            if queued.place is Place.BACKOFF:
                return self._take(queued)
        return None

    def refuse(self, queued: QueuedPod, plugins: frozenset[str]) -> None:
        """It fits nowhere; these plugins say so."""
        queued.failures += 1
        queued.errors = 0
        queued.refused_by = plugins
        self._back(queued, queued.failures)
        self._wait(queued)

    def fail(self, queued: QueuedPod) -> None:
        """Its try failed by an error, which may be over the next time."""
        queued.errors += 1
        queued.refused_by = frozenset()
        self._back(queued, queued.errors)
        queued.place = Place.BACKOFF
        heappush(self._errors, (queued.ready_at, -queued.pod.priority, next(self._numbers), queued))
        self._set_timer()

    def activate(self, uid: str) -> None:
        """Try a Pod soon, whatever it waits for."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place in (Place.UNSCHEDULABLE, Place.BACKOFF):
            queued.ready_at = 0.0
            self._requeue(queued)

    def move(self, event: ClusterEvent, wanted: Callable[[PodInfo], bool] | None = None) -> None:
        """Something happened: try those again whom it may help."""
        if not self._unschedulable or not event.action & self._interest.get(event.resource, 0):
            return
        for queued in list(self._unschedulable.values()):
            if (wanted is None or wanted(queued.pod)) and self._is_worth(queued, event):
                self._requeue(queued)

    def _take(self, queued: QueuedPod) -> QueuedPod:
        queued.place = Place.TAKEN
        queued.attempts += 1
        return queued

    def _update(self, queued: QueuedPod, pod: PodInfo) -> None:
        before, queued.pod = queued.pod, pod
        if queued.place is not Place.UNSCHEDULABLE:
            return
        if any(self._is_worth(queued, event) for event in pod_changes(before, pod)):
            self._requeue(queued)

    def _is_worth(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        if not queued.refused_by:
            return True
        hints = self._hints.get(queued.pod.scheduler_name, {})
        return any(hint.applies(queued.pod, event) for plugin in queued.refused_by for hint in hints.get(plugin, ()))

    def _requeue(self, queued: QueuedPod) -> None:
        """Active, unless it is gated or has to back off."""
        gate = self._gates(queued.pod)
        if gate:
            queued.refused_by |= {gate}
            self._wait(queued)
            return
        self._unschedulable.pop(queued.pod.uid, None)
        if queued.ready_at > self._clock.monotonic():
            queued.place = Place.BACKOFF
            heappush(self._backoff, (queued.ready_at, -queued.pod.priority, next(self._numbers), queued))
            self._set_timer()
        else:
            queued.place = Place.ACTIVE
            self._active.push(queued, queued.pod.priority)
        self._getters.wake_one()

    def _wait(self, queued: QueuedPod) -> None:
        if queued.pod.uid in self._pods:
            queued.place = Place.UNSCHEDULABLE
            self._unschedulable[queued.pod.uid] = queued
            if self._looking is None:
                self._looking = self._clock.timer(_LOOK, self._look)

    def _back(self, queued: QueuedPod, tries: int) -> None:
        self._pods[queued.pod.uid] = queued
        queued.since = self._clock.monotonic()
        queued.ready_at = queued.since + min(SHORTEST * 2.0 ** min(tries - 1, 10), LONGEST)

    def _set_timer(self) -> None:
        heads = [heap[0][0] for heap in (self._backoff, self._errors) if heap]
        if not heads:
            return
        at = min(heads)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._clock.timer(max(at - self._clock.monotonic(), 0.0), self._end_backoff)

    def _end_backoff(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for heap in (self._backoff, self._errors):
            while heap and heap[0][0] <= now:
                queued = heappop(heap)[-1]
                if queued.place is Place.BACKOFF:
                    self._requeue(queued)
        self._set_timer()

    def _look(self) -> None:
        """Try those again that have waited for very long: a hint may be wrong."""
        self._looking = None
        now = self._clock.monotonic()
        for queued in list(self._unschedulable.values()):
            if now - queued.since > PATIENCE:
                queued.since = now
                self._requeue(queued)
        if self._unschedulable and any(not self._gates(each.pod) for each in self._unschedulable.values()):
            self._looking = self._clock.timer(_LOOK, self._look)

    def close(self) -> None:
        """Stop the timers."""
        for timer in (self._timer, self._looking):
            if timer is not None:
                timer.cancel()


def _interest(hints: HintsOf) -> dict[str, Action]:
    """The actions that any plugin cares for, by resource."""
    found: dict[str, Action] = {}
    for plugins in hints.values():
        for each in plugins.values():
            for hint in each:
                found[hint.resource] = found.get(hint.resource, Action(0)) | hint.actions
    return found
