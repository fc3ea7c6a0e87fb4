"""Malformed bytes on the wire: HTTP heads and chunked bodies, WebSocket and SPDY frames, to a server that listens.

    PYTHONPATH=src python -m tests.fuzz.wire --connections 10000 --seed 1

Each connection sends something that is nearly right, in pieces, and then says that it is done. The server must end it
in time, never fail of itself, and keep nothing of it: no task, no descriptor, no connection.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast

from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.server.core import Server
from ostinato.server.http import HttpServer
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.streams.spdy_frames import FrameWriter, data_frame, go_away, ping, reset
from ostinato.world import World
from tests.fuzz.mutate import Mutator
from tests.unit.plane.node.server.streaming import Stage as NodeStage

PATIENCE = 20.0  # seconds in which a connection must be over after its client is done
AT_ONCE = 16  # connections that are open at a time
_ADMIN = b"Host: a\r\nAuthorization: Bearer admin\r\n"
_MAPS = b"/api/v1/namespaces/default/configmaps"
_POD = b"/api/v1/namespaces/default/pods/p"
_WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def masked(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A frame of a client."""
    mask = b"\x01\x02\x03\x04"
    size = bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    hidden = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return bytes(((0x80 if final else 0) | opcode,)) + size + mask + hidden


def _spdy(*types: str) -> bytes:
    writer, frames = FrameWriter(), b""
    for number, kind in enumerate(types):
        frames += writer.open(2 * number + 1, {"streamtype": kind, "port": "80", "requestid": "0"})
    frames += (
        data_frame(1, b"hello") + data_frame(3, b"\x00" * 300, last=True) + ping(1) + data_frame(1, b"", last=True)
    )
    return frames + reset(5, 5) + go_away(7)


def _websocket(path: bytes, protocol: bytes, *frames: bytes) -> tuple[bytes, bytes]:
    head = (
        b"GET " + path + b" HTTP/1.1\r\n" + _ADMIN + _WEBSOCKET + b"Sec-WebSocket-Protocol: " + protocol + b"\r\n\r\n"
    )
    return head, b"".join(frames)


def _upgrade(path: bytes, protocols: bytes, frames: bytes) -> tuple[bytes, bytes]:
    head = b"POST " + path + b" HTTP/1.1\r\n" + _ADMIN + b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    return head + b"X-Stream-Protocol-Version: " + protocols + b"\r\n\r\n", frames


_BODY = b'{"metadata":{"name":"a"},"data":{"k":"v"}}'
_SIZE = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY)
_CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
_CHUNKS = b"A\r\n" + _BODY[:10] + b"\r\n%x;x=y\r\n" % len(_BODY[10:]) + _BODY[10:] + b"\r\n0\r\nTrailer: x\r\n\r\n"
_STREAMS = b"stdin=1&stdout=1&stderr=1"
_FRAMES = (
    masked(2, b"\x00input"),
    masked(2, b'\x04{"Width":80,"Height":24}'),
    masked(2, b"\xff\x00"),
    masked(9, b"ping"),
    masked(2, b"\x00" * 300, final=False),
    masked(0, b"rest"),
    masked(8, b"\x03\xe8"),
)
# A head, and what follows it once the server has answered: both are mutated, mostly one of them.
SEEDS: dict[str, list[tuple[bytes, bytes]]] = {
    "http": [
        (b"GET " + _MAPS + b"/a HTTP/1.1\r\n" + _ADMIN + b"\r\n", b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"),
        (b"GET " + _MAPS + b"?watch=1&timeoutSeconds=1 HTTP/1.1\r\n" + _ADMIN + b"\r\n", b""),
        (b"HEAD /readyz?verbose HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", b""),
        (b"POST " + _MAPS + b" HTTP/1.1\r\n" + _ADMIN + _SIZE, _BODY),
        (b"POST " + _MAPS + b"?dryRun=All HTTP/1.1\r\nExpect: 100-continue\r\n" + _ADMIN + _SIZE, _BODY),
        (
            b"PUT " + _MAPS + b"/a HTTP/1.1\r\n" + _ADMIN + _CHUNKED + b"\r\n",
            _CHUNKS + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        (b"POST " + _MAPS + b" HTTP/1.1\r\n" + _ADMIN + _CHUNKED + b"Content-Length: 5\r\n\r\n", _CHUNKS),
    ],
    "websocket": [
        _websocket(_MAPS + b"?watch=1&timeoutSeconds=1", b"binary.k8s.io", masked(1, b"x"), masked(8, b"\x03\xe8")),
        _websocket(_POD + b"/exec?command=echo&container=c&" + _STREAMS, b"v5.channel.k8s.io", *_FRAMES),
        _websocket(_POD + b"/exec?command=echo&container=c&" + _STREAMS, b"base64.channel.k8s.io", masked(1, b"0aGk=")),
        _websocket(_POD + b"/attach?container=c&stdin=1&stdout=1", b"v4.channel.k8s.io", *_FRAMES),
        _websocket(_POD + b"/portforward?ports=80&ports=81", b"v4.channel.k8s.io", *_FRAMES),
        _websocket(_POD + b"/portforward", b"SPDY/3.1+portforward.k8s.io", masked(2, _spdy("error", "data"))),
    ],
    "spdy": [
        _upgrade(
            _POD + b"/exec?command=echo&container=c&" + _STREAMS,
            b"v4.channel.k8s.io",
            _spdy("error", "stdin", "stdout"),
        ),
        _upgrade(
            _POD + b"/exec?command=echo&container=c&stdin=1&tty=1", b"channel.k8s.io", _spdy("error", "stdin", "resize")
        ),
        _upgrade(_POD + b"/attach?container=c&stdout=1", b"v3.channel.k8s.io", _spdy("error", "stdout")),
        _upgrade(_POD + b"/portforward", b"portforward.k8s.io", _spdy("error", "data", "error", "data")),
    ],
}


class Report:
    """What came of it."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.faults: list[str] = []

    @property
    def connections(self) -> int:
        return sum(self.answers.values())


class _Errors(logging.Handler):
    def __init__(self, report: Report) -> None:
        super().__init__(logging.ERROR)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report.faults.append(logging.Formatter().format(record))


class WireFuzzer:
    def __init__(self, port: int, seed: object) -> None:
        self.report = Report()
        self._port = port
        self._mutator = Mutator(seed)
        self._rng = self._mutator.rng

    async def run(self, sort: str, count: int) -> Report:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(head: bytes, rest: bytes) -> None:
            async with gate:
                await self._talk(head, rest)

        await asyncio.gather(*(one(*self._spoilt(*self._rng.choice(SEEDS[sort]))) for _ in range(count)))
        return self.report

    def _spoilt(self, head: bytes, rest: bytes) -> tuple[bytes, bytes]:
        share = 0.85 if rest else 0.0
        if self._rng.random() < (share if b"Upgrade" in head else 0.5 * share):
            return head, self._mutator.data(rest, 10)
        return self._mutator.data(head, 4), rest

    async def _talk(self, head: bytes, rest: bytes) -> None:
        shown = f"{head!r} {rest[:500]!r}"
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            answer = await asyncio.wait_for(self._exchange(reader, writer, head, rest), PATIENCE)
        except TimeoutError:
            self.report.answers["hang"] += 1
            self.report.faults.append(f"the connection hangs: {shown}")
        except OSError:
            self.report.answers["reset"] += 1
        else:
            status = answer.split(b" ", 2)[1].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "none"
            self.report.answers[status] += 1
            if status == "500" and b"unexpected EOF" not in answer:  # which is what the client did
                self.report.faults.append(f"{answer[-300:]!r}: {shown}")
        finally:
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, rest: bytes
    ) -> bytes:
        for piece in self._pieces(head):
            writer.write(piece)
            await writer.drain()
        answer = b""
        if b"Upgrade" in head:  # what follows is for the upgraded connection
            answer = await self._until_answered(reader)
        for piece in self._pieces(rest):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        return answer + await reader.read(-1)

    async def _until_answered(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await asyncio.wait_for(reader.read(4096), 0.2)
        except TimeoutError:
            return b""  # the head is not whole

    def _pieces(self, data: bytes) -> list[bytes]:
        if self._rng.random() < 0.6 or len(data) < 2:
            return [data] if data else []
        cut = self._rng.randrange(1, len(data))
        return [data[:cut], data[cut:]]


class _Node(NodeStage):
    """A node whose containers the fuzzer plays, on a server in real time."""

    def __init__(self, world: World, server: Server) -> None:
        super().__init__(cast("Any", world), server, None)
        self.streams = PodStreams(world, self.find, {"n": cast("Any", self.runtime)}, None)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


async def attack(count: int, seed: object) -> Report:
    """So many connections, shared among the sorts."""
    world = World.real(workers=1)
    server = Server(world, MemoryLog())
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    await server.start()
    node = _Node(world, server)
    await node.begin()
    http = HttpServer(server, None)
    await http.start("127.0.0.1", 0)
    fuzzer = WireFuzzer(http.port, seed)
    errors = _Errors(fuzzer.report)
    logging.getLogger().addHandler(errors)
    try:
        await fuzzer.run("http", 20)  # what is loaded with the first requests is there now
        tasks, descriptors = len(asyncio.all_tasks()), _descriptors()
        for sort in SEEDS:
            await fuzzer.run(sort, count // len(SEEDS))
        await _left_over(fuzzer.report, http, tasks, descriptors)
    finally:
        logging.getLogger().removeHandler(errors)
        await http.stop()
        await server.close()
        world.executor.close()
    return fuzzer.report


async def _left_over(report: Report, http: HttpServer, tasks: int, descriptors: int) -> None:
    """Whatever a connection had must go with it, soon."""
    for _ in range(100):
        gc.collect()
        left = [task.get_name() for task in asyncio.all_tasks()]
        if len(left) <= tasks and _descriptors() <= descriptors and not http._connections:
            return
        await asyncio.sleep(0.1)
    report.faults.append(f"left: {len(left) - tasks} tasks, {_descriptors() - descriptors} descriptors: {left[:10]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="send malformed bytes to a server that listens")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    report = asyncio.run(attack(options.connections, options.seed))
    answers = ", ".join(f"{status}: {count}" for status, count in sorted(report.answers.items()))
    print(f"{report.connections} connections ({answers}); {len(report.faults)} faults")
    for fault in report.faults[:20]:
        print(fault[:4000], "\n")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
