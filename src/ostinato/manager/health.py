"""Health: named checks, each by itself and all together, in the words that Kubernetes uses.

- `/healthz` says "ok" if all checks pass; if one fails, or with `?verbose`, it lists them. Reasons are withheld:
  anybody may ask. `?exclude=name` leaves a check out.
- `/healthz/name` is one check, and tells the reason.
- Where there is no check there is one that always passes, `ping`.
- A plain function runs in a worker, for it may wait for something: what hangs costs the probe, not the event loop.
- The log is told why a check fails, when it begins to, and when it passes again.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ostinato.api.quoting import quote
from ostinato.world import Executor

Check = Callable[[], Awaitable[object] | object]
"""Raises if something is wrong, with a text that says what. A coroutine function runs on the loop, others do not."""

_logger = logging.getLogger("ostinato.manager")


class Report(NamedTuple):
    status: int
    text: str


NOT_FOUND = Report(404, "404 page not found\n")


class Checks:
    """The checks of one endpoint."""

    def __init__(self, executor: Executor) -> None:
        """`executor`: where plain functions run."""
        self._executor = executor
        self._checks: dict[str, Check] = {}
        self._failing: set[str] = set()  # those that failed when they were last asked

    def add(self, name: str, check: Check) -> None:
        """A ValueError if there is one of this name."""
        if name in self._checks:
            raise ValueError(f"there is a check {name!r} already")
        if not name or "/" in name:
            raise ValueError(f"{name!r} cannot be the name of a check: it is part of a path")
        if not callable(check):
            raise TypeError(f"check {name!r} is no function: give one that raises when something is wrong")
        self._checks[name] = check

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    async def report(self, name: str, query: Mapping[str, Sequence[str]]) -> Report:
        """The answer about one check, or about all if the name is empty."""
        checks = self._checks or {"ping": _ping}
        if not name:
            return await self._all(checks, query)
        check = checks.get(name)
        if check is None:
            return NOT_FOUND
        wrong = await self._run(name, check)
        return Report(200, "ok") if wrong is None else Report(500, f"internal server error: {wrong}\n")

    async def _all(self, checks: Mapping[str, Check], query: Mapping[str, Sequence[str]]) -> Report:
        excluded = set(query.get("exclude", ()))
        lines, failed = [], False
        for name, check in sorted(checks.items()):
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
            elif await self._run(name, check) is None:
                lines.append(f"[+]{name} ok\n")
            else:
                lines.append(f"[-]{name} failed: reason withheld\n")
                failed = True
        if not failed and "verbose" not in query:
            return Report(200, "ok")
        unknown = sorted(excluded - checks.keys())
        if unknown:
            names = ",".join(map(quote, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        lines.append(f"healthz check {'failed' if failed else 'passed'}\n")
        return Report(500 if failed else 200, "".join(lines))

    async def _run(self, name: str, check: Check) -> str | None:
        """What is wrong, None if nothing is."""
        try:
            outcome = check() if inspect.iscoroutinefunction(check) else await self._executor.run(check)
            if inspect.isawaitable(outcome):
                await outcome
        except Exception as error:  # noqa: BLE001 - whatever a check raises says that something is wrong
            wrong = str(error) or type(error).__name__
            if name not in self._failing:
                self._failing.add(name)
                _logger.info("check %s fails: %s", name, wrong)
            return wrong
        if name in self._failing:
            self._failing.discard(name)
            _logger.info("check %s passes again", name)
        return None


async def _ping() -> None: ...
