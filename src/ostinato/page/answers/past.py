"""Answers about the past: batches as in the stream, for the slider."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.page.answers.query import Query
from ostinato.page.facts import Batch, ControllerStats, Fact, Reconcile
from ostinato.page.history.change import Change
from ostinato.page.history.history import History
from ostinato.page.live.stream import shown
from ostinato.world import Clock

_MAX_SECONDS: Final = 900
_MAX_WRITES: Final = 2_000  # in one answer
_MAX_RUNS: Final = 5_000
_DECODED_PER_STEP: Final = 50


class Past(Fact, frozen=True):
    batches: list[Batch]
    oldest: float | None


async def past(query: Query, history: History, clock: Clock) -> Past:
    """Return a batch for each second of a period in which something happened."""
    now = clock.wall()
    until = min(query.seconds("to", now), now)
    since = max(query.seconds("from", until - 60.0), until - _MAX_SECONDS)
    changes: dict[int, list[Change]] = {}
    for change in history.changes.between(since, until):
        changes.setdefault(int(change.at), []).append(change)
    runs: dict[int, list[Reconcile]] = {}
    for run in [*history.runs.between(since, until)][-_MAX_RUNS:]:
        runs.setdefault(int(run.at), []).append(run.reconcile())
    controllers: dict[int, dict[str, ControllerStats]] = {}
    for at, stats in history.samples.between(since, until):
        controllers.setdefault(int(at), {})[stats.name] = stats
    alarms = {int(at): active for at, active in history.past_alarms.between(since, until)}
    seconds = sorted({*changes, *runs, *controllers, *alarms})
    most = max(1, _MAX_WRITES // max(1, len(changes)))
    batches: list[Batch] = []
    for second in seconds:
        writes, counts = shown(changes.get(second, []), most, history)
        batches.append(
            Batch(
                at=float(second),
                writes=writes,
                reconciles=runs.get(second, []),
                controllers=[*controllers.get(second, {}).values()],
                alarms=alarms.get(second),
                dropped=sum(each.n for each in counts),
                counts=counts or msgspec.UNSET,
            )
        )
        if len(batches) % _DECODED_PER_STEP == 0:
            await clock.sleep(0)
    return Past(batches, history.changes.oldest)
