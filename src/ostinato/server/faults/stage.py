"""FaultyServer: the core of a server whose answers a director may change.

- A request to a resource is passed to the director, which may answer in the server's place, wait, have it processed,
  and answer otherwise. Discovery, health and metrics are not affected.
- `AnswerLost` is a connection that breaks: the client receives nothing, or no further event.
- Each event of a watch is passed to the director before it is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol, cast

from ostinato.server.faults.operation import Operation, operation_of
from ostinato.server.request import Answer, Later, Request, Response, Stream
from ostinato.server.request.route import parse
from ostinato.world import World


class Core(Protocol):
    """The server behind it."""

    @property
    def world(self) -> World: ...

    def handle_now(self, request: Request) -> Response | Later | None: ...

    async def handle(self, request: Request) -> Answer: ...


class Proceed(Protocol):
    """Lets the server process the request. `other`: another server, e.g. one that is behind."""

    def __call__(self, other: Core | None = None) -> Awaitable[Answer]: ...


Page = Callable[[Request], Awaitable[Answer]]


class AnswerLost(ConnectionError):  # noqa: N818
    """The connection breaks: the client cannot know whether its request was processed."""


class Director(Protocol):
    """Decides about faults."""

    async def request(self, operation: Operation, proceed: Proceed) -> Answer:
        """Answer a request; `proceed` lets the server do it."""

    async def event(self, operation: Operation, line: bytes) -> bytes:
        """Called with each event of a watch, which is sent when it returns nothing; `AnswerLost` ends the watch.

        A line that it returns is sent first; then it is called again.
        """


class FaultyServer:
    """`core`: returns the server that is running now; a restarted one is another."""

    def __init__(self, core: Callable[[], Core], director: Director, pages: Mapping[str, Page] | None = None) -> None:
        """`pages`: by path, what answers other requests in the server's place. Defaults to none."""
        self._core = core
        self._director = director
        self._pages = pages or {}
        self.world = core().world

    def handle_now(self, request: Request) -> Response | None:
        """Return None: the director may have to wait."""
        return None

    async def handle(self, request: Request) -> Answer:
        watches = "watch=" in request.query_string and "watch=false" not in request.query_string
        route = parse(request.method, request.path, watch=watches)
        if route is None:
            page = self._pages.get(request.path)
            return await (self._core().handle(request) if page is None else page(request))
        operation = operation_of(request, route, await request.read() if route.verb == "create" else b"")

        def proceed(other: Core | None = None) -> Awaitable[Answer]:
            return (other or self._core()).handle(request)

        answer = await self._director.request(operation, proceed)
        if route.verb == "watch" and isinstance(answer, Stream):
            answer.chunks = self._events(operation, answer.chunks)
            answer.forward = None  # no event may bypass the director
        return answer

    async def _events(self, operation: Operation, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async with aclosing(cast("Any", chunks)) as source:
            async for chunk in source:
                for line in chunk.splitlines(keepends=True) if chunk.startswith(b"{") else (chunk,):
                    while first := await self._director.event(operation, line):
                        yield first
                    yield line
