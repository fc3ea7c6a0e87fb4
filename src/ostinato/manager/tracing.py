"""Traces: spans around pieces of work, for OpenTelemetry where it is installed and nothing where it is not.

- A reconcile is one, with how long its key waited in the queue, and with its error if it failed.
- A request to the server is one, until its answer begins. Watches are none: they last for minutes and tell nothing.
  What is sent and asked for is not shown, only the path: objects may be secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from ostinato.client.transport.protocol import Request, Response, Transport, WebSocket
from ostinato.controllers.runnable import Span, no_span


def spans() -> Span:
    """How to make spans in this process. The exporter is the program's to configure, as OpenTelemetry has it."""
    try:
        trace: Any = import_module("opentelemetry.trace")  # Any: the package is not a dependency
    except ImportError:
        return no_span
    tracer = trace.get_tracer("ostinato")

    def span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        started: AbstractContextManager[object] = tracer.start_as_current_span(name, attributes=dict(attributes))
        return started

    return span


def traced(transport: Transport) -> Transport:
    """The same, with a span around each request; itself, where nobody looks at spans."""
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
