"""The two servers of the page: HTTP for browsers, and a Unix socket for commands and for reports of other processes.

- Browsers: see `access`. Loopback unless another address is given.
- Unix socket: processes of the same user, without a token. They can read the keys of the state directory anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from ostinato.http import unix_sockets
from ostinato.http.server import Answer, BodyTooLarge, HttpRequest, HttpResponse, HttpStream, SmallHttpServer
from ostinato.page.serving.access import SECURITY_HEADERS, Access, Refused
from ostinato.page.serving.assets import INDEX, Assets
from ostinato.page.serving.routes import JSON, Routes, problem
from ostinato.world import World

MAX_REPORTS: Final = 16 << 20  # bytes of a batch
_MAX_CONNECTIONS: Final = 128
_STOP_SECONDS: Final = 0.5
_NO_STORE: Final = ("Cache-Control", "no-store")
_PAGE_HEADER: Final = "x-ostinato-page"


class BrowserServer:
    """Start it once, then stop it."""

    def __init__(self, world: World, routes: Routes) -> None:
        self._world = world
        self._routes = routes
        self._assets = Assets()
        self._server = SmallHttpServer(self._handle, world.clock, _MAX_CONNECTIONS)
        self._access: Access | None = None

    @property
    def url(self) -> str:
        """The URL with the token, which works once."""
        assert self._access is not None, "started"
        return self._access.url

    def renew(self) -> str:
        """Return a URL with a new token, for another browser."""
        assert self._access is not None, "started"
        return self._access.renew()

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        await self._server.start(host, port)
        self._access = Access(self._world.ids, host, self._server.address[1])

    async def stop(self) -> None:
        await self._server.stop(_STOP_SECONDS)

    async def _handle(self, request: HttpRequest) -> Answer:
        assert self._access is not None, "started"
        try:
            answer = await self._permitted(request, self._access)
        except Refused as refused:
            answer = problem(refused.status, refused.why)
        return _secured(answer)

    async def _permitted(self, request: HttpRequest, access: Access) -> Answer:
        access.check_host(request)
        if request.path == "/" and request.method == "GET" and "token" in request.query:
            cookie = access.exchange(request.query["token"][0])
            if cookie is not None:
                return HttpResponse(303, b"", headers=[("Location", "/"), ("Set-Cookie", cookie)])
        access.check_session(request)
        is_change = request.method not in ("GET", "HEAD")
        access.check_site(request, changes=is_change or "upgrade" in request.headers)
        if is_change and (
            request.headers.get(_PAGE_HEADER) != "1"
            or request.headers.get("content-type", "").partition(";")[0].strip() != JSON
        ):
            raise Refused(415, f"want {JSON} and the header X-Ostinato-Page: 1")
        if request.path.startswith("/api/"):
            return await self._routes.answer(request, request.path.removeprefix("/api/"))
        if is_change:
            raise Refused(405, "no such path")
        if request.path == "/":
            return self._assets.answer(request, INDEX)
        if request.path.startswith("/assets/"):
            return self._assets.answer(request, request.path.removeprefix("/assets/"))
        return problem(404, "no such path")


class LocalServer:
    """Start it once, then stop it."""

    def __init__(
        self,
        world: World,
        routes: Routes,
        receive: Callable[[bytes], object],
        renew: Callable[[], str],
    ) -> None:
        """
        - `receive`: called with encoded reports; raises MsgspecError if they are invalid.
        - `renew`: returns a URL for another browser.
        """
        self._routes = routes
        self._receive = receive
        self._renew = renew
        self._server = SmallHttpServer(self._handle, world.clock, _MAX_CONNECTIONS)
        self._path: Path | None = None

    async def start(self, path: Path) -> None:
        """Listen on a Unix socket. Raises OSError."""
        await self._server.start_unix(unix_sockets.listen(path))
        self._path = path

    async def stop(self) -> None:
        await self._server.stop(_STOP_SECONDS)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _handle(self, request: HttpRequest) -> Answer:
        if request.path == "/reports" and request.method == "POST":
            try:
                self._receive(await request.read(MAX_REPORTS))
            except (msgspec.MsgspecError, BodyTooLarge) as error:
                return problem(400, f"invalid reports: {error}")
            return HttpResponse(200)
        if request.path == "/token" and request.method == "POST":
            return HttpResponse(200, msgspec.json.encode({"url": self._renew()}), JSON)
        if request.path.startswith("/api/") and request.method == "GET":
            return await self._routes.answer(request, request.path.removeprefix("/api/"))
        return problem(404, "no such path")


def _secured(answer: Answer) -> Answer:
    """Add the security headers, and forbid storing unless the answer says otherwise."""
    if not isinstance(answer, HttpResponse | HttpStream):
        return answer
    given = {name.lower() for name, _ in answer.headers}
    cached = [] if "cache-control" in given else [_NO_STORE]
    return answer._replace(headers=[*answer.headers, *cached, *SECURITY_HEADERS])
