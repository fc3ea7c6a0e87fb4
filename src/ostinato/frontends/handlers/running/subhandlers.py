"""Sub-handlers: handlers that a handler registers while it runs, each with its own progress.

    @on.create("sites")
    def create(spec, **_):
        for page in spec["pages"]:
            @on.subhandler(id=page)
            def publish(page=page, **_): ...

They run when the handler has returned, or at `await on.execute()`. Those that have succeeded are not called again.
While one of them is retried, the handler is called again before, to register them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from ostinato.frontends.handlers.handler import Handler, handler_id

Run = Callable[[list[Handler]], Awaitable[None]]


class Scope:
    """The sub-handlers of the handler that runs."""

    def __init__(self, parent: Handler, run: Run) -> None:
        self.parent = parent
        self.handlers: list[Handler] = []
        self._run = run

    def add(self, handler: Handler) -> None:
        self.handlers.append(handler)

    async def execute(self) -> None:
        """Run what was registered since the last time."""
        waiting, self.handlers = self.handlers, []
        if waiting:
            await self._run(waiting)


current_scope: ContextVar[Scope | None] = ContextVar("ostinato.handlers.scope", default=None)


def scope() -> Scope:
    found = current_scope.get()
    if found is None:
        raise RuntimeError("sub-handlers can be registered only in a create, update, delete, resume or field handler")
    return found


async def execute(*, fns: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]] | None = None) -> None:
    """Run the sub-handlers now: those that were registered, or these functions.

    Raises an error that ends the handler if one of them has to be retried.
    """
    found = scope()
    named: Iterable[tuple[str | None, Callable[..., Any]]]
    named = fns.items() if isinstance(fns, Mapping) else ((None, each) for each in fns or ())
    for name, function in named:
        identity = handler_id(function, name, (), found.parent.id)
        found.add(Handler(id=identity, form="subhandler", function=function))
    await found.execute()
