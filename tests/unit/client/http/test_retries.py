"""HttpTransport: what is sent again, how often, and what never is. Waits take no time."""

from __future__ import annotations

import asyncio
import socket as sockets
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from tests.unit.client.clocks import ShiftedClock, SleeplessClock, world_with
from tests.unit.client.http.servers import Served, get, hello, listening, run, serving, transport
from tests.unit.client.http.servers import Socket as Listener

from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, RequestTimedOut, Unreachable


def fast() -> Any:
    return world_with(SleeplessClock())


def refusing(times: int, status: int = 429, after: str | None = "1", body: str = "busy") -> Callable[..., Any]:
    """A handler that says no so many times, and then yes."""
    left = times

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal left
        left -= 1
        if left < 0:
            return await hello(request)
        return web.Response(status=status, text=body, headers={} if after is None else {"Retry-After": after})

    return answer


async def statuses(handler: Any, request: Request, **options: Any) -> tuple[int, Served]:
    """The status that came at last, and what the server saw."""
    async with serving(handler) as served, transport(served.config(), fast(), **options) as sender:
        response = await sender.request(request)
        await response.read()
        return response.status, served


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_requests_are_retried_after_retry_after(method: str, status: int) -> None:
    found, served = run(statuses(refusing(3, status), Request(method, "/", body=b"body")))
    assert found == 200
    assert served.bodies == [b"body"] * 4
    assert len(served.connections) == 1  # what was refused is read, so that its connection serves again


@pytest.mark.parametrize(("times", "status", "requests"), [(10, 200, 11), (11, 429, 11), (100, 429, 11)])
def test_it_is_sent_again_ten_times_at_most(times: int, status: int, requests: int) -> None:
    found, served = run(statuses(refusing(times), Request("GET", "/")))
    assert (found, len(served.requests)) == (status, requests)


@pytest.mark.parametrize(
    ("status", "after"), [(429, None), (503, "Wed, 21 Oct 2015 07:28:00 GMT"), (409, "1"), (404, "1"), (503, "1000")]
)
def test_without_a_number_of_seconds_or_for_too_many_it_is_not(status: int, after: str | None) -> None:
    found, served = run(statuses(refusing(5, status, after), Request("GET", "/")))
    assert (found, len(served.requests)) == (status, 1)


def test_a_body_that_can_be_read_once_is_sent_once() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"once"

    async def main() -> None:
        found, served = await statuses(refusing(5), Request("POST", "/", body=chunks()))
        assert (found, served.bodies) == (429, [b"once"])

    run(main())


def test_a_long_refusal_is_not_read_to_its_end() -> None:
    found, served = run(statuses(refusing(1, body="x" * 20_000_000), Request("GET", "/")))
    assert found == 200
    assert len(served.connections) == 2


def test_a_wait_that_would_outlast_the_request_is_not_begun() -> None:
    async def main() -> None:
        async with (
            serving(refusing(5, after="20")) as served,
            transport(served.config()) as sender,
        ):  # on the real clock
            response = await sender.request(Request("GET", "/", timeout=10.0))
            assert (response.status, len(served.requests)) == (429, 1)
            response.close()

    run(main())


def test_streams_are_sent_again_too() -> None:
    found, served = run(statuses(refusing(2), Request("GET", "/", stream=True)))
    assert (found, len(served.requests)) == (200, 3)


class Recorder:
    """Metrics and a limiter that remember."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, dict[str, str]]] = []
        self.observed: list[tuple[str, float, dict[str, str]]] = []
        self.waits = 0

    def count(self, name: str, labels: Any, /) -> None:
        self.counts.append((name, dict(labels)))

    def observe(self, name: str, value: float, labels: Any, /) -> None:
        self.observed.append((name, value, dict(labels)))

    async def wait(self, _what: str) -> float:
        self.waits += 1
        return 0.25


def test_every_attempt_waits_for_the_limit_and_is_counted() -> None:
    recorder = Recorder()
    request = Request("PUT", "/", body=b"12345")
    _, served = run(statuses(refusing(2), request, metrics=recorder, limiter=recorder))
    assert recorder.waits == 3
    host = f"127.0.0.1:{served.port}"
    total = [labels for name, labels in recorder.counts if name == "rest_client_requests_total"]
    assert total == [{"code": code, "method": "PUT", "host": host} for code in ("429", "429", "200")]
    retries = [labels for name, labels in recorder.counts if name == "rest_client_request_retries_total"]
    assert retries == [{"code": code, "verb": "PUT", "host": host} for code in ("429", "200")]
    assert recorder.counts[0] == ("rest_client_transport_create_calls_total", {"result": "miss"})
    sizes = {
        name: [value for found, value, _ in recorder.observed if found == name] for name, _, _ in recorder.observed
    }
    assert sizes["rest_client_request_size_bytes"] == [5.0] * 3
    assert sizes["rest_client_response_size_bytes"] == [4.0, 4.0, 5.0]
    assert sizes["rest_client_rate_limiter_duration_seconds"] == [0.25] * 3
    assert len(sizes["rest_client_request_duration_seconds"]) == 1
    assert all(labels == {"verb": "PUT", "host": host} for _, _, labels in recorder.observed)


def test_the_search_for_a_hosts_address_is_measured() -> None:
    async def main() -> None:
        recorder = Recorder()
        async with serving() as served:
            config = served.config(server=f"https://localhost:{served.port}")
            async with transport(config, metrics=recorder) as sender:
                await get(sender)
        searches = [entry for entry in recorder.observed if entry[0] == "rest_client_dns_resolution_duration_seconds"]
        assert [labels for _, _, labels in searches] == [{"host": "localhost"}]

    run(main())


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crashing server does."""
    found: sockets.socket = writer.get_extra_info("socket")
    found.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def resetting(times: int, *, kindly: bool = False) -> Any:
    """Ends so many connections after the request has come, and answers on the next."""

    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        if len(socket.requests) <= times:
            if not kindly:
                reset(writer)
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()

    return converse


@pytest.mark.parametrize("kindly", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_get_whose_connection_is_lost_is_retried(kindly: bool, stream: bool) -> None:
    async def main() -> None:
        async with listening(resetting(3, kindly=kindly)) as socket, transport(socket.config(), fast()) as sender:
            assert await get(sender, stream=stream) == b"hello"
            assert len(socket.requests) == 4

    run(main())


def test_a_get_is_sent_again_ten_times_at_most() -> None:
    async def main() -> None:
        recorder = Recorder()
        async with (
            listening(resetting(100)) as socket,
            transport(socket.config(), fast(), metrics=recorder) as sender,
        ):
            with pytest.raises(ConnectionLost, match=r"the connection was lost|the server closed the connection"):
                await get(sender)
            assert len(socket.requests) == 11
            codes = [labels["code"] for name, labels in recorder.counts if name == "rest_client_requests_total"]
            assert codes == ["<error>"] * 11

    run(main())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_whose_connection_is_lost_is_not_retried(method: str) -> None:
    async def main() -> None:
        async with listening(resetting(1)) as socket, transport(socket.config(), fast()) as sender:
            with pytest.raises(ConnectionLost, match=f"{method} 127.0.0.1.*: the connection was lost|closed"):
                await sender.request(Request(method, "/", body=b"body"))
            assert len(socket.requests) == 1

    run(main())


def test_a_connection_that_was_kept_too_long_costs_a_get_no_wait() -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        await socket.head(reader)  # and goes away instead of answering

    class Sleeps(ShiftedClock):
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)

    slept: list[float] = []

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config(), world_with(Sleeps())) as sender:
            for _ in range(3):
                assert await get(sender) == b"hello"
            assert (socket.connections, len(socket.requests)) == (3, 5)

    run(main())
    assert slept == [0.0, 0.0]


def test_the_previous_error_is_reported_with_the_last() -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        if len(socket.requests) == 1:
            writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif len(socket.requests) == 2:
            writer.write(b"nonsense\r\n\r\n")
        await writer.drain()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config(), fast()) as sender:
            with pytest.raises(ConnectionLost) as caught:
                await get(sender)
            assert (
                "the response is not valid HTTP - error from a previous attempt: the server responded with status 503"
                in str(caught.value)
            )

    run(main())


def test_a_refused_connection_is_not_retried() -> None:
    async def main() -> None:
        recorder = Recorder()
        async with serving(plain=True) as served:
            config = served.config(tls={"ca_data": b""})
        async with transport(config, fast(), metrics=recorder) as sender:
            with pytest.raises(ConnectionLost, match="cannot be reached"):
                await get(sender)
        assert [name for name, _ in recorder.counts].count("rest_client_requests_total") == 1

    run(main())


def test_a_request_that_was_sent_before_the_server_could_not_be_reached_may_have_been_done() -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        busy.set()
        writer.write(b"HTTP/1.1 504 Late\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    class Leaves(SleeplessClock):
        async def sleep(self, seconds: float) -> None:
            await left.wait()

    busy, left = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            socket = await stack.enter_async_context(listening(converse))
            async with transport(socket.config(), world_with(Leaves())) as sender:
                sending = asyncio.ensure_future(sender.request(Request("POST", "/", body=b"x")))
                await busy.wait()
                await stack.aclose()
                left.set()
                with pytest.raises(ConnectionLost, match=r"cannot be reached.* - error from a previous") as lost:
                    await sending
                assert not isinstance(lost.value, Unreachable)

    run(main())


def test_the_time_of_a_request_includes_its_waits() -> None:
    async def main() -> None:
        async with (
            serving(refusing(1000, after="1")) as served,
            transport(served.config(), fast()) as sender,
        ):
            response = await sender.request(Request("GET", "/", timeout=3.5))
            assert response.status == 429
            response.close()
            assert len(served.requests) == 4  # after 0, 1, 2 and 3 seconds

    run(main())


def test_nothing_is_sent_past_the_deadline() -> None:
    async def main() -> None:
        clock = ShiftedClock()
        deadline: list[float | None] = [None]
        async with (
            serving() as served,
            transport(served.config(), world_with(clock), deadline=lambda: deadline[0]) as sender,
        ):
            await get(sender)
            deadline[0] = clock.monotonic() + 60
            await get(sender)
            deadline[0] = clock.monotonic() - 0.001
            for request in (Request("GET", "/"), Request("PUT", "/", body=b"x"), Request("GET", "/", stream=True)):
                with pytest.raises(DeadlinePassed, match="the deadline of this transport has passed"):
                    await sender.request(request)
            with pytest.raises(DeadlinePassed):
                await sender.websocket(Request("GET", "/"), ["v4.channel.k8s.io"])
            assert len(served.requests) == 2

    run(main())


def test_a_deadline_that_passes_while_the_connection_is_made_still_counts() -> None:
    async def main() -> None:
        clock = ShiftedClock()
        asked = 0

        def deadline() -> float:
            nonlocal asked
            asked += 1
            return clock.monotonic() + (60 if asked == 1 else -1)

        async with serving() as served, transport(served.config(), world_with(clock), deadline=deadline) as sender:
            with pytest.raises(DeadlinePassed):
                await sender.request(Request("POST", "/", body=b"x"))
            assert asked == 2
            assert served.requests == []

    run(main())


def test_a_deadline_that_passes_during_a_wait_ends_the_attempts() -> None:
    async def main() -> None:
        clock = SleeplessClock()
        async with serving(refusing(10, after="30")) as served:
            end = clock.monotonic() + 20
            async with transport(served.config(), world_with(clock), deadline=lambda: end) as sender:
                with pytest.raises(
                    DeadlinePassed, match="error from a previous attempt: the server responded with status 429"
                ):
                    await sender.request(Request("PUT", "/", body=b"x"))
            assert len(served.requests) == 1

    run(main())


def test_a_timeout_is_not_a_lost_connection() -> None:
    async def main() -> None:
        async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await socket.head(reader)
            await reader.read()

        async with listening(converse) as socket, transport(socket.config()) as sender:
            with pytest.raises(RequestTimedOut):
                await get(sender, timeout=0.1)
            assert len(socket.requests) == 1

    run(main())
