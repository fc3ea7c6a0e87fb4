"""Reports over the Unix socket, with a page that starts late, ends and returns."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ostinato.http import unix_sockets
from ostinato.http.server import HttpRequest, HttpResponse, SmallHttpServer
from ostinato.page.reporting.reporter import Undelivered
from ostinato.page.reporting.reports import Collected, EncodedItems, encode
from ostinato.page.reporting.sender import Sender
from ostinato.world import World

CLOCK = World.real().clock
REPORTS = encode(Collected(process="controllers", runs=EncodedItems().take(), placed=EncodedItems().take()))


class Receiver:
    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.status = 200
        self._server = SmallHttpServer(self._handle, CLOCK)

    async def start(self, path: Path) -> None:
        await self._server.start_unix(unix_sockets.listen(path))

    async def stop(self) -> None:
        await self._server.stop(0.1)

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        self.received.append(await request.read(1 << 20))
        return HttpResponse(self.status)


def test_reports_arrive_and_a_new_page_is_noticed(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "page.sock"
        sender = Sender(CLOCK, path)
        with pytest.raises(Undelivered):
            await sender.deliver(REPORTS)
        first = Receiver()
        await first.start(path)
        assert os.stat(path).st_mode & 0o777 == 0o600
        with pytest.raises(Undelivered):
            await sender.deliver(REPORTS)  # no attempt within a second
        sender = Sender(CLOCK, path)
        assert await sender.deliver(REPORTS)
        assert not await sender.deliver(REPORTS)
        assert first.received == [REPORTS, REPORTS]
        await first.stop()
        with pytest.raises(Undelivered):
            await sender.deliver(REPORTS)
        second = Receiver()
        await second.start(path)
        sender = Sender(CLOCK, path)
        assert await sender.deliver(REPORTS)
        second.status = 500
        with pytest.raises(Undelivered):
            await sender.deliver(REPORTS)
        sender.close()
        await second.stop()

    asyncio.run(test())
