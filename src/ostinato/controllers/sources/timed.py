"""Timed sources: keys at the beginning, and at certain times.

    CronSource("0 6 * * mon-fri", [Request("", "report")], time_zone="Europe/Paris")
    StartupSource([Request("", "bootstrap")])

A time that passes while the process is down, or not the leader, is not made up for; a time that comes while the last
one is still worked on counts once. A function that cannot say the keys of a time is reported, and asked at the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from inspect import iscoroutinefunction

from ostinato.api.cron import Schedule, parse_schedule
from ostinato.controllers.reasons import SCHEDULE, STARTUP
from ostinato.controllers.sources.handlers import keys_of
from ostinato.controllers.sources.sources import Sink

KeySource = Iterable[Hashable] | Hashable | Callable[[], Iterable[Hashable] | Hashable]
"""A key or several, or a function that gives them; it is asked, or they are looked at, when their time has come."""


class CronSource:
    def __init__(self, schedule: str, keys: KeySource, *, time_zone: str = "UTC") -> None:
        """`time_zone` is the IANA name of the zone whose clocks count. Defaults to UTC."""
        self._text = schedule
        self._schedule: Schedule = parse_schedule(schedule, time_zone)
        self._keys = _asked(keys, f"the schedule {schedule!r} has")

    def __str__(self) -> str:
        return f"the schedule {self._text!r}"

    async def run(self, sink: Sink) -> None:
        sink.ready()
        clock = sink.surroundings.world.clock
        moment = self._schedule.next(clock.now())
        while moment is not None:
            await clock.sleep((moment - clock.now()).total_seconds())
            if clock.now() < moment:  # the date was set back
                continue
            try:
                _tell(self._keys, SCHEDULE, sink)
            except Exception:  # whatever the user's function does
                sink.logger.exception("controller %s: the keys of %s are lost this time", sink.controller, self)
            moment = self._schedule.next(clock.now())
        sink.logger.warning("controller %s: %s has no next time", sink.controller, self)


class StartupSource:
    def __init__(self, keys: KeySource) -> None:
        self._keys = _asked(keys, "the startup has")

    def __str__(self) -> str:
        return "the startup"

    async def run(self, sink: Sink) -> None:
        _tell(self._keys, STARTUP, sink)
        sink.ready()
        await asyncio.get_running_loop().create_future()


def _asked(keys: KeySource, whence: str) -> Callable[[], list[Hashable]]:
    if iscoroutinefunction(keys):
        raise TypeError(f"{whence} {keys.__name__}, which is an async def, and is never awaited: make it a plain def")
    if callable(keys):
        return lambda: keys_of(keys(), whence)
    given = list(keys) if isinstance(keys, Iterator) else keys  # which can be gone through only once
    keys_of(given, whence)  # an error comes where it was written
    return lambda: keys_of(given, whence)


def _tell(keys: Callable[[], list[Hashable]], reason: str, sink: Sink) -> None:
    for key in keys():
        sink.add(key, reason, 0, None)
