"""HttpTransport: requests and answers, over real connections."""

from __future__ import annotations

import asyncio
import gzip
import logging
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.unit.client.http.servers import Socket as Listener
from tests.unit.client.http.servers import get, hello, listening, run, serving, transport, written

from ostinato.client.config.config import Impersonation
from ostinato.client.config.secret import Secret
from ostinato.client.http import pool as http_pool
from ostinato.client.http.connection import ConnectionClosed
from ostinato.client.http.errors import failure
from ostinato.client.transport.protocol import (
    ConnectionLost,
    Request,
    RequestTimedOut,
    ResponseTooLarge,
    TransportError,
    lines,
    path_of,
)
from ostinato.http.errors import InvalidHttp
from ostinato.world import World


def test_a_request_and_its_response_are_transferred_unchanged() -> None:
    async def answer(request: web.Request) -> web.Response:
        headers = [("X-A", "1"), ("x-a", "2"), ("Audit-Id", "7")]
        return web.Response(status=404, body=b"gone", headers=headers)  # type: ignore[arg-type]

    async def main() -> None:
        async with serving(answer) as served, transport(served.config(user_agent="me/1")) as sender:
            path = path_of("api", "v1", "namespaces", "a b", "pods", "x:y%")
            request = Request("POST", path, [("fieldSelector", "a=b,c"), ("limit", "5")], [("X-Own", "yes")], b"body")
            async with await sender.request(request) as response:
                assert response.status == 404
                assert response.headers["x-a"] == "1"
                assert response.headers["audit-id"] == "7"
                assert await response.read() == b"gone"
            seen = served.requests[0]
            assert seen.raw_path == "/api/v1/namespaces/a%20b/pods/x:y%25?fieldSelector=a%3Db%2Cc&limit=5"
            assert served.bodies == [b"body"]
            assert (seen.headers["X-Own"], seen.headers["User-Agent"]) == ("yes", "me/1")
            assert seen.headers["Accept-Encoding"] == "gzip"
            assert "Accept" not in seen.headers
            assert "Content-Type" not in seen.headers
            assert sender.host == f"127.0.0.1:{served.port}"

    run(main())


def test_the_path_of_the_server_url_prefixes_every_request() -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(server=f"{served.url}/prefix/")) as sender:
            await get(sender, "/api")
            assert served.requests[0].path == "/prefix/api"

    run(main())


def test_connections_are_kept_and_used_again() -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            for _ in range(5):
                assert await get(sender) == b"hello"
            assert len(served.connections) == 1

    run(main())


def test_a_large_body_is_sent_completely_and_chunks_incrementally() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"chunk"

    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            large = b"x" * 3_000_000
            await (await sender.request(Request("PUT", "/", body=large))).read()
            await (await sender.request(Request("POST", "/", body=chunks()))).read()
            assert [len(body) for body in served.bodies] == [3_000_000, 15]

    run(main())


def test_credentials_of_the_request_itself_beat_all_others() -> None:
    async def main() -> None:
        async with serving() as served:
            who = Impersonation(user="somebody", groups=("a", "b"), extra={"k": ("v",)})
            config = served.config(token=Secret("configured"), impersonate=who)
            async with transport(config) as sender:
                await get(sender)
                assert served.headers["Authorization"] == "Bearer configured"
                assert served.headers["Impersonate-User"] == "somebody"
                assert served.requests[-1].headers.getall("Impersonate-Group") == ["a", "b"]
                await get(sender, headers=[("authorization", "Bearer own"), ("impersonate-user", "else")])
                assert served.requests[-1].headers.getall("Authorization") == ["Bearer own"]
                assert served.requests[-1].headers.getall("Impersonate-User") == ["else"]
                assert "Impersonate-Group" not in served.headers
                assert "Impersonate-Extra-k" not in served.headers

    run(main())


def test_over_plain_http_no_credentials_are_sent() -> None:
    async def main() -> None:
        async with serving(plain=True) as served:
            config = served.config(tls={"ca_data": b""}, token=Secret("t"), impersonate=Impersonation(user="me"))
            async with transport(config) as sender:
                assert await get(sender) == b"hello"
                assert "Authorization" not in served.headers
                assert served.headers["Impersonate-User"] == "me"

    run(main())


def test_a_401_leads_to_one_more_try_with_a_token_that_has_changed(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bearer good":
            return web.Response(status=401, text="who?")
        return web.Response(text="welcome")

    async def chunks() -> AsyncIterator[bytes]:
        yield b"once"

    async def main() -> None:
        token = written(tmp_path, "token", b"old")
        async with serving(answer) as served, transport(served.config(token_file=token)) as sender:
            for method in ("GET", "POST"):
                written(tmp_path, "token", b"old")
                response = await sender.request(Request(method, "/"))
                assert (response.status, await response.read()) == (401, b"who?")
                written(tmp_path, "token", b"good")
                before = len(served.requests)
                response = await sender.request(Request(method, "/"))
                assert (response.status, await response.read()) == (200, b"welcome")
                assert len(served.requests) == before + 2
                written(tmp_path, "token", b"bad")
                await sender._credentials.rejected(await sender._credentials.current())
                response = await sender.request(Request(method, "/"))
                assert response.status == 401
                await response.read()
            before = len(served.requests)
            for request in (
                Request("POST", "/", body=chunks()),  # cannot be sent twice
                Request("GET", "/", headers=[("Authorization", "Bearer own")]),  # is not ours to renew
            ):
                written(tmp_path, "token", b"bad")
                response = await sender.request(request)
                assert response.status == 401
                response.close()
            assert len(served.requests) == before + 2

    run(main())


def test_redirects_are_returned_and_never_followed() -> None:
    async def main() -> None:
        async with serving() as other:

            async def answer(_request: web.Request) -> web.Response:
                return web.Response(status=302, headers={"Location": f"{other.url}/stolen"})

            async with serving(answer) as served, transport(served.config(token=Secret("t"))) as sender:
                response = await sender.request(Request("GET", "/"))
                assert response.status == 302
                assert response.headers["location"].endswith("/stolen")
                response.close()
                assert other.requests == []
                assert len(served.requests) == 1

    run(main())


def test_compressed_responses_are_decompressed_unless_disabled() -> None:
    async def answer(request: web.Request) -> web.Response:
        if "gzip" not in request.headers["Accept-Encoding"]:
            return web.Response(text="plain")
        return web.Response(body=gzip.compress(b"packed" * 10_000), headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with serving(answer) as served:
            async with transport(served.config()) as sender:
                assert await get(sender) == b"packed" * 10_000
            async with transport(served.config(compression=False)) as sender:
                assert await get(sender) == b"plain"
                assert served.headers["Accept-Encoding"] == "identity"

    run(main())


def test_a_bomb_is_not_held_in_memory() -> None:
    bomb = gzip.compress(bytes(300_000_000), compresslevel=9)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async def main() -> int:
        async with serving(answer) as served, transport(served.config(), max_response_bytes=5_000_000) as sender:
            response = await sender.request(Request("GET", "/"))
            tracemalloc.start()
            try:
                with pytest.raises(ResponseTooLarge, match=r"response larger than 5000000 bytes; request it in pages"):
                    await response.read()
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    assert run(main()) < 40_000_000


def test_an_invalid_gzip_body_is_an_error() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b"not compressed at all", headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with serving(answer) as served, transport(served.config()) as sender:
            with pytest.raises(TransportError):
                await get(sender)

    run(main())


def test_a_stream_is_delivered_incrementally_and_can_be_closed() -> None:
    async def main() -> None:
        left = asyncio.Event()
        go_on = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b"one\ntw")
            await go_on.wait()
            await stream.write(b"o\n")
            while request.transport is not None:  # noqa: ASYNC110 - until the client has gone
                await asyncio.sleep(0.001)
            left.set()
            return stream

        async with serving(answer) as served, transport(served.config()) as sender:
            response = await sender.request(Request("GET", "/", stream=True))
            found = lines(response.chunks())
            assert await anext(found) == b"one"
            go_on.set()
            assert await anext(found) == b"two"
            response.close()
            response.close()
            await left.wait()

    run(main())


def test_streams_never_keep_short_requests_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "MAX_CONNECTIONS", 2)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/watch":
            return await hello(request)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await asyncio.Event().wait()
        return stream

    async def main() -> None:
        async with serving(answer) as served, transport(served.config()) as sender:
            streams = [await sender.request(Request("GET", "/watch", stream=True)) for _ in range(10)]
            assert await asyncio.gather(*[get(sender) for _ in range(20)]) == [b"hello"] * 20
            assert len(served.connections) == 12
            for stream in streams:
                stream.close()

    run(main())


def test_warnings_of_the_server_are_in_the_response() -> None:
    async def answer(_request: web.Request) -> web.Response:
        headers = [("Warning", '299 - "old"'), ("Warning", '299 - "and worn"'), ("Warning", '199 - "no"')]
        return web.Response(headers=headers)  # type: ignore[arg-type]

    async def main() -> None:
        async with serving(answer) as served, transport(served.config()) as sender:
            response = await sender.request(Request("GET", "/"))
            assert list(response.warnings) == ["old", "and worn"]
            response.close()

    run(main())


def test_the_timeout_of_a_request_includes_retries_and_the_body() -> None:
    async def slow_body(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"begun")
        await asyncio.Event().wait()
        return stream

    async def never(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        async with serving(never) as served:
            async with transport(served.config()) as sender:
                with pytest.raises(RequestTimedOut, match=r"GET .*/a: timed out: no response within 0.05 seconds"):
                    await get(sender, "/a", timeout=0.05)
                with pytest.raises(RequestTimedOut):
                    await sender.request(Request("GET", "/", stream=True, timeout=0.05))
            async with transport(served.config(timeout=0.05)) as sender:
                with pytest.raises(TimeoutError):
                    await get(sender)
        async with serving(slow_body) as served, transport(served.config()) as sender:
            response = await sender.request(Request("GET", "/", timeout=0.2))
            with pytest.raises(RequestTimedOut, match="timed out while reading the response"):
                await response.read()
            stream = await sender.request(Request("GET", "/", stream=True, timeout=0.2))
            chunks = stream.chunks()
            assert await anext(chunks) == b"begun"
            with pytest.raises(TimeoutError) as ended:
                async with asyncio.timeout(0.4):
                    await anext(chunks)
            assert not isinstance(ended.value, RequestTimedOut)  # the stream's own time was for its beginning

    run(main())


def test_the_read_timeout_ends_a_short_request_but_not_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "_READ_TIMEOUT", 0.1)

    async def silent(request: web.Request) -> web.StreamResponse:
        if request.path == "/never":
            await asyncio.sleep(0.5)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"begun")
        await asyncio.sleep(0.5)
        return stream

    async def main() -> None:
        async with serving(silent) as served, transport(served.config()) as sender:
            with pytest.raises(RequestTimedOut):
                await get(sender)
            with pytest.raises(RequestTimedOut, match="timed out while waiting for the response"):
                await get(sender, "/never")
            assert await get(sender, stream=True) == b"begun"
            assert await get(sender, timeout=5.0) == b"begun"  # who asks for so much time gets it

    run(main())


def test_an_unreachable_server_is_reported_with_request_and_host() -> None:
    async def main() -> None:
        async with serving() as served:
            config = served.config()
        async with transport(config) as sender:
            with pytest.raises(ConnectionLost, match=r"GET 127.0.0.1:\d+/api: the server cannot be reached: "):
                await get(sender, "/api")
        async with transport(served.config(server="https://no-such-host.invalid")) as sender:
            with pytest.raises(ConnectionLost, match=r"GET no-such-host.invalid/: the server cannot be reached"):
                await get(sender)
        async with transport(served.config(server="https://no..host")) as sender:
            with pytest.raises(ConnectionLost, match=r"cannot be reached: 'no..host' is not a valid host name"):
                await get(sender)

    run(main())


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "the response is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "while reading the response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "while reading the response"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "the response is not valid HTTP|while reading",
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", "the response is not valid HTTP"),
    ],
)
def test_an_invalid_or_truncated_response_is_an_error(sent: bytes, error: str) -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(sent)
        await writer.drain()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            with pytest.raises(ConnectionLost, match=error):
                await get(sender)

    run(main())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TimeoutError(), RequestTimedOut, "timed out while waiting for the response"),
        (ConnectionClosed(), ConnectionLost, "the server closed the connection"),
        (InvalidHttp("x"), ConnectionLost, "the response is not valid HTTP"),
        (OSError(32, "Broken pipe"), ConnectionLost, "the connection was lost: Broken pipe"),
        (ConnectionResetError(), ConnectionLost, "the connection was lost: ConnectionResetError"),
        (OSError("Multiple exceptions: a, b"), ConnectionLost, "the connection was lost: Multiple exceptions: a, b"),
    ],
)
def test_errors_of_connections_have_a_message(error: Exception, kind: type[Exception], words: str) -> None:
    found = failure(error, "GET h/")
    assert type(found) is kind
    assert str(found).startswith(f"GET h/: {words}")


def test_a_transport_belongs_to_one_loop_and_ends_when_closed() -> None:
    async def main() -> None:
        async with serving() as served:
            async with transport(served.config()) as sender:
                await get(sender)
                with pytest.raises(TransportError, match="belongs to another event loop"):
                    await asyncio.to_thread(lambda: run(get(sender)))
            with pytest.raises(TransportError, match="the transport is closed"):
                await get(sender)
            await sender.close()
            await (unused := transport(served.config())).__aenter__()
            await unused.__aexit__(None, None, None)

    run(main())


def test_closing_ends_open_requests() -> None:
    async def main() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            if request.path == "/never":
                await asyncio.Event().wait()
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b"begun")
            await asyncio.Event().wait()
            return stream

        async with serving(answer) as served, transport(served.config()) as sender:
            waiting = [asyncio.ensure_future(sender.request(Request("PUT", "/never")))]
            for stream in (True, False):
                chunks = (await sender.request(Request("GET", "/", stream=stream))).chunks()
                assert await anext(chunks) == b"begun"
                waiting.append(asyncio.ensure_future(anext(chunks)))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            await sender.close()
            for result in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(result, ConnectionLost), result

    run(main())


def test_the_rate_limit_is_for_short_requests_alone() -> None:
    class Bucket:
        def __init__(self) -> None:
            self.waits: list[str] = []

        async def wait(self, what: str) -> float:
            self.waits.append(what)
            return 0.0

    async def main() -> None:
        async with serving() as served:
            bucket = Bucket()
            async with transport(served.config(qps=1000.0, burst=1), limiter=bucket) as sender:
                await get(sender, "/a")
                await get(sender, "/watch", stream=True)
            assert bucket.waits == [f"GET {sender.host}/a"]
            async with transport(served.config(qps=20.0, burst=1)) as sender:
                begun = World.real().clock.monotonic()
                for _ in range(3):
                    await get(sender)
                assert World.real().clock.monotonic() - begun >= 0.09

    run(main())


async def _chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], []),
        ([b""], []),
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a\n\nb"], [b"a", b"", b"b"]),
        ([b"a", b"b", b"\nc", b"\n"], [b"ab", b"c"]),
        ([b"a\nb", b"c"], [b"a", b"bc"]),
    ],
)
def test_lines_are_put_together_from_chunks_of_any_size(parts: list[bytes], expected: list[bytes]) -> None:
    async def main() -> list[bytes]:
        return [line async for line in lines(_chunks(*parts))]

    assert run(main()) == expected


def test_an_unterminated_line_is_rejected() -> None:
    async def main() -> None:
        async for _ in lines(_chunks(*[b"x" * 10] * 20), longest=100):
            raise AssertionError

    with pytest.raises(ResponseTooLarge, match="longer than 100 bytes"):
        run(main())


def test_the_target_of_a_request_is_path_and_query() -> None:
    assert Request("GET", "/a").target == "/a"
    assert Request("GET", "/a", [("b", "c d"), ("b", "=")]).target == "/a?b=c+d&b=%3D"


def test_insecure_connections_are_warned_of_each_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving() as served:
            for _ in range(2):
                async with transport(served.config(tls={"ca_data": b"", "insecure": True})) as sender:
                    assert await get(sender) == b"hello"

    with caplog.at_level(logging.WARNING):
        run(main())
    assert caplog.text.count("server certificate is not verified") == 2
