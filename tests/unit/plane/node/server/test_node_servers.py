"""The HTTPS servers of the nodes of one control plane."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from pathlib import Path

from tests.stage.server import started_server

from ostinato.client.client import Client
from ostinato.plane.node.server.node_servers import NodeServers
from ostinato.server.access.authority import Authority
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Answer, Request, text_response
from ostinato.world import World


def test_each_node_has_a_port_and_a_certificate_of_its_own(tmp_path: Path) -> None:
    async def endpoint(request: Request) -> Answer:
        return text_response(200, f"answer to {request.path}")

    async def play() -> None:
        world = World.real(workers=1)
        async with started_server(world) as server:
            servers = NodeServers(world)
            client = Client(InProcessTransport(server), world=world)
            await servers.start(["a", "b"], "127.0.0.1", tmp_path, lambda _: client)
            servers.serve({"a": endpoint})
            assert len(set(servers.ports.values())) == 2
            admin = Authority(world, tmp_path).client("admin", "admin", ["system:masters"])

            def ask(name: str, path: str) -> tuple[int, str, str]:
                context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
                context.load_cert_chain(admin.certificate, admin.key)
                connection = http.client.HTTPSConnection("127.0.0.1", servers.ports[name], context=context, timeout=20)
                connection.connect()
                subject = dict(part[0] for part in connection.sock.getpeercert()["subject"])  # type: ignore[union-attr,attr-defined]
                connection.request("GET", path)
                answer = connection.getresponse()
                text = answer.read().decode()
                connection.close()
                return answer.status, text, subject["commonName"]

            assert await asyncio.to_thread(ask, "a", "/pods") == (200, "answer to /pods", "system:node:a")
            assert await asyncio.to_thread(ask, "b", "/pods") == (503, "starting", "system:node:b")
            await servers.stop()
        world.executor.close()

    asyncio.run(play())
