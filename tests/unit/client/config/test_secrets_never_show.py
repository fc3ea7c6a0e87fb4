"""Whatever goes wrong, no token, password or key is in an error, in what led to it, or in a log line."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.client.http import certificates
from tests.unit.client.http.servers import Socket as Listener
from tests.unit.client.http.servers import listening, run, server_context, serving, transport, written

from ostinato.client.config.config import Config, ExecPlugin, Tls
from ostinato.client.config.secret import Secret
from ostinato.client.transport.protocol import Request

SECRET = "s3cret-that-nobody-may-see"
EXEC = Request("GET", "/exec", stream=True)

Failing = Callable[[Path], Any]


def everything_about(error: BaseException) -> Iterator[str]:
    """An error and all that led to it: as text, as repr, with its arguments and attributes."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        found = pending.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield from (str(found), repr(found), repr(found.args), repr(vars(found)))
        pending += [found.__cause__, found.__context__]
    yield "".join(traceback.format_exception(error))


async def _fails(config: Config, request: Request) -> None:
    async with transport(config) as sender:
        if request is EXEC:
            await sender.websocket(request, ["v4.channel.k8s.io"])
        response = await sender.request(request)
        await response.read()
        raise AssertionError("it did not fail")


def answering(data: bytes) -> Any:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(data)
        await writer.drain()

    return converse


def https(listener_port: int, **changes: Any) -> Config:
    return Config(server=f"https://127.0.0.1:{listener_port}", environment_proxies=False, **changes)


TOKEN: dict[str, Any] = {"token": Secret(SECRET)}


async def nothing_listens(_directory: Path) -> None:
    await _fails(https(1, **TOKEN), Request("GET", "/"))


async def another_authority(_directory: Path) -> None:
    async with serving() as served:
        other = certificates.authority("other").pem
        await _fails(served.config(tls={"ca_data": other}, **TOKEN), Request("PUT", "/", body=SECRET.encode()))


@asynccontextmanager
async def answering_over_tls(data: bytes) -> AsyncIterator[Config]:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=server_context(certificates.server()))
    try:
        port = server.sockets[0].getsockname()[1]
        yield https(port, tls=Tls(ca_data=certificates.authority().pem), **TOKEN)
    finally:
        server.close()


async def no_http_at_all(_directory: Path) -> None:
    async with answering_over_tls(b"nonsense\r\n\r\n") as config:
        await _fails(config, Request("POST", "/"))


async def a_websocket_without_a_handshake(_directory: Path) -> None:
    handshake = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    async with answering_over_tls(handshake) as config:
        await _fails(config, EXEC)


async def a_proxy_refuses(_directory: Path) -> None:
    async with listening(answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) as socket:
        proxy = Secret(f"http://u:{SECRET}@127.0.0.1:{socket.port}")
        await _fails(https(1, proxy=proxy, **TOKEN), Request("GET", "/"))


async def a_websocket_is_refused(_directory: Path) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=403)

    async with serving(answer) as served:
        await _fails(served.config(**TOKEN), EXEC)


async def time_runs_out(_directory: Path) -> None:
    async def answer(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(answer) as served:
        await _fails(served.config(**TOKEN), Request("GET", "/", timeout=0.05))


async def the_answer_is_cut(_directory: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return stream

    async with serving(answer) as served:
        await _fails(served.config(**TOKEN), Request("GET", "/"))


async def a_token_file_breaks_headers(directory: Path) -> None:
    async with serving() as served:
        token = written(directory, "token", f"{SECRET}\r\nX: y".encode())
        await _fails(served.config(token_file=token), Request("GET", "/"))


async def a_key_is_no_key(_directory: Path) -> None:
    async with serving() as served:
        pem = certificates.client("me").pem
        await _fails(served.config(tls={"certificate_data": pem, "key_data": Secret(SECRET)}), Request("GET", "/"))


async def a_plugin_prints_too_much_of_it(directory: Path) -> None:
    path = written(directory, "plugin", f"#!{sys.executable}\nprint({json.dumps({'token': SECRET})!r})\n".encode())
    path.chmod(0o755)
    plugin = ExecPlugin(command=str(path), args=(SECRET,), env=(("A", Secret(SECRET)),), interactive_mode="Never")
    async with serving() as served:
        await _fails(served.config(exec_plugin=plugin), Request("GET", "/"))


async def a_plugin_fails(directory: Path) -> None:
    path = written(directory, "plugin", f"#!{sys.executable}\nimport sys\nsys.exit(1)\n".encode())
    path.chmod(0o755)
    plugin = ExecPlugin(command=str(path), args=(SECRET,), env=(("A", Secret(SECRET)),), interactive_mode="Never")
    async with serving() as served:
        await _fails(served.config(exec_plugin=plugin), Request("GET", "/"))


async def a_kubeconfig_is_wrong(directory: Path) -> None:
    user = {"token": SECRET, "password": SECRET, "client-key-data": SECRET, "exec": {"args": [SECRET]}}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"https://u:{SECRET}@h", "proxy-url": f"x://u:{SECRET}@h"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    Config.load(path=written(directory, "config", json.dumps(content).encode()))


FAILURES: list[Failing] = [
    nothing_listens,
    another_authority,
    no_http_at_all,
    a_websocket_without_a_handshake,
    a_proxy_refuses,
    a_websocket_is_refused,
    time_runs_out,
    the_answer_is_cut,
    a_token_file_breaks_headers,
    a_key_is_no_key,
    a_plugin_prints_too_much_of_it,
    a_plugin_fails,
    a_kubeconfig_is_wrong,
]


@pytest.mark.parametrize("failing", FAILURES, ids=lambda failing: failing.__name__)
def test_when_something_fails_no_secret_shows(
    failing: Failing, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        run(failing(tmp_path))
    assert not isinstance(caught.value, AssertionError)
    for text in everything_about(caught.value):
        assert SECRET not in text
    assert SECRET not in caplog.text
