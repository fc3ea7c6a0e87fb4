"""Schedule arithmetic of CronJobs: which run is due, how many were missed, when the next one is due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from ostinato.api.text.cron import Schedule, ScheduleError
from ostinato.kinds.batch_v1 import CronJob

MANY_MISSED: Final = 100  # missed runs above which a warning is recorded
_PADDING: Final = 0.1  # seconds added to the next time, against clock skew


class MissedSchedules(msgspec.Struct, frozen=True):
    """The most recent scheduled time (None if none is due), the approximate number of missed times, and since when."""

    since: datetime
    newest: datetime | None = None
    missed: int = 0


def missed_schedules(
    cron: CronJob, schedule: Schedule, now: datetime, *, within_deadline: bool = True
) -> MissedSchedules:
    """Return the times missed since the last run. Raises `ScheduleError` for a schedule without times.

    `within_deadline`: ignore times past the starting deadline.
    """
    since: datetime | None = cron.status.last_schedule_time or cron.metadata.creation_timestamp
    assert since is not None, "set by the server"
    if within_deadline and cron.spec.starting_deadline_seconds is not None:
        since = max(since, now - timedelta(seconds=cron.spec.starting_deadline_seconds))
    first = schedule.next(since)
    if first is not None and now < first:
        return MissedSchedules(since)
    second = None if first is None else schedule.next(first)
    if first is not None and second is not None and now < second:
        return MissedSchedules(since, first)
    between = 0 if first is None or second is None else round((second - first).total_seconds())
    if first is None or between < 1:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    missed = int((now - first).total_seconds()) // between + 1
    newest, following = None, schedule.next(first + timedelta(seconds=(missed - 2) * between))
    while following is not None and following <= now:
        newest, following = following, schedule.next(following)
    return MissedSchedules(since, newest, missed)


def seconds_until_next(cron: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """Return the seconds until the next run; None if there is none."""
    try:
        found = missed_schedules(cron, schedule, now, within_deadline=False)
        begin = found.newest or (now if found.missed else found.since)
    except ScheduleError:
        begin = now
    following = schedule.next(begin)
    return None if following is None else max(0.0, (following - now).total_seconds() + _PADDING)
