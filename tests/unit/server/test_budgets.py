"""What the API server spends on a request: objects decoded and encoded, transactions; counted instead of timed.

A larger number is a slower server. A change that needs more must say why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stage.api import APPLY, MERGE, Api, asking
from tests.stage.server import started_server

from ostinato.api.wire import json as wire
from ostinato.server.request import Request, Stream, User
from ostinato.server.resources import resource
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Write
from ostinato.server.verbs import write
from ostinato.server.verbs.watch_writer import WatchWriter
from ostinato.world import World

MAPS = "/api/v1/namespaces/default/configmaps"
CREATES = 100
WATCHERS = 20
_LEAST = 300  # bytes: objects of these tests are larger, options and metadata of lists are smaller
_TEXT = "x" * _LEAST


class Counts:
    """JSON texts of the size of an object that were decoded and encoded."""

    decoded = 0
    encoded = 0

    def take(self) -> tuple[int, int]:
        """Return the counts since the last call: decoded, encoded."""
        found = self.decoded, self.encoded
        self.decoded = self.encoded = 0
        return found


# The decoders and encoders of objects on the way of a request.
_DECODERS = ((msgspec.json, "decode"), (resource, "_decode"), (wire, "_decode"))
_ENCODERS = ((msgspec.json, "encode"), (write, "_encode"), (wire, "_encode"))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    found = Counts()

    def counting_decode(decode: Callable[..., Any]) -> Callable[..., Any]:
        def counted(data: bytes, **options: Any) -> Any:
            found.decoded += len(data) > _LEAST
            return decode(data, **options)

        return counted

    def counting_encode(encode: Callable[..., bytes]) -> Callable[..., bytes]:
        def counted(value: Any, **options: Any) -> bytes:
            data = encode(value, **options)
            found.encoded += len(data) > _LEAST
            return data

        return counted

    for module, name in _DECODERS:
        monkeypatch.setattr(module, name, counting_decode(getattr(module, name)))
    for module, name in _ENCODERS:
        monkeypatch.setattr(module, name, counting_encode(getattr(module, name)))
    return found


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"text": _TEXT, **data}}


async def send(api: Api, method: str, path: str, sent: Any = None, media: str = "application/json") -> None:
    """Send a request without decoding its response."""
    body = b"" if sent is None else msgspec.json.Encoder().encode(sent)

    async def read() -> bytes:
        return body

    path, _, query = path.partition("?")
    headers = {"authorization": "Bearer admin", "content-type": media, "user-agent": "test/1"}
    answer = await api.server.handle(Request(method, path, query, headers, read))
    assert not isinstance(answer, Stream)
    assert answer.status < 300, answer.body


def test_reads_decode_and_encode_no_object(counts: Counts) -> None:
    @asking
    async def talk(api: Api) -> None:
        for name in "abc":
            await send(api, "POST", MAPS, config_map(name))
        counts.take()
        for path in (f"{MAPS}/a", MAPS, "/api/v1/configmaps?limit=2", f"{MAPS}?resourceVersion=0"):
            await send(api, "GET", path)
            assert counts.take() == (0, 0), path

    talk()


def test_a_write_decodes_and_encodes_each_object_as_rarely_as_possible(counts: Counts) -> None:
    @asking
    async def talk(api: Api) -> None:
        await send(api, "POST", MAPS, config_map("first"))
        await send(api, "PATCH", f"{MAPS}/first", {"data": {"key": "0"}}, MERGE)
        await send(api, "PATCH", f"{MAPS}/applied?fieldManager=test", config_map("applied"), APPLY)
        counts.take()
        await send(api, "POST", MAPS, config_map("a"))
        assert counts.take() == (1, 2), "the body, encoded to detect duplicate keys; the response is what is stored"
        await send(api, "PUT", f"{MAPS}/a", config_map("a", key="1"))
        assert counts.take() == (2, 2), "the body, encoded as above; the stored object"
        await send(api, "PATCH", f"{MAPS}/a", {"data": {"key": "2"}}, MERGE)
        assert counts.take() == (1, 1), "the stored object"
        await send(api, "PATCH", f"{MAPS}/a", {"data": {"key": "2"}}, MERGE)
        assert counts.take() == (1, 2), "the stored object, compared with what it would become"
        await send(api, "DELETE", f"{MAPS}/a")
        assert counts.take() == (1, 0), "the stored object; the response is a Status"

    talk()


def test_an_event_is_encoded_once_for_all_watchers(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    framed = 0
    frame = WatchWriter._framed

    def counted(writer: WatchWriter, kind: str, body: bytes) -> bytes:
        nonlocal framed
        framed += 1
        return frame(writer, kind, body)

    monkeypatch.setattr(WatchWriter, "_framed", counted)

    @asking
    async def talk(api: Api) -> None:
        nonlocal framed
        headers = {"authorization": "Bearer admin", "user-agent": "test/1"}
        streams = []
        for _ in range(WATCHERS):
            stream = await api.server.handle(Request("GET", MAPS, "watch=1", headers))
            assert isinstance(stream, Stream)
            streams.append(stream)
        chunks = [asyncio.ensure_future(anext(aiter(each.chunks))) for each in streams]
        counts.take()
        framed = 0
        await send(api, "POST", MAPS, config_map("a"))
        assert len({await each for each in chunks}) == 1
        assert framed == 1
        assert counts.take() == (1, 2), "of the create"
        for each in streams:
            await each.chunks.aclose()

    talk()


def test_concurrent_creates_share_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction is synced to disk once. Writes that arrive during one share the next."""
    batches: list[int] = []
    gate = asyncio.Event()
    append = SQLiteLog.append

    async def gated(log: SQLiteLog, writes: Sequence[Write]) -> None:
        batches.append(len(writes))
        await gate.wait()
        await append(log, writes)

    async def talk() -> None:
        world = World.real()
        async with started_server(world, SQLiteLog(tmp_path / "store", world)) as server:
            await server.index.wait_pending()
            monkeypatch.setattr(SQLiteLog, "append", gated)
            server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
            api = Api(server)
            creates = [asyncio.ensure_future(send(api, "POST", MAPS, config_map(f"m-{n}"))) for n in range(CREATES)]
            await _until(lambda: sum(batches) + len(server.index._queue) == CREATES)
            gate.set()
            await asyncio.gather(*creates)
            assert sum(batches) == CREATES
            assert len(batches) <= 2, "those that arrive before the first transaction begins, and the others"
        world.executor.close()

    asyncio.run(talk())


async def _until(holds: Callable[[], bool]) -> None:
    while True:
        if holds():
            return
        await asyncio.sleep(0)
