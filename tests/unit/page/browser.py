"""A page on an API server in this process, and a browser's requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.stage.server import started_server

from ostinato.client.client import Client
from ostinato.http.response import ResponseParser
from ostinato.page.page import Page, PageSettings
from ostinato.page.reporting.reporter import Reporter
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.world import World


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Browser:
    """Sends requests to a page. `cookie`: of the session, once it has one."""

    def __init__(self, page: Page) -> None:
        self._address = page.url.split("/")[2]
        self.token = page.url.partition("token=")[2]
        self.cookie = ""

    async def request(self, target: str, *lines: str, method: str = "GET", host: str = "", body: str = "") -> Answer:
        headers = [f"Host: {host or self._address}", *lines]
        if self.cookie:
            headers.append(f"Cookie: {self.cookie}")
        if body:
            headers.append(f"Content-Length: {len(body)}")
        name, _, port = self._address.rpartition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        try:
            head = "\r\n".join([f"{method} {target} HTTP/1.1", *headers])
            writer.write(f"{head}\r\n\r\n{body}".encode())
            response = ResponseParser()
            while not response.complete:
                data = await reader.read(1 << 16)
                if not data:
                    break
                response.feed(data)
                if response.status == 101 or response.headers.get("content-type", "").startswith("text/event-stream"):
                    break
            return Answer(response.status, dict(response.headers), bytes(response.take()))
        finally:
            writer.close()

    async def log_in(self) -> None:
        answer = await self.request(f"/?token={self.token}")
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    @property
    def origin(self) -> str:
        return f"Origin: http://{self._address}"

    async def get(self, path: str) -> Any:
        answer = await self.request(path)
        assert answer.status == 200, answer.body
        return answer.json()


@asynccontextmanager
async def paged(
    reporter: Reporter | None = None, user: tuple[str, Sequence[str]] = ADMINISTRATOR, **settings: Any
) -> AsyncIterator[tuple[Browser, Client]]:
    """Start a server and its page; yield a browser, which is not logged in, and a client of the server.

    `user`: of the page. Defaults to an administrator.
    """
    world = World.real(workers=1)
    async with started_server(world) as server:
        client = Client(InProcessTransport(server), world=world, namespace="default", field_manager="test-user")
        own = Client(InProcessTransport(server, user=user), world=world)
        page = Page(world, own, PageSettings(**{"mode": "plane", "cluster": "test", **settings}), reporter)
        await page.start()
        try:
            yield Browser(page), client
        finally:
            await page.stop()
            await client.close()
    world.executor.close()
