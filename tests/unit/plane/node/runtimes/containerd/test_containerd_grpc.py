"""gRPC calls: responses, errors, large messages, streams and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.unit.grpc.grpc_server import Exchange, GrpcServer, Serve, serving

from ostinato.api.protobuf.decoding import read_message
from ostinato.api.protobuf.encoding import write_message
from ostinato.grpc import Channel, RpcError, go_error
from ostinato.plane.node.runtimes.containerd.cri import RemoteCri
from ostinato.world import World

Play = Callable[[Channel, GrpcServer], Awaitable[None]]


def play(tmp_path: Path, serve: Serve, scene: Play) -> None:
    async def run() -> None:
        path = tmp_path / "socket"
        async with serving(path, serve) as server:
            channel = Channel(path, World.real().clock)
            try:
                await scene(channel, server)
            finally:
                await channel.close()

    asyncio.run(run())


async def echo(call: Exchange) -> None:
    await call.answer(bytes(call.request[5:]))


async def silence(call: Exchange) -> None: ...


@pytest.mark.parametrize("size", [0, 5, 70_000, 1_000_000])
def test_a_call_is_answered_however_long_it_is(tmp_path: Path, size: int) -> None:
    async def scene(channel: Channel, server: GrpcServer) -> None:
        request = bytes(index % 251 for index in range(size))
        assert await channel.call("/a/B", request, 30) == request
        assert server.exchanges[0].method == "/a/B"

    play(tmp_path, echo, scene)


def test_calls_run_concurrently_on_one_connection(tmp_path: Path) -> None:
    async def scene(channel: Channel, server: GrpcServer) -> None:
        requests = [bytes([index]) * 10_000 for index in range(50)]
        assert await asyncio.gather(*(channel.call("/a/B", each, 30) for each in requests)) == requests
        assert server.connections == 1

    play(tmp_path, echo, scene)


def test_an_error_has_the_code_and_message_of_the_server(tmp_path: Path) -> None:
    async def refuse(call: Exchange) -> None:
        await call.answer(status=5, message="no such thing: %22x%22 caf%C3%A9")

    async def scene(channel: Channel, server: GrpcServer) -> None:
        with pytest.raises(RpcError) as caught:
            await channel.call("/a/B", b"", 30)
        assert caught.value.code == 5
        assert go_error(caught.value) == 'rpc error: code = NotFound desc = no such thing: "x" café'

    play(tmp_path, refuse, scene)


def test_an_error_after_the_answer_is_an_error(tmp_path: Path) -> None:
    async def think_again(call: Exchange) -> None:
        await call.answer(b"fine", status=13, message="not fine")

    async def scene(channel: Channel, server: GrpcServer) -> None:
        with pytest.raises(RpcError, match="not fine"):
            await channel.call("/a/B", b"", 30)

    play(tmp_path, think_again, scene)


def test_a_timed_out_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async def scene(channel: Channel, server: GrpcServer) -> None:
        with pytest.raises(RpcError, match=r"/a/B: no response within 0\.05 s"):
            await channel.call("/a/B", b"", 0.05)
        while not server.exchanges[0].is_cancelled:
            server.exchanges[0].news.clear()
            await server.exchanges[0].news.wait()

    play(tmp_path, silence, scene)


def test_answers_of_a_stream_come_one_by_one(tmp_path: Path) -> None:
    messages = [bytes([index]) * 3000 for index in range(100)]  # more than a window holds

    async def many(call: Exchange) -> None:
        await call.answer(*messages)

    async def scene(channel: Channel, server: GrpcServer) -> None:
        async with aclosing(channel.stream("/a/B", b"")) as answers:
            assert [each async for each in answers] == messages

    play(tmp_path, many, scene)


def test_a_broken_connection_is_an_error_and_the_next_call_makes_another(tmp_path: Path) -> None:
    async def hang_up_once(call: Exchange) -> None:
        if bytes(call.request[5:]) == b"go":
            call._server.hang_up()
        else:
            await echo(call)

    async def scene(channel: Channel, server: GrpcServer) -> None:
        with pytest.raises(RpcError) as caught:
            await channel.call("/a/B", b"go", 30)
        assert go_error(caught.value).startswith("rpc error: code = Unavailable desc = ")
        assert await channel.call("/a/B", b"again", 30) == b"again"
        assert server.connections == 2

    play(tmp_path, hang_up_once, scene)


def test_a_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        channel = Channel(tmp_path / "none", World.real().clock)
        with pytest.raises(RpcError, match="none: No such file or directory"):
            await channel.call("/a/B", b"", 30)

    asyncio.run(run())


def test_a_message_that_is_too_long_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    async def boast(call: Exchange) -> None:
        call._http.send_headers(call._stream, [(":status", "200")])
        call._http.send_data(call._stream, b"\0" + (1 << 30).to_bytes(4, "big"))
        call._server.flush(call._http)

    async def scene(channel: Channel, server: GrpcServer) -> None:
        with pytest.raises(RpcError, match="1073741824 bytes exceeds 16777216"):
            await channel.call("/a/B", b"", 30)

    play(tmp_path, boast, scene)


def test_cri_methods_use_their_messages(tmp_path: Path) -> None:
    async def version(call: Exchange) -> None:
        await call.answer(b"\x12\x04that\x1a\x032.1")

    async def scene(channel: Channel, server: GrpcServer) -> None:
        cri = RemoteCri(channel)
        assert await cri.call("Version", {"version": "1"}) == {"runtime_name": "that", "runtime_version": "2.1"}
        assert server.exchanges[0].method == "/runtime.v1.RuntimeService/Version"
        assert bytes(server.exchanges[0].request[5:]) == b"\x0a\x011"
        with pytest.raises(RpcError, match="invalid ImageStatusResponse: proto: illegal wireType 4"):
            await cri.call("ImageStatus", {})
        assert server.exchanges[1].method == "/runtime.v1.ImageService/ImageStatus"

    play(tmp_path, version, scene)


@pytest.mark.parametrize(
    "method",
    [
        *("Version", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox"),
        *("CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "ListContainers"),
        *("ReopenContainerLog", "ListContainerStats", "ExecSync", "Exec", "Attach", "PortForward"),
        *("ImageStatus", "PullImage"),
    ],
)
def test_every_used_cri_method_has_its_messages(method: str) -> None:
    assert write_message(f"runtime.v1.{method}Request", {}) == b""
    assert read_message(f"runtime.v1.{method}Response", b"") == {}


def test_messages_of_the_cri_are_read_as_they_were_written() -> None:
    status = {
        "id": "x",
        "state": 2,
        "exit_code": -1,
        "finished_at": 1 << 60,
        "labels": {"a": "b"},
        "user": {"linux": {"uid": 0, "supplemental_groups": [1, 1 << 40]}},
        "mounts": [{"container_path": "/a", "readonly": True}, {}],
    }
    assert read_message("runtime.v1.ContainerStatus", write_message("runtime.v1.ContainerStatus", status)) == status
