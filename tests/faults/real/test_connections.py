"""Connections that end at any byte, of requests and of watches; and readers that are as slow as possible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tests.faults.real.https import Address, Connection, HttpsApi, OneByteApi
from tests.faults.workload.api import decode_event, decode_list, decode_object
from tests.stage.server import standalone_server

_MAPS = "/api/v1/namespaces/default/configmaps"
_STEP = 7  # by which pieces grow, once the first event is whole


@asynccontextmanager
async def _api(tmp_path: Path, kind: type[HttpsApi] = HttpsApi) -> AsyncIterator[HttpsApi]:
    async with standalone_server(tmp_path / "state") as server:
        address = Address.of(server.kubeconfig)
        up = asyncio.Event()
        up.set()
        api = kind(lambda: address, up)
        yield api
        await api.lose_connections()


def _over_https(kind: type[HttpsApi] = HttpsApi) -> Callable[..., Callable[[Path], None]]:
    def decorate(test: Callable[[HttpsApi], Awaitable[None]]) -> Callable[[Path], None]:
        def run(tmp_path: Path) -> None:
            async def main() -> None:
                async with _api(tmp_path, kind) as api:
                    await test(api)

            asyncio.run(main())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def _body(name: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": name}, "data": {"value": "1"}})


async def _create(api: HttpsApi, name: str) -> int:
    status, data = await api.call("POST", _MAPS, "", _body(name))
    assert status == 201, data
    return decode_object(data).version


@_over_https()
async def test_a_watch_that_is_cut_at_any_byte_resumes_without_a_gap(api: HttpsApi) -> None:
    """Each connection reads more bytes than the one before it, and resumes after the last whole event."""
    first = await _create(api, "first")
    wanted = [await _create(api, f"m{number}") for number in range(80)]
    position, length = first, 1
    seen: list[int] = []
    while len(seen) < 60:  # the others are there to be cut
        connection = await api.connect()
        connection.send("GET", f"{_MAPS}?watch=1&resourceVersion={position}")
        await connection.head()
        data = await _read(connection, length)
        connection.abort()
        for line in data.split(b"\n")[:-1]:
            if line.startswith(b'{"type'):
                position = decode_event(line).object.version
                seen.append(position)
        length = length + _STEP if seen else length + 1  # every byte of the first event, then longer pieces
    assert seen == wanted[: len(seen)]


async def _read(connection: Connection, length: int) -> bytes:
    """So many bytes of the body, without the sizes of its chunks."""
    data = b""
    while len(data) < length:
        size = int(await connection.reader.readuntil(b"\r\n"), 16)
        data += (await connection.reader.readexactly(size + 2))[:-2]
    return data[:length]


@_over_https()
async def test_a_request_that_is_cut_at_any_byte_happens_once_or_never(api: HttpsApi) -> None:
    """Only the whole request happens, with or without a reader of its answer; the server serves the next."""
    body = _body("cut-000")
    headers = f"Host: server\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    head = f"POST {_MAPS} HTTP/1.1\r\n{headers}\r\n"
    whole = len(head) + len(body)
    for end in range(1, whole + 1):
        connection = await api.connect()
        request = head.encode() + _body(f"cut-{end:03}")
        connection.writer.write(request[:end])
        await connection.writer.drain()
        if end == whole:
            await connection.head()
        connection.writer.close()
    _, data = await api.call("GET", _MAPS)
    found = [item.metadata.name for item in decode_list(data).items]
    assert [name for name in found if name.startswith("cut-")] == [f"cut-{whole:03}"]


@_over_https(OneByteApi)
async def test_a_reader_of_one_byte_at_a_time_gets_every_event(api: HttpsApi) -> None:
    other = HttpsApi(api.address, api.up)
    first = await _create(other, "first")
    wanted: list[int] = []

    async def write() -> None:
        for number in range(40):
            wanted.append(await _create(other, f"m{number}"))  # noqa: PERF401 - one by one

    writing = asyncio.create_task(write())
    seen, line = [], b""
    async for byte in api.stream(_MAPS, f"watch=1&resourceVersion={first}", lambda status: None):
        assert len(byte) == 1
        line += byte
        if byte == b"\n":
            seen.append(decode_event(line).object.version)
            line = b""
            if len(seen) == 40:
                break
    await writing
    assert seen == wanted
    await other.lose_connections()
