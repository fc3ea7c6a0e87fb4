"""Tracing: OpenTelemetry spans, if the package is installed.

- A span for each reconcile, with the time that its key waited in the queue, and its error.
- A span for each request to the server, until the response begins; none for watches. Bodies and queries are not
  recorded: objects may be Secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any

from ostinato.client.transport.protocol import Request, Response, Transport, WebSocket
from ostinato.controllers.runnable import Span, no_span


def spans() -> Span:
    """Return the span factory. The program configures the exporter by OpenTelemetry's means."""
    trace = _trace_module()
    if trace is None:
        return no_span
    tracer = trace.get_tracer("ostinato")

    def span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        started: AbstractContextManager[object] = tracer.start_as_current_span(name, attributes=dict(attributes))
        return started

    return span


@cache
def _trace_module() -> Any:  # Any: of an optional package
    """Return OpenTelemetry's module, None if it is not installed; searched for once."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None


def traced(transport: Transport) -> Transport:
    """Wrap a transport with a span for each request; returned unchanged without OpenTelemetry."""
    span = spans()
    return transport if span is no_span else TracedTransport(transport, span)


class TracedTransport:
    def __init__(self, inner: Transport, span: Span) -> None:
        self._inner = inner
        self._span = span

    @property
    def host(self) -> str:
        return self._inner.host

    async def request(self, request: Request) -> Response:
        if request.stream:
            return await self._inner.request(request)
        with self._span(f"{request.method} request", {"host": self.host, "path": request.path}):
            return await self._inner.request(request)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()
