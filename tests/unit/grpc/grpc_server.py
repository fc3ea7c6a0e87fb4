"""A minimal gRPC server over a Unix socket, for tests of the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection


class Exchange:
    """One call, as the server sees it."""

    def __init__(self, server: GrpcServer, http: H2Connection, stream: int, method: str) -> None:
        self.method = method
        self.request = bytearray()
        self.asked = asyncio.Event()  # all of the request is there
        self.is_cancelled = False
        self.news = asyncio.Event()  # it may write more, or was cancelled
        self._server = server
        self._http = http
        self._stream = stream

    async def answer(self, *messages: bytes, status: int = 0, message: str = "") -> None:
        self._http.send_headers(self._stream, [(":status", "200"), ("content-type", "application/grpc")])
        for each in messages:
            await self.send(each)
        trailers = [("grpc-status", str(status)), *([("grpc-message", message)] if message else [])]
        self._http.send_headers(self._stream, trailers, end_stream=True)
        self._server.flush(self._http)

    async def send(self, message: bytes) -> None:
        data = b"\0" + len(message).to_bytes(4, "big") + message
        while data and not self.is_cancelled:
            room = min(self._http.local_flow_control_window(self._stream), self._http.max_outbound_frame_size)
            if room <= 0:
                self.news.clear()
                await self.news.wait()
                continue
            self._http.send_data(self._stream, data[:room])
            self._server.flush(self._http)
            data = data[room:]


Serve = Callable[[Exchange], Awaitable[None]]


class GrpcServer:
    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.exchanges: list[Exchange] = []
        self.connections = 0

    def flush(self, http: H2Connection) -> None:
        data = http.data_to_send()
        if data and not self._writers[id(http)].is_closing():
            self._writers[id(http)].write(data)

    def hang_up(self) -> None:
        for writer in self._writers.values():
            writer.close()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        http = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._writers[id(http)] = writer
        http.initiate_connection()
        self.flush(http)
        calls: dict[int, Exchange] = {}
        while data := await reader.read(65536):
            for event in http.receive_data(data):
                self._handle(http, calls, event)
            self.flush(http)
        writer.close()

    def _handle(self, http: H2Connection, calls: dict[int, Exchange], event: events.Event) -> None:
        if isinstance(event, events.RequestReceived):
            method = dict(event.headers)[":path"]
            call = calls[event.stream_id] = Exchange(self, http, event.stream_id, str(method))
            self.exchanges.append(call)
            task = asyncio.get_running_loop().create_task(self._begin(call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(event, events.DataReceived):
            calls[event.stream_id].request += event.data
            http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, events.StreamEnded):
            calls[event.stream_id].asked.set()
        elif isinstance(event, events.StreamReset):
            calls[event.stream_id].is_cancelled = True
        for call in calls.values():
            call.news.set()

    async def _begin(self, call: Exchange) -> None:
        await call.asked.wait()
        await self._serve(call)


@contextlib.asynccontextmanager
async def serving(path: Path, serve: Serve) -> AsyncIterator[GrpcServer]:
    server = GrpcServer(serve)
    listening = await asyncio.start_unix_server(server.connected, path)
    try:
        yield server
    finally:
        server.hang_up()
        listening.close()
        await listening.wait_closed()
