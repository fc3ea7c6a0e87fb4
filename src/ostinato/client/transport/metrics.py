"""Metrics of the client, under client-go's names.

| metric | labels | meaning |
|---|---|---|
| `rest_client_requests_total` | code, method, host | attempts; code `<error>` without a response |
| `rest_client_request_retries_total` | code, verb, host | attempts except the first of a request |
| `rest_client_request_duration_seconds` | verb, host | a request with all its attempts, until the response begins |
| `rest_client_rate_limiter_duration_seconds` | verb, host | delays by the client's rate limiter |
| `rest_client_request_size_bytes` | verb, host | request bodies |
| `rest_client_response_size_bytes` | verb, host | response bodies read to their end, decompressed |
| `rest_client_dns_resolution_duration_seconds` | host | |
| `rest_client_transport_create_calls_total` | result | connection pools; one is created when certificates change |
| `rest_client_exec_plugin_call_total` | code, call_status | runs of a credential plugin |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

REQUESTS: Final = "rest_client_requests_total"
RETRIES: Final = "rest_client_request_retries_total"
DURATION: Final = "rest_client_request_duration_seconds"
RATE_LIMITER: Final = "rest_client_rate_limiter_duration_seconds"
REQUEST_SIZE: Final = "rest_client_request_size_bytes"
RESPONSE_SIZE: Final = "rest_client_response_size_bytes"
DNS: Final = "rest_client_dns_resolution_duration_seconds"
TRANSPORTS: Final = "rest_client_transport_create_calls_total"
EXEC_CALLS: Final = "rest_client_exec_plugin_call_total"

NO_RESPONSE: Final = "<error>"


class ClientMetrics(Protocol):
    """Receives the metrics. Called on every request: must be fast and must not raise."""

    def count(self, name: str, labels: Mapping[str, str], /) -> None:
        """Increment a counter."""

    def observe(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        """Add an observation to a histogram."""
