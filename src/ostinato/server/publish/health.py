"""Health: /healthz, /livez and /readyz, each a list of checks, and each check on its own path.

A check returns the reason why it fails, or None. The lists omit the reasons, because unauthenticated clients may read
them; the path of a single check reports its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ostinato.api.text.go_format import quote
from ostinato.server.request import Request, Response, text_response

Check = Callable[[], str | None]  # the reason of the failure; None if healthy

ENDPOINTS = ("healthz", "livez", "readyz")


class Health:
    """The health checks. `store` returns why the store is unhealthy, None if it is healthy."""

    def __init__(self, store: Check) -> None:
        self._stopping = False
        alive: dict[str, Check] = {"ping": _healthy, "log": _healthy, "etcd": store}
        ready: dict[str, Check] = {**alive, "etcd-readiness": store, "informer-sync": _healthy, "shutdown": self._stops}
        self._checks: Mapping[str, Mapping[str, Check]] = {"healthz": alive, "livez": alive, "readyz": ready}

    def stop(self) -> None:
        """Begin the shutdown: the server stays alive, but is not ready."""
        self._stopping = True

    def _stops(self) -> str | None:
        return "process is shutting down" if self._stopping else None

    @property
    def paths(self) -> list[str]:
        return [
            path
            for endpoint, checks in self._checks.items()
            for path in (f"/{endpoint}", *(f"/{endpoint}/{name}" for name in checks))
        ]

    def answer(self, path: str, request: Request) -> Response | None:
        """The response for a path; None if the path is not a health endpoint."""
        endpoint, _, name = path.removeprefix("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is None or (path.count("/") == 2 and name not in checks) or path.count("/") > 2:
            return None
        return self._one(checks[name]) if name else self._all(endpoint, checks, request)

    def _one(self, check: Check) -> Response:
        wrong = check()
        if wrong is None:
            return Response(200, b"ok", "text/plain; charset=utf-8")
        return text_response(500, f"internal server error: {wrong}\n")

    def _all(self, endpoint: str, checks: Mapping[str, Check], request: Request) -> Response:
        excluded = set(request.query.get("exclude", ()))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
            elif check() is None:
                lines.append(f"[+]{name} ok\n")
            else:
                lines.append(f"[-]{name} failed: reason withheld\n")
                failed = True
        unknown = sorted(excluded - checks.keys())
        if unknown:
            names = ",".join(quote(name) for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            return text_response(500, f"{''.join(lines)}{endpoint} check failed\n")
        if "verbose" not in request.query:
            return text_response(200, "ok")
        return text_response(200, f"{''.join(lines)}{endpoint} check passed\n")


def _healthy() -> str | None:
    return None
