"""Traces: spans around pieces of work, for OpenTelemetry where it is installed and nothing where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from ostinato.controller.runnable import Span, no_span


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
