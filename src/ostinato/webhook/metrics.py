"""Metrics of webhooks and their certificates, under controller-runtime's names.

| metric | labels | value |
|---|---|---|
| `controller_runtime_webhook_latency_seconds` | webhook | duration of reviews |
| `controller_runtime_webhook_requests_total` | webhook, code | reviews by HTTP status; a rejection is a 200 |
| `controller_runtime_webhook_requests_in_flight` | webhook | concurrent reviews |
| `controller_runtime_webhook_panics_total` | | hooks that failed |
| `controller_runtime_conversion_webhook_panics_total` | | converters that failed |
| `certwatcher_read_certificate_total` | | reads of the certificate |
| `certwatcher_read_certificate_errors_total` | | reads of the certificate that failed |
"""

from __future__ import annotations

from typing import Final

from ostinato.metrics import EXPONENTIAL_BUCKETS, Family, Histogram, Sample, counter

_BOUNDS: Final = (*EXPONENTIAL_BUCKETS, 100.0, 1000.0)


class WebhookStatistics:
    """The metrics of one webhook server."""

    def __init__(self) -> None:
        self.panics = 0
        self.conversion_panics = 0
        self.certificate_reads = 0
        self.certificate_errors = 0
        self._paths: dict[str, _Path] = {}

    def expect(self, path: str) -> None:
        """Expose the metrics of a path, beginning at zero."""
        self._paths.setdefault(path, _Path())

    def began(self, path: str) -> None:
        self._paths[path].in_flight += 1

    def ended(self, path: str, code: int, seconds: float) -> None:
        numbers = self._paths[path]
        numbers.in_flight -= 1
        numbers.codes[code] = numbers.codes.get(code, 0) + 1
        numbers.latency.observe(seconds)

    def families(self) -> list[Family]:
        latency, requests, in_flight = [], [], []
        for path, numbers in self._paths.items():
            label = {"webhook": path}
            latency += numbers.latency.samples("controller_runtime_webhook_latency_seconds", label)
            requests += [
                Sample("controller_runtime_webhook_requests_total", {**label, "code": str(code)}, count)
                for code, count in sorted(numbers.codes.items())
            ]
            in_flight.append(Sample("controller_runtime_webhook_requests_in_flight", label, numbers.in_flight))
        return [
            Family(
                "controller_runtime_webhook_latency_seconds",
                "histogram",
                "Histogram of the latency of processing admission requests",
                latency,
            ),
            Family(
                "controller_runtime_webhook_requests_total",
                "counter",
                "Total number of admission requests by HTTP status code.",
                requests,
            ),
            Family(
                "controller_runtime_webhook_requests_in_flight",
                "gauge",
                "Current number of admission requests being served.",
                in_flight,
            ),
            counter("controller_runtime_webhook_panics_total", "Total number of webhook panics", self.panics),
            counter(
                "controller_runtime_conversion_webhook_panics_total",
                "Total number of conversion webhook panics",
                self.conversion_panics,
            ),
            counter("certwatcher_read_certificate_total", "Total number of certificate reads", self.certificate_reads),
            counter(
                "certwatcher_read_certificate_errors_total",
                "Total number of certificate read errors",
                self.certificate_errors,
            ),
        ]


class _Path:
    """The metrics of one path."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.codes = {200: 0, 500: 0}  # present from the start, so that rates can be computed
        self.latency = Histogram(_BOUNDS)
