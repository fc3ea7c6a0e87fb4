"""Asking a page: commands find the Unix socket of a running page, and read its answers.

Found in this order: `--socket`; `page.sock` of the state directory; the only page of this user without one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.page.address import PREFIX, sockets_directory
from ostinato.client.config.config import Config
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request, TransportError
from ostinato.http import unix_sockets
from ostinato.page.page import SOCKET
from ostinato.world import World


class PageClient:
    """Reads the answers of a page."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Return an answer. Raises CommandError with the page's error."""
        return await self._ask(Request("GET", f"/api/{path}", [*(query or {}).items()]))

    async def renew(self) -> str:
        """Return a URL of the page with a new token. Raises CommandError with the page's error."""
        return str((await self._ask(Request("POST", "/token")))["url"])

    async def _ask(self, request: Request) -> Any:
        try:
            async with await self._transport.request(request) as response:
                body = await response.read()
        except TransportError as error:
            raise CommandError(f"the page does not answer: {error}") from None
        answer = msgspec.json.decode(body)
        if response.status != 200:
            raise CommandError(str(answer.get("error", response.status)))
        return answer


@asynccontextmanager
async def asked(socket: Path, world: World) -> AsyncIterator[PageClient]:
    config = Config(server="http://localhost", environment_proxies=False, compression=False)
    transport = HttpTransport(config, world, unix_socket=socket, max_retries=0)
    try:
        yield PageClient(transport)
    finally:
        await transport.close()


def find_page(socket: str | None, state: Path) -> Path | None:
    """Return the socket of the page to ask; None if no page runs. CommandError if there are several."""
    if socket:
        if not _is_alive(Path(socket)):
            raise CommandError(f"--socket {socket}: no page listens there")
        return Path(socket)
    if _is_alive(state / SOCKET):
        return state / SOCKET
    found = [each for each in sorted(sockets_directory().glob(f"{PREFIX}*.sock")) if _is_alive(each)]
    if len(found) > 1:
        raise CommandError(f"several pages run; choose one with --socket: {', '.join(map(str, found))}")
    return found[0] if found else None


def required_page(socket: str | None, state: Path) -> Path:
    """Return the socket of the page to ask. CommandError if there is none."""
    found = find_page(socket, state)
    if found is None:
        raise CommandError(
            "no page runs; start `ostinato up --page :0` or `ostinato run FILE --page :0`, or name its --socket"
        )
    return found


def _is_alive(path: Path) -> bool:
    try:
        unix_sockets.connect(path).close()
    except OSError:
        return False
    return True
