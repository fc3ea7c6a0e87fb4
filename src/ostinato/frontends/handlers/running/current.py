"""The object that is handled now, for functions that handlers call: `on.adopt(child)`, `on.info(body, ...)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ostinato.controllers.context import Context

current_body: ContextVar[dict[str, Any] | None] = ContextVar("ostinato.handlers.body", default=None)
current_context: ContextVar[Context | None] = ContextVar("ostinato.handlers.context", default=None)


@contextmanager
def handling(body: dict[str, Any], context: Context) -> Iterator[None]:
    """Set the object and the context within a block. Threads that are called in it inherit both."""
    tokens = current_body.set(body), current_context.set(context)
    try:
        yield
    finally:
        current_body.reset(tokens[0])
        current_context.reset(tokens[1])
