"""What the client tells of itself, under the names that client-go gives its metrics.

| metric | labels | is |
|---|---|---|
| `rest_client_requests_total` | code, method, host | every attempt; code `<error>` where no answer came |
| `rest_client_request_retries_total` | code, verb, host | every attempt but the first of a request |
| `rest_client_request_duration_seconds` | verb, host | a request with all its attempts, until the answer begins |
| `rest_client_rate_limiter_duration_seconds` | verb, host | waits for the limiter of this process |
| `rest_client_request_size_bytes` | verb, host | bodies that are sent |
| `rest_client_response_size_bytes` | verb, host | bodies that were read to their end, decompressed |
| `rest_client_dns_resolution_duration_seconds` | host | |
| `rest_client_transport_create_calls_total` | result | connection pools: a new one when certificates change |
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
    """Keeps what it is told. Called on every request: be quick, and never raise."""

    def count(self, name: str, labels: Mapping[str, str], /) -> None:
        """One more."""

    def observe(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        """One more, that took or weighed so much."""
