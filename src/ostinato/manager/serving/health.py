"""Health checks, with the paths and texts of Kubernetes.

- `/healthz` answers "ok" if all checks pass; if one fails, or with `?verbose`, it lists the checks without reasons.
  `?exclude=name` skips a check.
- `/healthz/name` runs one check and includes the reason of a failure.
- Without checks there is one that always passes, `ping`.
- A plain function runs in a thread, so that it does not block the event loop.
- A change between passing and failing is logged.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ostinato.api.text.go_format import quote
from ostinato.world import Executor

Check = Callable[[], Awaitable[object] | object]
"""Raises if the check fails. A coroutine function runs on the event loop, a plain function in a thread."""

_logger = logging.getLogger("ostinato.manager")


class Report(NamedTuple):
    status: int
    text: str


NOT_FOUND = Report(404, "404 page not found\n")


class Checks:
    """The checks of one endpoint."""

    def __init__(self, executor: Executor) -> None:
        """`executor`: runs plain functions."""
        self._executor = executor
        self._checks: dict[str, Check] = {}
        self._failing: set[str] = set()  # checks whose last run failed

    def add(self, name: str, check: Check) -> None:
        """Add a check. ValueError if the name is taken."""
        if name in self._checks:
            raise ValueError(f"check {name!r} exists; use another name")
        if not name or "/" in name:
            raise ValueError(f"{name!r} is not a valid check name; it must be one path segment")
        if not callable(check):
            raise TypeError(f"check {name!r} is not a function; pass one that raises on failure")
        self._checks[name] = check

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    async def report(self, name: str, query: Mapping[str, Sequence[str]]) -> Report:
        """Return the report of one check, or of all if the name is empty."""
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
        """Return the reason of a failure; None if the check passes."""
        try:
            outcome = check() if inspect.iscoroutinefunction(check) else await self._executor.run(check)
            if inspect.isawaitable(outcome):
                await outcome
        except Exception as error:  # noqa: BLE001 - any error is a failure
            wrong = str(error) or type(error).__name__
            if name not in self._failing:
                self._failing.add(name)
                _logger.info("health check failed check=%s error=%s", name, wrong)
            return wrong
        if name in self._failing:
            self._failing.discard(name)
            _logger.info("health check passed again check=%s", name)
        return None


async def _ping() -> None: ...
