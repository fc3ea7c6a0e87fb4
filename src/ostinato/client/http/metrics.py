"""Metrics of HTTP requests, with cached labels."""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.client.transport.metrics import REQUEST_SIZE, REQUESTS, RETRIES, ClientMetrics
from ostinato.client.transport.protocol import Request


class HttpMetrics:
    """Metrics of requests to one host. `sink`: receives them; None disables them."""

    def __init__(self, sink: ClientMetrics | None, host: str) -> None:
        self.sink = sink
        self._host = host
        self._verbs: dict[str, Mapping[str, str]] = {}
        self._codes: dict[tuple[str, str], Mapping[str, str]] = {}

    def observe(self, name: str, value: float, method: str) -> None:
        if self.sink is None:
            return
        labels = self._verbs.get(method)
        if labels is None:
            labels = self._verbs[method] = {"verb": method, "host": self._host}
        self.sink.observe(name, value, labels)

    def attempted(self, request: Request, code: str, *, retry: bool) -> None:
        """Count one attempt of a request. `retry`: it is not the first."""
        if self.sink is None:
            return
        labels = self._codes.get((code, request.method))
        if labels is None:
            labels = self._codes[code, request.method] = {"code": code, "method": request.method, "host": self._host}
        self.sink.count(REQUESTS, labels)
        if retry:
            self.sink.count(RETRIES, {"code": code, "verb": request.method, "host": self._host})
        if isinstance(request.body, bytes) and request.body:
            self.observe(REQUEST_SIZE, len(request.body), request.method)
