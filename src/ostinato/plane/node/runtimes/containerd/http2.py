"""HTTP/2 connection for gRPC, with concurrent calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Final
from urllib.parse import unquote

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error, StreamClosedError

_UNAVAILABLE: Final = 14
_CHUNK: Final = 64 * 1024


class RpcError(Exception):
    """A failed call: gRPC status code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Call:
    """A call in progress, with received data that was not read yet."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.headers: dict[str, str] = {}  # headers and trailers
        self.chunks: deque[tuple[bytes, int]] = deque()  # data and its flow-controlled size
        self.is_ended = False  # the server has ended the stream
        self.error: RpcError | None = None
        self.news = asyncio.Event()

    @property
    def message(self) -> str:
        """The error message of the trailers."""
        return unquote(self.headers.get("grpc-message", ""))


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        self._reader = reader
        self._writer = writer
        self._peer = peer
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._calls: dict[int, Call] = {}  # by stream
        self._window = asyncio.Event()  # set when the send window may have grown
        self.is_closed = False  # no new calls
        self._http.initiate_connection()
        self._flush()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    def begin(self, method: str) -> Call:
        headers = (
            *((":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost")),
            *(("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", "ostinato")),
        )
        try:
            call = Call(self._http.get_next_available_stream_id())
            self._http.send_headers(call.stream, headers)
        except H2Error as error:  # stream ids exhausted, or too many streams
            raise RpcError(_UNAVAILABLE, f"{self._peer}: {error}") from None
        self._calls[call.stream] = call
        self._flush()
        return call

    async def send(self, call: Call, data: bytes) -> None:
        """Send the request; stop early if the server ends the call first."""
        while not call.is_ended:
            try:
                room = min(self._http.local_flow_control_window(call.stream), self._http.max_outbound_frame_size)
                if room > 0:
                    part, data = data[:room], data[room:]
                    self._http.send_data(call.stream, part, end_stream=not data)
            except StreamClosedError:
                return
            self._flush()
            if not data:
                return
            if room <= 0:
                self._window.clear()
                await self._window.wait()
            else:
                with contextlib.suppress(OSError):  # the reader reports it
                    await self._writer.drain()

    async def receive(self, call: Call) -> bytes | None:
        """Return the next data; None when the server has ended the call."""
        while not call.chunks:
            if call.error is not None:
                raise call.error
            if call.is_ended:
                return None
            call.news.clear()
            await call.news.wait()
        data, size = call.chunks.popleft()
        self._taken(call.stream, size)
        return data

    def end(self, call: Call) -> None:
        """Release a call; reset its stream if it has not ended."""
        self._calls.pop(call.stream, None)
        for _, size in call.chunks:
            self._taken(call.stream, size)
        if not call.is_ended:
            with contextlib.suppress(H2Error):
                self._http.reset_stream(call.stream, ErrorCodes.CANCEL)
            self._flush()

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _taken(self, stream: int, size: int) -> None:
        if size and not self._writer.is_closing():
            with contextlib.suppress(H2Error):
                self._http.acknowledge_received_data(size, stream)
            self._flush()

    def _flush(self) -> None:
        data = self._http.data_to_send()
        if data and not self._writer.is_closing():
            self._writer.write(data)

    async def _read(self) -> None:
        why = "connection closed"
        try:
            while data := await self._reader.read(_CHUNK):
                for event in self._http.receive_data(data):
                    self._handle(event)
                self._flush()
        except (OSError, H2Error) as error:
            why = str(error)
        finally:
            self.is_closed = True
            for call in self._calls.values():
                self._ended(call, RpcError(_UNAVAILABLE, f"{self._peer}: {why}"))
            self._window.set()
            self._writer.close()

    def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.WindowUpdated | events.RemoteSettingsChanged):
            self._window.set()
        elif isinstance(event, events.ConnectionTerminated):
            self.is_closed = True  # calls in progress continue
        elif isinstance(event, events.DataReceived):
            call = self._calls.get(event.stream_id)
            if call is None:
                self._taken(event.stream_id, event.flow_controlled_length)
            else:
                call.chunks.append((event.data, event.flow_controlled_length))
                call.news.set()
        elif isinstance(event, events.ResponseReceived | events.TrailersReceived):
            if event.stream_id in self._calls:
                self._calls[event.stream_id].headers.update((str(name), str(value)) for name, value in event.headers)
        elif isinstance(event, events.StreamEnded) and event.stream_id in self._calls:
            self._ended(self._calls[event.stream_id])
        elif isinstance(event, events.StreamReset) and event.stream_id in self._calls:
            error = RpcError(_UNAVAILABLE, f"{self._peer}: stream reset by the server, error code {event.error_code}")
            self._ended(self._calls[event.stream_id], error)

    def _ended(self, call: Call, error: RpcError | None = None) -> None:
        if not call.is_ended:
            call.is_ended = True
            call.error = error
            call.news.set()
            self._window.set()
