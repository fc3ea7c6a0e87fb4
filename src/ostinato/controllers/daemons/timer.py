"""Timer reconciler: calls a function for each selected object at intervals.

- The function is first called `initial_delay` seconds after the object is found, then every `every` seconds, from start
  to start. A call that takes longer delays the next; times that pass meanwhile are skipped.
- With `idle`, it is called only if labels, annotations and spec have not changed for so many seconds. Without `every`,
  it is called once after each change.
- `jitter` prolongs each interval at random, by up to this fraction.
- Events of the object only change the schedule. Schedules are kept in memory and begin anew with the process.
- A call that fails is retried with backoff, also after a write of its own status. After a `PermanentError` the timer
  stands still until the object changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.client.views import View
from ostinato.controllers.context import Context
from ostinato.controllers.daemons.failing import FailingObjects
from ostinato.controllers.daemons.selection import Selection
from ostinato.controllers.objects.essence import digest
from ostinato.controllers.reconcilers import Reconciler
from ostinato.controllers.result import Result, Unsettled

_DONE: Final = Result()
_UNSETTLED: Final = Unsettled()


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """When a timer calls its function; see the module. Seconds, except for `jitter`, a fraction."""

    every: float | None = None
    idle: float | None = None
    initial_delay: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < inf):
                raise ValueError(f"{name}: {value!r} is not a number of seconds")
        if not self.every and not self.idle:
            raise ValueError("a timer needs every=, idle=, or both, in seconds")


class _Schedule:
    """The schedule of one object."""

    __slots__ = ("changed", "digest", "due", "uid")

    def __init__(self, uid: str, due: float, changed: float) -> None:
        self.uid = uid
        self.due = due  # on the clock's monotonic(), as the next
        self.changed = changed  # when the last change was seen
        self.digest = b""  # of the last change


class TimerReconciler(Reconciler):
    def __init__(self, function: Callable[..., Any], view: View[Any], selection: Selection, interval: Interval) -> None:
        super().__init__(function, view)
        self._kind = view
        self._selection = selection
        self._interval = interval
        self._schedules: dict[Hashable, _Schedule] = {}
        self._failing = FailingObjects()

    async def run(self, context: Context) -> Result:
        key, clock = context.request, context.world.clock
        instance = await context.client.get(self._kind, key, missing=None)
        context.object = instance
        if instance is None or not self._selection.includes(instance):
            self._schedules.pop(key, None)
            self._failing.discard(key)
            return _DONE
        schedule = self._updated(key, instance, clock.monotonic())
        if not self._failing.may_run(context.reconcile, instance):
            return _UNSETTLED
        began = clock.monotonic()
        if self._next(schedule) <= began:
            schedule.due = began  # stays due if the function fails
            try:
                result = await self.call(instance, context)
            except BaseException as error:  # also cancelled by the reconcile timeout
                self._failing.add(key, instance, error)
                raise
            if result.retry and result.requeue_after is None:
                return result
            schedule.due = self._due(result, began, context)
        due = self._next(schedule)
        return _DONE if due == inf else Result(requeue_after=max(due - clock.monotonic(), 0.0))

    def _updated(self, key: Hashable, instance: AnyObject, now: float) -> _Schedule:
        """Return the schedule of an object, with its last change."""
        interval, uid = self._interval, access.uid(instance)
        schedule = self._schedules.get(key)
        if schedule is None or schedule.uid != uid:
            schedule = self._schedules[key] = _Schedule(uid, now + interval.initial_delay, now)
            schedule.digest = digest(instance) if interval.idle else b""
        elif interval.idle and (found := digest(instance)) != schedule.digest:
            schedule.digest, schedule.changed = found, now
            if not interval.every:
                schedule.due = now
        return schedule

    def _next(self, schedule: _Schedule) -> float:
        return max(schedule.due, schedule.changed + (self._interval.idle or 0.0))

    def _due(self, result: Result, began: float, context: Context) -> float:
        """Return the next time after a call."""
        if result.delay is not None:
            return context.world.clock.monotonic() + result.delay
        interval = self._interval
        if not interval.every:
            return inf
        rng = context.world.rng
        return began + (rng.jitter(interval.every, interval.jitter) if interval.jitter else interval.every)
