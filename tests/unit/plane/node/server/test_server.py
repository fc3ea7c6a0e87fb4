"""The HTTPS API of a remote node, called by the API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.stage.server import started_server
from tests.unit.plane.node.server.streaming import Stage
from tests.unit.streams.sockets import ends

from ostinato.api.errors import APIError, BadRequest, InternalError
from ostinato.client.patching import MergePatch
from ostinato.client.subresources.port_forward import PortForwardError
from ostinato.client.transport.protocol import Request as Asked
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.plane.node.containers.log_paths import log_of
from ostinato.plane.node.runtimes import Runtime, Usage
from ostinato.plane.node.server.endpoint import NodeEndpoint
from ostinato.plane.node.server.server import NodeServer
from ostinato.plane.node.server.stats import NodeStats
from ostinato.server.access.authority import Authority
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.node_agents.remote import RemoteNodeAgents, addresses_of
from ostinato.server.request import Peer, Request, Response, Stream
from ostinato.streams import ports
from ostinato.streams.spdy import SpdyConnection
from ostinato.streams.upgrade import Upgrade
from ostinato.world import World


class Far(Stage):
    """A scene whose agent listens on a port."""

    async def listen(
        self, directory: Path, user: str = "api", groups: Sequence[str] = ("system:masters",)
    ) -> NodeServer:
        async def pods_of(_: str) -> Sequence[Pod]:
            self.runtime.used = {"c": Usage(0.0, 1 << 20)}
            return [await self.client.get(Pod, "p")]

        runtimes = {"n": cast("Runtime", self.runtime)}
        stats = NodeStats(self.world.clock, runtimes, pods_of)
        node = NodeServer(self.world, "n", self.client)
        node.endpoint = NodeEndpoint("n", self.streams, stats).handle
        clients = Authority(self.world, directory)
        (directory / "node").mkdir()
        pair = Authority(self.world, directory / "node").server("kubelet", ["n", "localhost", "127.0.0.1"])
        await node.start("127.0.0.1", 0, pair, clients.certificate.decode())
        self.server.nodes._here.clear()
        context = partial(_context, clients, user, groups)
        self.server.nodes.remote = RemoteNodeAgents(self.world.clock, context, self.server.guard)
        self.status = {
            "addresses": [{"type": "Hostname", "address": "127.0.0.1"}, {"type": "InternalIP", "address": "127.0.0.9"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": node.port}},
        }
        await self.client.patch(Node, "n", MergePatch({"status": self.status}), subresource="status")
        return node


def _context(authority: Authority, user: str, groups: Sequence[str]) -> ssl.SSLContext:
    pair = authority.client("client", user, [*groups])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def _far(play: Callable[[Far], Awaitable[None]], logs: Path) -> None:
    async def main() -> None:
        world = World.real()
        async with started_server(world) as server:
            async with asyncio.timeout(30):
                await play(Far(cast("Any", world), server, logs))
        world.executor.close()

    asyncio.run(main())


def test_a_remote_node_serves_logs_exec_and_attach(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        pod = await scene.begin()
        node = await scene.listen(tmp_path)
        pods = scene.client.pods
        log = log_of(tmp_path, pod, "c", 0)
        log.parent.mkdir(parents=True)
        log.write_bytes(b"2026-01-01T00:00:01Z stdout F one\n" * 10_000)
        assert await pods.log("p", container="c") == "one\n" * 10_000
        assert await anext(aiter(pods.follow("p", container="c"))) == "one"
        with pytest.raises(BadRequest, match='previous terminated container "c" in pod "p" not found'):
            await pods.log("p", container="c", previous=True)
        done = await pods.run("p", ["echo"], container="c", stdin=b"x" * 200_000)
        assert (done.exit_code, done.stdout) == (0, b"X" * 200_000)
        assert (await pods.run("p", ["exit", "42"], container="c")).exit_code == 42
        with pytest.raises(InternalError) as caught:
            await pods.run("p", ["nope"], container="c")
        said = "Internal error occurred: Internal error occurred: error executing command in container: "
        assert str(caught.value) == said + "no such program: nope"
        async with await pods.attach("p", container="d", stdin=True, tty=True) as process:
            await process.resize(80, 24)
            assert await anext(process) == ("stdout", b"80x24")
        await node.stop()

    _far(play, tmp_path)


def test_logs_of_a_remote_node_are_read_over_a_web_socket(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        pod = await scene.begin()
        node = await scene.listen(tmp_path)
        log = log_of(tmp_path, pod, "c", 0)
        log.parent.mkdir(parents=True)
        log.write_bytes(b"2026-01-01T00:00:01Z stdout F one\n")
        headers = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-protocol": "binary.k8s.io"}
        request = Request("GET", "/api/v1/namespaces/default/pods/p/log", "container=c", headers)
        request.peer = Peer("admin", ("system:masters",))
        answer = await scene.server.handle(request)
        assert isinstance(answer, Stream)
        assert [chunk async for chunk in answer.chunks] == [b"one\n"]
        await node.stop()

    _far(play, tmp_path)


def test_ports_of_a_remote_node_are_forwarded(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(100)).upper())
        writer.close()

    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path)
        listener = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        async with await scene.client.pods.port_forward("p", port) as connection:
            await connection.write(b"abc")
            assert await connection.read() == b"ABC"
            assert await connection.read() == b""
        listener.close()
        await listener.wait_closed()
        async with await scene.client.pods.port_forward("p", port) as connection:
            with pytest.raises(PortForwardError, match="connection refused"):
                await connection.read()
        await node.stop()

    _far(play, tmp_path)


@pytest.mark.parametrize("over", ["tunnel", "spdy"])
def test_spdy_is_passed_through(tmp_path: Path, over: str) -> None:
    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path)
        headers = {"upgrade": "websocket", "sec-websocket-protocol": ports.TUNNEL}
        if over == "spdy":
            headers = {"upgrade": "SPDY/3.1", "x-stream-protocol-version": ports.PROTOCOL}
        request = Request("POST", "/api/v1/namespaces/default/pods/p/portforward", "", headers)
        request.peer = Peer("admin", ("system:masters",))
        answer = await scene.server.handle(request)
        assert isinstance(answer, Upgrade)
        assert answer.subprotocol == (ports.TUNNEL if over == "tunnel" else ports.PROTOCOL)
        mine, theirs = ends()
        serving = asyncio.ensure_future(answer.serve(theirs))
        async with SpdyConnection(mine, server=False) as connection:
            about = {"port": "1", "requestid": "0"}
            error = await connection.open({"streamtype": "error"} | about)
            await connection.open({"streamtype": "data"} | about)
            assert b"connection refused" in (await error.read() or b"")
        mine.close()
        await serving
        await node.stop()

    _far(play, tmp_path)


def test_a_remote_node_serves_stats(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path)
        scene.server.serve_usage()
        request = Request("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p")
        request.peer = Peer("admin", ("system:masters",))
        answer = await scene.server.handle(request)
        assert isinstance(answer, Response)
        assert b'"memory":"1024Ki"' in answer.body
        await node.stop()

    _far(play, tmp_path)


def test_unauthorized_requests_are_rejected(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path, user="jane", groups=("people",))
        with pytest.raises(APIError) as caught:
            await scene.client.pods.run("p", ["x"], container="c")
        assert "Forbidden (user=jane, verb=create, resource=nodes" in str(caught.value)
        nobody = await node.handle(Request("GET", "/healthz"))
        assert nobody.status == 401
        unknown = await node.handle(Request("GET", "/healthz", headers={"authorization": "Bearer nonsense"}))
        assert unknown.status == 401
        await node.stop()

    _far(play, tmp_path)


def test_an_unreachable_agent_is_reported(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path)
        await node.stop()
        with pytest.raises(InternalError, match="no node agent answers for node n"):
            await scene.client.pods.log("p", container="c")
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        self_port = listener.sockets[0].getsockname()[1]
        scene.status["daemonEndpoints"]["kubeletEndpoint"]["Port"] = self_port
        await scene.client.patch(Node, "n", MergePatch({"status": scene.status}), subresource="status")
        asked = Asked("GET", "/api/v1/namespaces/default/pods/p/log", [("container", "c")])
        async with await InProcessTransport(scene.server).request(asked) as answer:
            assert answer.status == 500
        listener.close()

    _far(play, tmp_path)


def test_a_node_without_an_agent_address_cannot_be_reached() -> None:
    for status in ({}, {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}):
        with pytest.raises(OSError, match="node status has no address or kubelet port"):
            addresses_of({"status": status})


def test_a_rotated_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    async def play(scene: Far) -> None:
        await scene.begin()
        node = await scene.listen(tmp_path)
        before = await presented(node)
        rotated = Authority(scene.world, tmp_path).server("rotated", ["n"])
        file = tmp_path / "rotated.pem"
        file.write_bytes(rotated.certificate.read_bytes() + rotated.key.read_bytes())
        node.use_certificate(file)
        after = await presented(node)
        assert before != after == ssl.PEM_cert_to_DER_cert(rotated.certificate.read_text())
        await node.stop()

    async def presented(node: NodeServer) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", node.port, ssl=context)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(certificate)

    _far(play, tmp_path)
