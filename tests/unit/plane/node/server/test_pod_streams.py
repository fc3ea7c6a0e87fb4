"""Exec, attach and port-forward, from a client through the API server to a node."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.unit.plane.node.server.streaming import RUNNING, PlayedSession, Stage, container_status, ended, stage
from tests.unit.streams.sockets import ends

from ostinato.api.errors import APIError, BadRequest, InternalError
from ostinato.client.subresources.port_forward import PortForwardError
from ostinato.client.transport.protocol import Request as Asked
from ostinato.client.transport.protocol import UpgradeRefused
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Peer, Request
from ostinato.streams import ports
from ostinato.streams.session import Command
from ostinato.streams.spdy import SpdyConnection
from ostinato.streams.spdy_command import SpdySession

SPDY = {"upgrade": "SPDY/3.1", "connection": "Upgrade"}


def test_a_command_is_run_with_its_input_output_and_code() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        pods = scene.client.pods
        done = await pods.run("p", ["say", "hello"], container="c")
        assert (done.exit_code, done.stdout, done.stderr) == (0, b"hello", b"aside")
        done = await pods.run("p", ["exit", "42"], container="c")
        assert (done.exit_code, done.stderr) == (42, b"failing\n")
        done = await pods.run("p", ["echo"], container="c", stdin=b"quiet")
        assert done.stdout == b"QUIET"
        assert all(session.closed for session in scene.runtime.sessions)

    stage(play)


def test_a_terminal_gets_its_size_and_has_one_stream() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        async with await scene.client.pods.exec("p", ["echo"], container="c", stdin=True, tty=True) as process:
            await process.resize(80, 24)
            assert await anext(process) == ("stdout", b"80x24")
            await process._socket.send(b"\x04nonsense")
            await process.write(b"x")
            assert await anext(process) == ("stdout", b"X")
        assert scene.runtime.sessions[0].sizes == [(80, 24)]

    stage(play)


def test_a_disconnected_client_ends_the_command() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        process = await scene.client.pods.exec("p", ["hang"], container="c")
        await scene.world.clock.sleep(1)
        assert not scene.runtime.sessions[0].closed
        await process.close()
        assert scene.runtime.sessions[0].closed

    stage(play)


def test_attach_takes_the_terminal_of_the_container_and_always_succeeds() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        async with await scene.client.pods.attach("p", container="d", stdin=True) as process:
            await process.write(b"hi")
            assert await anext(process) == ("stdout", b"HI")
            await process.close_stdin()
            assert [each async for each in process] == []
            assert process.exit_code == 0
        assert scene.runtime.attached == [("d", True, True)]

    stage(play)


def test_failed_commands_have_the_error_texts_of_kubelet() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin(container_status(RUNNING), container_status(ended(), name="d"))
        pods = scene.client.pods
        with pytest.raises(InternalError) as internal:
            await pods.run("p", ["nope"], container="c")
        said = "Internal error occurred: Internal error occurred: error executing command in container: "
        assert str(internal.value) == said + "no such program: nope"
        with pytest.raises(APIError) as caught:
            await pods.run("p", ["say", "x"], container="d")
        assert str(caught.value) == 'unable to upgrade connection: container not found ("d")'
        with pytest.raises(APIError, match="container d not found in pod p_default"):
            await (await pods.attach("p", container="d")).complete()
        with pytest.raises(BadRequest, match="container x is not valid for pod p"):
            await pods.run("p", ["true"], container="x")

    stage(play)


@pytest.mark.parametrize(
    ("query", "headers", "status", "text"),
    [
        ("command=x", SPDY, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("output=1", SPDY, 400, "you must specify at least one command for the container"),
        ("output=1&command=x", {}, 400, "Upgrade request required"),
        (
            "output=1&command=x",
            {"upgrade": "websocket", "sec-websocket-protocol": "chat"},
            400,
            "not supported: [chat]",
        ),
        ("output=1&command=x", SPDY | {"x-stream-protocol-version": "v9"}, 403, "unable to negotiate protocol"),
    ],
)
def test_invalid_requests_are_rejected(query: str, headers: dict[str, str], status: int, text: str) -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        answer = await scene.streams.handle(Request("POST", "/exec/default/p/c", query, headers))
        assert answer.status == status
        assert text in answer.body.decode()  # type: ignore[union-attr]

    stage(play)


def test_a_server_asks_for_an_upgrade_and_says_when_nobody_answers() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        path = "/api/v1/namespaces/default/pods/p/exec"
        answer = await scene.server.handle(_admin(Request("GET", path, "container=c&command=x&stdout=true")))
        assert (answer.status, json.loads(answer.body)["message"]) == (400, "Upgrade request required")  # type: ignore[union-attr]
        scene.server.nodes._here.clear()
        with pytest.raises(InternalError, match="no node agent answers for node n"):
            await scene.client.pods.run("p", ["x"], container="c")

    stage(play)


def _admin(request: Request) -> Request:
    request.peer = Peer("admin", ("system:masters",))
    return request


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "base64.channel.k8s.io"])
def test_older_stream_protocols_are_supported(protocol: str) -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        path = "/api/v1/namespaces/default/pods/p/exec"
        query = [("container", "c"), ("command", "exit"), ("command", "3"), ("stdout", "1"), ("stderr", "1")]
        socket = await InProcessTransport(scene.server).websocket(Asked("GET", path, query), [protocol])
        assert socket.protocol == protocol
        said = []
        while (message := await socket.receive()) is not None:
            said.append(message)
        if "base64" in protocol:
            assert said[:2] == [b"1", b"2ZmFpbGluZwo="]
        else:
            assert said[:2] == [b"\x01", b"\x02failing\n"]
            assert json.loads(said[2][1:])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]

    stage(play)


def test_an_unknown_stream_protocol_is_rejected() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        asked = Asked("GET", "/api/v1/namespaces/default/pods/p/exec", [("container", "c"), ("stdout", "1")])
        with pytest.raises(UpgradeRefused) as refused:
            await InProcessTransport(scene.server).websocket(asked, ["chat"])
        assert refused.value.status == 400

    stage(play)


def test_a_command_over_spdy_is_the_same_for_both_ends() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        query = "input=1&output=1&error=1&command=echo"
        answer = await scene.upgrade(
            "/exec/default/p/c", query, SPDY | {"x-stream-protocol-version": "v4.channel.k8s.io"}
        )
        mine, theirs = ends()
        serving = asyncio.ensure_future(answer.serve(theirs))
        command = Command(open=_nothing, what="", stdin=True, stdout=True, stderr=True)
        session = await SpdySession.begin(mine, command)
        await session.write(b"abc")
        assert await session.read() == (1, b"ABC")
        await session.close_input()
        assert await session.read() is None
        assert await session.wait() == 0
        await session.close()
        await serving

    stage(play)


def test_a_spdy_terminal_has_a_resize_stream_and_reports_exit_codes() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        header = {"x-stream-protocol-version": "v4.channel.k8s.io"}
        answer = await scene.upgrade("/exec/default/p/c", "input=1&output=1&tty=1&command=echo", SPDY | header)
        mine, theirs = ends()
        serving = asyncio.ensure_future(answer.serve(theirs))
        session = await SpdySession.begin(mine, Command(open=_nothing, what="", stdin=True, stdout=True, tty=True))
        await session.resize(100, 30)
        assert await session.read() == (1, b"100x30")
        scene.runtime.sessions[0].code = 7
        await session.close_input()
        assert await session.read() is None
        assert await session.wait() == 7
        await session.close()
        await serving

    stage(play)


def test_a_spdy_client_that_opens_no_streams_times_out() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        answer = await scene.upgrade("/exec/default/p/c", "output=1&command=echo", SPDY)
        _, theirs = ends()
        await answer.serve(theirs)
        assert scene.world.clock.monotonic() >= 30
        assert scene.runtime.sessions == []

    stage(play)


async def _nothing() -> PlayedSession:
    raise NotImplementedError


class PlayedLink:
    """A port that repeats what it is told, and ends when its client does."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.closed = False

    async def read(self) -> bytes | None:
        return await self.said.get()

    async def write(self, data: bytes) -> None:
        self.said.put_nowait(data.upper())

    async def close_writing(self) -> None:
        self.said.put_nowait(None)

    async def close(self) -> None:
        self.closed = True


class Ports:
    def __init__(self, scene: Stage) -> None:
        self.links: list[PlayedLink] = []
        scene.runtime.connect = self.connect  # type: ignore[attr-defined]

    async def connect(self, pod: object, port: int) -> ports.Link:
        if port == 1:
            raise ConnectionRefusedError("nobody listens")
        self.links.append(PlayedLink())
        return self.links[-1]


def test_a_port_is_forwarded_over_channels() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        played = Ports(scene)
        async with await scene.client.pods.port_forward("p", 8080) as connection:
            await connection.write(b"abc")
            assert await connection.read() == b"ABC"
            played.links[0].said.put_nowait(None)
            assert await connection.read() == b""
        async with await scene.client.pods.port_forward("p", 1) as connection:
            with pytest.raises(PortForwardError, match=r"error forwarding port 1 to pod p, uid .*: nobody listens"):
                await connection.read()

    stage(play)


@pytest.mark.parametrize(
    ("query", "text"),
    [("", '"port" is required'), ("port=x", 'unable to parse "x" as a port'), ("port=0", "must be > 0")],
)
def test_invalid_port_numbers_are_rejected(query: str, text: str) -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        headers = {"upgrade": "websocket", "sec-websocket-protocol": "v4.channel.k8s.io"}
        answer = await scene.streams.handle(Request("GET", "/portForward/default/p", query, headers))
        assert answer.status == 400
        assert text in answer.body.decode()  # type: ignore[union-attr]

    stage(play)


def test_ports_are_forwarded_over_spdy_many_at_a_time() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        played = Ports(scene)
        headers = {"upgrade": "websocket", "sec-websocket-protocol": ports.TUNNEL}
        answer = await scene.upgrade("/portForward/default/p", "", headers)
        assert answer.subprotocol == ports.TUNNEL
        mine, theirs = ends()
        serving = asyncio.ensure_future(answer.serve(theirs))
        async with SpdyConnection(mine, server=False) as connection:
            pairs = []
            for number, port in ((0, 80), (1, 81), (2, 1)):
                about = {"port": str(port), "requestid": str(number)}
                error = await connection.open({"streamtype": "error"} | about)
                await error.close()
                pairs.append((await connection.open({"streamtype": "data"} | about), error))
            for data, _ in pairs[:2]:
                await data.write(b"x")
                assert await data.read() == b"X"
            assert b"nobody listens" in (await pairs[2][1].read() or b"")
            assert await pairs[2][0].read() is None
            await pairs[0][0].close()
            assert await pairs[0][0].read() is None
            assert await pairs[0][1].read() is None
            await pairs[1][0].write(b"y")
            assert await pairs[1][0].read() == b"Y"
        mine.close()
        await serving
        assert all(link.closed for link in played.links)

    stage(play)


def test_streams_without_a_port_are_rejected() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        Ports(scene)
        answer = await scene.upgrade("/portForward/default/p", "", SPDY | {"x-stream-protocol-version": ports.PROTOCOL})
        mine, theirs = ends()
        serving = asyncio.ensure_future(answer.serve(theirs))
        async with SpdyConnection(mine, server=False) as connection:
            for headers in ({}, {"streamtype": "data"}, {"streamtype": "data", "port": "99999"}, {"port": "80"}):
                assert await (await connection.open(headers)).read() is None
        mine.close()
        await serving

    stage(play)
