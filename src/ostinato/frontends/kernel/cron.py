"""Cron: the times of a schedule, for front ends.

    ticker = Ticker("*/10 * * * * *", world.clock)
    async for moment in ticker: ...

- Five fields, or six with leading seconds; `@every 5m`, `@hourly` and the like; `TZ=` (`ostinato.api.text.cron`).
- Times that pass while the body of the loop runs count once: the next one is that after the end of the body.
- `ostinato.controllers.sources.timed.CronSource` is the same for the keys of a controller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from ostinato.api.text.cron import Schedule, ScheduleError, parse_schedule
from ostinato.world import Clock

__all__ = ["Schedule", "ScheduleError", "Ticker", "parse_crontab"]


def parse_crontab(text: str, time_zone: str = "UTC") -> Schedule:
    """Parse a schedule of five or six fields. Raises ScheduleError.

    `time_zone`: IANA name of the time zone of a schedule without `TZ=`. Defaults to UTC.
    """
    return parse_schedule(text, time_zone, seconds=True)


class Ticker:
    """Iterates over the times of a schedule, waiting for each; ends if there is no next one."""

    def __init__(self, crontab: str | Schedule, clock: Clock) -> None:
        self._schedule = parse_crontab(crontab) if isinstance(crontab, str) else crontab
        self._clock = clock

    async def __aiter__(self) -> AsyncIterator[datetime]:
        clock = self._clock
        moment = self._schedule.next(clock.now())
        while moment is not None:
            await clock.sleep((moment - clock.now()).total_seconds())
            if clock.now() < moment:  # the wall clock was set back
                continue
            yield moment
            moment = self._schedule.next(max(moment, clock.now()))
