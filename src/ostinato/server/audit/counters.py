"""The metrics of auditing, by kube-apiserver's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ostinato.server.audit.policy import LEVELS


class AuditCounters:
    def __init__(self) -> None:
        self.events = 0
        self.rejected = 0  # requests that were refused because their events could not be written
        self.levels = [0] * len(LEVELS)  # requests, by level
        self.errors: Counter[str] = Counter()  # events that are lost, by backend

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        yield from _head("apiserver_audit_event_total", "Audit events generated and sent to the backends.")
        yield f"apiserver_audit_event_total {self.events}"
        yield from _head("apiserver_audit_requests_rejected_total", "Requests refused because of an audit error.")
        yield f"apiserver_audit_requests_rejected_total {self.rejected}"
        yield from _head("apiserver_audit_level_total", "Requests by the level at which they are audited.")
        for level, number in zip(LEVELS, self.levels, strict=True):
            yield f'apiserver_audit_level_total{{level="{level}"}} {number}'
        yield from _head("apiserver_audit_error_total", "Audit events that were lost.")
        for plugin, number in self.errors.items():
            yield f'apiserver_audit_error_total{{plugin="{plugin}"}} {number}'


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} counter"
