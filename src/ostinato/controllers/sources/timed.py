"""Timed sources: keys at the start, and on a schedule.

    CronSource("0 6 * * mon-fri", [Request("", "report")], time_zone="Europe/Paris")
    StartupSource([Request("", "bootstrap")])

Times that pass while the process does not run, or is not the leader, are skipped. Times that pass while the previous
keys are reconciled count once. If a function that returns the keys raises, the error is logged and the time is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from inspect import iscoroutinefunction

from ostinato.api.text.cron import Schedule, parse_schedule
from ostinato.controllers.reasons import SCHEDULE, STARTUP
from ostinato.controllers.sources.handlers import keys_of
from ostinato.controllers.sources.sources import Sink

KeySource = Iterable[Hashable] | Hashable | Callable[[], Iterable[Hashable] | Hashable]
"""A key, several keys, or a function that returns them, which is called at each time."""


class CronSource:
    def __init__(self, schedule: str, keys: KeySource, *, time_zone: str = "UTC") -> None:
        """`time_zone`: IANA name of the time zone of the schedule. Defaults to UTC."""
        self._text = schedule
        self._schedule: Schedule = parse_schedule(schedule, time_zone)
        self._keys = _key_function(keys, f"schedule {schedule!r} has")

    def __str__(self) -> str:
        return f"schedule {self._text!r}"

    async def run(self, sink: Sink) -> None:
        sink.ready()
        clock = sink.dependencies.world.clock
        moment = self._schedule.next(clock.now())
        while moment is not None:
            await clock.sleep((moment - clock.now()).total_seconds())
            if clock.now() < moment:  # the wall clock was set back
                continue
            try:
                _enqueue(self._keys, SCHEDULE, sink)
            except Exception:
                sink.logger.exception(
                    "key function failed; nothing enqueued controller=%s source=%r", sink.controller, str(self)
                )
            moment = self._schedule.next(clock.now())
        sink.logger.warning("schedule has no next time controller=%s source=%r", sink.controller, str(self))


class StartupSource:
    def __init__(self, keys: KeySource) -> None:
        self._keys = _key_function(keys, "startup source has")

    def __str__(self) -> str:
        return "startup"

    async def run(self, sink: Sink) -> None:
        _enqueue(self._keys, STARTUP, sink)
        sink.ready()
        await asyncio.get_running_loop().create_future()


def _key_function(keys: KeySource, whence: str) -> Callable[[], list[Hashable]]:
    if iscoroutinefunction(keys):
        raise TypeError(f"{whence} the async def {keys.__name__}; make it a plain def")
    if callable(keys):
        return lambda: keys_of(keys(), whence)
    given = list(keys) if isinstance(keys, Iterator) else keys  # an iterator can be consumed only once
    keys_of(given, whence)  # reports errors at the definition
    return lambda: keys_of(given, whence)


def _enqueue(keys: Callable[[], list[Hashable]], reason: str, sink: Sink) -> None:
    for key in keys():
        sink.add(key, reason, 0, None)
