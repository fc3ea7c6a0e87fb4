"""Observed requests: metrics of a client that also report throttling (429) to an observer of controllers.

The client retries such requests by itself, so that a reconcile is slow and does not fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ostinato.client.transport.metrics import REQUESTS, ClientMetrics
from ostinato.controllers.current import current_reconcile
from ostinato.controllers.reports.observing import Observer

_TOO_MANY: Final = "429"


class ObservedRequests:
    """A `ClientMetrics`. Counts are made in the task of the request, which knows its reconcile."""

    def __init__(self, metrics: ClientMetrics, observer: Observer) -> None:
        self._metrics = metrics
        self._observer = observer

    def count(self, name: str, labels: Mapping[str, str], /) -> None:
        self._metrics.count(name, labels)
        if name == REQUESTS and labels["code"] == _TOO_MANY:
            run = current_reconcile()
            self._observer.throttled("" if run is None else run.controller)

    def observe(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        self._metrics.observe(name, value, labels)
