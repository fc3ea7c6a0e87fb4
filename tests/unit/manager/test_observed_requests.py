"""Throttled requests of a reconcile, which the client sends again by itself, are reported."""

from __future__ import annotations

import asyncio

from tests.unit.page.objects import taken

from ostinato.client.config.config import Config
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request
from ostinato.controllers.current import Reconcile, running
from ostinato.controllers.reasons import Why
from ostinato.http.server import HttpRequest, HttpResponse, SmallHttpServer
from ostinato.manager.metrics import request_metrics
from ostinato.manager.observed_requests import ObservedRequests
from ostinato.page.reporting.reporter import Reporter
from ostinato.world import World


def test_a_throttled_request_is_reported_with_its_controller() -> None:
    answers = [HttpResponse(429, b"{}", headers=[("Retry-After", "0")])] * 2 + [HttpResponse(200, b"{}")]

    async def handle(_: HttpRequest) -> HttpResponse:
        return answers.pop(0)

    async def main() -> None:
        world = World.real(workers=1)
        server = SmallHttpServer(handle, world.clock)
        await server.start("127.0.0.1", 0)
        reporter, metrics = Reporter("operator", world.clock), request_metrics()
        address = f"http://127.0.0.1:{server.address[1]}"
        config = Config(server=address, environment_proxies=False)
        transport = HttpTransport(config, world, metrics=ObservedRequests(metrics, reporter))
        run = Reconcile(id="1", controller="widgets", request="a", gvk=None, why=Why((), ()), attempt=1)
        with running(run):
            async with await transport.request(Request("GET", "/")) as response:
                assert response.status == 200
        reports = taken(reporter)
        assert reports is not None
        assert reports.throttled == {"widgets": 2}
        assert reporter.take() is None
        await transport.close()
        await server.stop(0.1)
        world.executor.close()

    asyncio.run(main())
