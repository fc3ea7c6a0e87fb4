"""Alarms: what is wrong now, from the reports of controllers.

`page.live.symptoms` adds those of objects, `page.live.server_alarms` those of the API server.

An alarm stays for a while after its last sign, so that it can be read.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

import msgspec

from ostinato.page.facts import Alarm, ControllerStats, Reconcile
from ostinato.page.reporting.reports import HotLoop

LASTING: Final = 60.0  # seconds after the last sign
_WINDOW: Final = 30.0  # seconds in which conflicts are counted
_CONFLICTS: Final = 10  # in the window
_THROTTLED: Final = 5  # requests in the window; single ones are normal
_BEHIND: Final = 3  # consecutive samples
_MAX_ALARMS: Final = 200
_MAX_KEYS: Final = 1_000
_WEBHOOK: Final = re.compile(r'failed calling webhook "([^"]+)"')
_TOO_MANY: Final = re.compile(r"\b429\b|too many requests", re.IGNORECASE)


class Alarms:
    def __init__(self) -> None:
        self.version = 0  # increases with each change
        self._active: dict[str, Alarm] = {}
        self._until: dict[str, float] = {}  # when an alarm ends, unless there is another sign
        self._conflicts: dict[str, deque[tuple[float, str]]] = {}  # of each controller: time and key
        self._throttled: dict[str, tuple[float, int]] = {}  # of each client: begin of the window, and requests
        self._behind: dict[str, int] = {}  # of each controller: consecutive samples
        self._failing: dict[tuple[str, str], int] = {}  # consecutive failures by controller and key
        self._errors: dict[str, str] = {}  # last error of each controller

    def current(self) -> list[Alarm]:
        """Return the active alarms, errors and older ones first."""
        return sorted(self._active.values(), key=lambda each: (each.severity != "error", each.at))

    def raise_(self, alarm: Alarm, now: float, lasting: float = LASTING) -> None:
        """Activate an alarm, or renew it with another text."""
        known = self._active.get(alarm.id)
        if known is None and len(self._active) >= _MAX_ALARMS:
            return
        if known is not None:
            alarm = msgspec.structs.replace(alarm, at=known.at)
        self._until[alarm.id] = now + lasting
        if alarm != known:
            self._active[alarm.id] = alarm
            self.version += 1

    def report(self, alarm: Alarm, now: float) -> None:
        """Raise an alarm of the API server. If a controller raised it, its text stays: it says who is affected."""
        known = self._active.get(alarm.id)
        self.raise_(known if known is not None and known.controller else alarm, now)

    def clear(self, alarm: str) -> None:
        if self._active.pop(alarm, None) is not None:
            del self._until[alarm]
            self.version += 1

    def expire(self, now: float) -> None:
        for each in [each for each, until in self._until.items() if until < now]:
            self.clear(each)

    # Signs

    @property
    def has_failing(self) -> bool:
        """Whether a key has failed and not succeeded since."""
        return bool(self._failing)

    def succeeded(self, run: Reconcile) -> None:
        """A run ended without an error."""
        self._failing.pop((run.controller, run.key), None)

    def failed(self, run: Reconcile) -> None:
        """A run ended with an error or a conflict."""
        if run.result == "conflict":
            self._conflicted(run)
            return
        where, error = (run.controller, run.key), run.error or ""
        if len(self._failing) < _MAX_KEYS or where in self._failing:
            self._failing[where] = self._failing.get(where, 0) + 1
        self._errors[run.controller] = error
        if (found := _WEBHOOK.search(error)) is not None:
            alarm = Alarm(
                id=f"webhook/{found[1]}",
                severity="error",
                type="webhook",
                at=run.at,
                controller=run.controller,
                message=f"webhook {found[1]} cannot be called; {run.controller} cannot write",
                detail=error,
            )
            self.raise_(alarm, run.at)
        elif _TOO_MANY.search(error) is not None:
            self._throttle(run.at, run.controller, error)

    def throttled(self, now: float, client: str, count: int) -> None:
        """Record requests of a controller or process that were rejected with 429 and sent again."""
        since, total = self._throttled.get(client, (now, 0))
        since, total = (since, total + count) if now - since <= _WINDOW else (now, count)
        self._throttled[client] = since, total
        if total >= _THROTTLED:
            detail = f"{total} requests were rejected and sent again; raise its priority level, or send fewer"
            self._throttle(now, client, detail)

    def _throttle(self, now: float, client: str, detail: str) -> None:
        alarm = Alarm(
            id=f"throttled/{client}",
            severity="warning",
            type="throttled",
            at=now,
            controller=client,
            message=f"the server throttles {client} (429)",
            detail=detail,
        )
        self.raise_(alarm, now)

    def _conflicted(self, run: Reconcile) -> None:
        recent = self._conflicts.setdefault(run.controller, deque(maxlen=_CONFLICTS))
        recent.append((run.at, run.key))
        if len(recent) == _CONFLICTS and recent[0][0] >= run.at - _WINDOW:
            keys = sorted({key for _, key in recent})
            alarm = Alarm(
                id=f"conflicts/{run.controller}",
                severity="warning",
                type="conflicts",
                at=run.at,
                controller=run.controller,
                message=f"{run.controller} conflicts with another writer: {', '.join(keys[:3])}",
                detail=run.error or "",
            )
            self.raise_(alarm, run.at)

    def looped(self, now: float, loop: HotLoop) -> None:
        flips = ", ".join(loop.fields) or "unknown fields"
        alarm = Alarm(
            id=f"hot-loop/{loop.controller}/{loop.ref.kind}/{loop.ref.key}",
            severity="error",
            type="hot-loop",
            at=now,
            ref=loop.ref,
            controller=loop.controller,
            message=f"{loop.controller} writes {loop.ref} again and again: {flips}",
            detail=loop.text,
        )
        self.raise_(alarm, now, 2 * LASTING)  # it is delayed by up to a minute

    def sampled(self, now: float, stats: ControllerStats) -> None:
        alarm = f"backlog/{stats.name}"
        if not stats.reason:
            self._behind.pop(stats.name, None)
            self.clear(alarm)
            return
        behind = self._behind[stats.name] = self._behind.get(stats.name, 0) + 1
        if behind >= _BEHIND:
            message = f"{stats.name} is behind: {stats.reason}"
            detail = self._retried(stats.name) or self._errors.get(stats.name, "")
            self.raise_(
                Alarm(
                    id=alarm,
                    severity="warning",
                    type="backlog",
                    at=now,
                    controller=stats.name,
                    message=message,
                    detail=detail,
                ),
                now,
            )

    def _retried(self, controller: str) -> str:
        """Return which key of a controller failed most often."""
        failing = {key: times for (name, key), times in self._failing.items() if name == controller and times > 1}
        if not failing:
            return ""
        key = max(failing, key=lambda each: failing[each])
        return f"{key} failed {failing[key]} times in a row: {self._errors.get(controller, '')}"
