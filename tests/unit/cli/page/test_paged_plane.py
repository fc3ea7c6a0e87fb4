"""The page of a plane in the same process has an identity of its own, and only the rights that it needs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.stage.server import started_server

from ostinato.api.errors import Forbidden
from ostinato.api.meta import ObjectMeta
from ostinato.cli.page.paged_plane import page_client
from ostinato.client.client import Client
from ostinato.client.transport.protocol import Request, Transport
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Purpose
from ostinato.plane.access import identities
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.world import Simulation


@pytest.mark.parametrize("writes", [False, True])
def test_the_page_reads_and_deletes_only_with_writes_and_never_creates(writes: bool) -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        async with started_server(world) as server:

            def connect(purpose: Purpose) -> Transport:
                return InProcessTransport(server, user=_user(purpose))

            async with Client(connect(Purpose()), world=world) as administrator:
                await administrator.create(_map("kept"))
                async with await page_client(connect, world, writes=writes) as page:
                    assert [each.metadata.name for each in await page.list(ConfigMap, namespace="default")] == ["kept"]
                    with pytest.raises(Forbidden):
                        await page.create(_map("new"))
                    assert await _status(page, "/metrics") == 200
                    for path in ("/metrics/slis", "/flagz", "/debug/pprof/", "/logs"):
                        assert await _status(page, path) == 403, path
                    if writes:
                        await page.delete(_map("kept"))
                    else:
                        with pytest.raises(Forbidden):
                            await page.delete(_map("kept"))

    world.run(main())


async def _status(client: Client, path: str) -> int:
    async with await client.transport.request(Request("GET", path)) as response:
        return response.status


def _user(purpose: Purpose) -> tuple[str, Sequence[str]]:
    return identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR


def _map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))
