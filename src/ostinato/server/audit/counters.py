"""Audit metrics with kube-apiserver's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ostinato.metrics import Family, Sample, counter
from ostinato.server.audit.policy import LEVELS


class AuditCounters:
    def __init__(self) -> None:
        self.events = 0
        self.rejected = 0  # requests rejected because their event could not be written
        self.levels = [0] * len(LEVELS)  # requests, by level
        self.errors: Counter[str] = Counter()  # lost events by backend

    def families(self) -> Iterator[Family]:
        yield counter("apiserver_audit_event_total", "Audit events generated and sent to the backends.", self.events)
        yield counter(
            "apiserver_audit_requests_rejected_total", "Requests rejected because of an audit error.", self.rejected
        )
        name = "apiserver_audit_level_total"
        levels = [Sample(name, {"level": level}, number) for level, number in zip(LEVELS, self.levels, strict=True)]
        yield Family(name, "counter", "Requests by audit level.", levels)
        name = "apiserver_audit_error_total"
        errors = [Sample(name, {"plugin": plugin}, number) for plugin, number in self.errors.items()]
        yield Family(name, "counter", "Audit events that were lost.", errors)
