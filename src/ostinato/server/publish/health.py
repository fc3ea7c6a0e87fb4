"""Health: /healthz, /livez and /readyz, each a list of checks, and each check on its own path.

A check returns the reason why it fails, or None. The lists omit the reasons, because unauthenticated clients may read
them; the path of a single check reports its reason. /metrics/slis counts the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ostinato.api.text.go_format import quote
from ostinato.metrics import Family, Sample, exposition
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
        self._latest: dict[tuple[str, str], bool] = {}  # (check, endpoint) -> its last result
        self._counts: Counter[tuple[str, str, bool]] = Counter()  # (check, endpoint, result)

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
        return self._one(endpoint, name, checks[name]) if name else self._all(endpoint, checks, request)

    def slis(self) -> str:
        """Return the metrics of /metrics/slis: results of the checks that were requested."""
        latest = [
            Sample("kubernetes_healthcheck", {"name": name, "type": endpoint}, int(passed))
            for (name, endpoint), passed in sorted(self._latest.items())
        ]
        counts = [
            Sample(
                "kubernetes_healthchecks_total",
                {"name": name, "status": "success" if passed else "error", "type": endpoint},
                count,
            )
            for (name, endpoint, passed), count in sorted(self._counts.items())
        ]
        return exposition.text(
            [
                Family("kubernetes_healthcheck", "gauge", "The result of a health check, 1 if it passed.", latest),
                Family("kubernetes_healthchecks_total", "counter", "Results of health checks.", counts),
            ]
        )

    def _fault(self, endpoint: str, name: str, check: Check) -> str | None:
        wrong = check()
        self._latest[name, endpoint] = wrong is None
        self._counts[name, endpoint, wrong is None] += 1
        return wrong

    def _one(self, endpoint: str, name: str, check: Check) -> Response:
        wrong = self._fault(endpoint, name, check)
        if wrong is None:
            return Response(200, b"ok", "text/plain; charset=utf-8")
        return text_response(500, f"internal server error: {wrong}\n")

    def _all(self, endpoint: str, checks: Mapping[str, Check], request: Request) -> Response:
        excluded = set(request.query.get("exclude", ()))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
            elif self._fault(endpoint, name, check) is None:
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
