"""HTTP/2 connection of a gRPC client, for many concurrent calls.

- The requests of one turn of the event loop leave in one write. Calls beyond the server's limit of streams wait.
- Flow control follows the reader, for each stream. Messages may be larger than any window.
- A peer that stops answering is noticed: while calls are open, silence is followed by a PING, and a PING without an
  answer by the end of the connection.
- A call that fails reports whether the server may have run it (`RpcError.may_have_run`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from ostinato.grpc import frames
from ostinato.grpc.calls import Call, Stream, framed, status_error
from ostinato.grpc.frames import FrameError, frame
from ostinato.grpc.hpack import HeaderError, decode_headers
from ostinato.grpc.sending import Outgoing
from ostinato.grpc.status import Code, RpcError
from ostinato.world import Clock
from ostinato.world.clock import Timer

_CONNECTION_WINDOW: Final = 1 << 30
_MAX_HEADERS: Final = 1 << 16
_CACHED_BLOCKS: Final = 256
_TICK: Final = 1.0  # seconds between looks at the peer
_TOLERANCE: Final = 0.001  # seconds by which a call may end before its deadline
_PONG_SECONDS: Final = 0.05  # that a PING of the peer waits for its answer


@dataclass(frozen=True)
class Limits:
    """Limits of a connection."""

    message: int = 16 << 20  # bytes of a message
    window: int = 4 << 20  # bytes that a stream may send ahead of its reader
    silence: int = 2  # seconds without a byte before a PING; 0: no PINGs
    ping_interval: int = 6  # seconds between two PINGs at least: servers end connections that send more
    ping_timeout: int = 3  # seconds without a byte after a PING before the connection is given up


class Connection(asyncio.Protocol):
    """One connection; see the module."""

    def __init__(self, clock: Clock, peer: str, limits: Limits) -> None:
        self.limits = limits
        self.is_closed = False  # no new calls
        self.why = "connection closed"
        self._clock = clock
        self._peer = peer
        self._transport: asyncio.Transport | None = None
        self._out = Outgoing(self._write)
        self._calls: dict[int, Call | Stream] = {}  # by stream
        self._waiting: deque[tuple[Call | Stream, bytes, bytes, bool]] = deque()  # for a free stream
        self._max_streams = 100  # until the server's settings say otherwise
        self._next_stream = 1
        self._rest = b""  # of the last read: an incomplete frame
        self._block = b""  # of the headers of _block_stream, which a CONTINUATION frame completes
        self._block_stream = 0
        self._block_ends = False
        self._blocks: dict[bytes, dict[str, str]] = {}  # decoded before
        self._unacknowledged = 0  # bytes of the connection's window
        self._heard = True  # a byte, since the last tick
        self._silent_ticks = 0
        self._ticks_since_ping = 1 << 30
        self._is_pinging = False
        self._ticker: Timer | None = None
        self._pongs: list[bytes] = []  # answers to PINGs, to be sent
        self._pong_timer: Timer | None = None
        self._deadlines: Timer | None = None
        self._checked_at = math.inf  # when the deadlines of calls are checked next
        self._is_retired = False
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()

    @property
    def has_ended(self) -> bool:
        """Whether it is closed and no call is in progress."""
        return self._closed.done()

    # Calls

    async def call(self, method: str, head: bytes, message: bytes, within: float) -> bytes:
        """Make a unary call. `head`: its encoded headers. Raises RpcError."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        call = self.begin(method, head, message, within, partial(_complete, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancel(call)
            raise

    def begin(
        self, method: str, head: bytes, message: bytes, within: float, on_end: Callable[[bytes | RpcError], None]
    ) -> Call:
        """Begin a unary call, without a task. `on_end`: called once with the response or the error, maybe at once."""
        deadline = self._clock.monotonic() + within
        call = Call(method, self.limits.message, within, deadline, on_end)
        if deadline < self._checked_at and not self.is_closed:
            self._check_deadlines_at(deadline)
        self._begin(call, head, framed(message), is_last=True)
        return call

    def flush(self) -> None:
        """Send what was begun in this turn of the event loop now."""
        self._out.flush()

    def stream(self, method: str, head: bytes, message: bytes, *, is_last: bool) -> Stream:
        """Begin a call with a first message."""
        stream = Stream(self, method, self.limits.message)
        self._begin(stream, head, framed(message), is_last=is_last)
        return stream

    def send(self, call: Stream, data: bytes, *, is_last: bool) -> None:
        """Send more data of a call."""
        for index, (waiting, head, first, _) in enumerate(self._waiting):
            if waiting is call:
                self._waiting[index] = call, head, first + data, is_last
                return
        self._out.data(call.stream, data, is_last=is_last)

    def cancel(self, call: Call | Stream) -> None:
        """End a call that the server has not ended."""
        if call.stream == 0:
            self._waiting = deque(each for each in self._waiting if each[0] is not call)
        elif self._calls.pop(call.stream, None) is not None:
            self._out.drop(call.stream)
            self._out.frame(frame(frames.RST_STREAM, 0, call.stream, frames.CANCEL.to_bytes(4, "big")))
            self._begin_waiting()
            self._close_if_unused()

    def acknowledge(self, call: Call | Stream, size: int) -> None:
        """Let the server send `size` more bytes of a call."""
        call.credit += size
        if call.credit >= self.limits.window // 2 and call.stream in self._calls:
            self._out.frame(frames.window_update(call.stream, call.credit))
            call.credit = 0

    async def ready(self) -> None:
        """Wait for the settings of the server. Raises RpcError if the connection is lost before."""
        await asyncio.shield(self._ready)
        if self.is_closed:
            raise self._lost(self.why, may_have_run=False)

    def retire(self) -> None:
        """Begin no more calls, and close when those in progress have ended."""
        self._is_retired = True
        self._drain("the connection is retired")
        self._close_if_unused()

    def abort(self) -> None:
        """Close the connection without waiting; calls in progress fail."""
        self._end("the client closed the connection")

    async def close(self) -> None:
        """Close the connection; calls in progress fail."""
        self._end("the client closed the connection")
        await asyncio.shield(self._closed)

    def _begin(self, call: Call | Stream, head: bytes, data: bytes, *, is_last: bool) -> None:
        if self.is_closed:
            call.ended(self._lost(self.why, may_have_run=False))
        elif len(self._calls) >= self._max_streams:
            self._waiting.append((call, head, data, is_last))
        else:
            self._open(call, head, data, is_last=is_last)

    def _open(self, call: Call | Stream, head: bytes, data: bytes, *, is_last: bool) -> None:
        call.stream = stream = self._next_stream
        self._next_stream += 2
        if self._next_stream >= frames.MAX_STREAM:
            self._drain("stream ids exhausted")
        self._calls[stream] = call
        self._out.request(stream, head, data, is_last=is_last)

    def _begin_waiting(self) -> None:
        while self._waiting and not self.is_closed and len(self._calls) < self._max_streams:
            call, head, data, is_last = self._waiting.popleft()
            self._open(call, head, data, is_last=is_last)

    def _check_deadlines_at(self, at: float) -> None:
        """Schedule a check. A timer for each call would cost more than the call's frames."""
        if self._deadlines is not None:
            self._deadlines.cancel()
        self._checked_at = at
        self._deadlines = self._clock.timer(at - self._clock.monotonic(), self._check_deadlines)

    def _check_deadlines(self) -> None:
        """End the calls whose time is over; check again at the next deadline."""
        self._checked_at, now = math.inf, self._clock.monotonic() + _TOLERANCE
        for call in self._pending():
            if isinstance(call, Call) and call.deadline <= now:
                self._expired(call)
        following = min((call.deadline for call in self._pending()), default=math.inf)
        if following < self._checked_at:
            self._check_deadlines_at(following)

    def _pending(self) -> list[Call | Stream]:
        return [*self._calls.values(), *(each[0] for each in self._waiting)]

    def _expired(self, call: Call) -> None:
        was_sent = call.stream != 0 and not self._out.is_blocked(call.stream)
        self.cancel(call)
        message = f"{call.method}: no response within {call.within:g} s"
        call.ended(RpcError(Code.DEADLINE_EXCEEDED, message, may_have_run=was_sent))

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        ours = {frames.HEADER_TABLE_SIZE: 0, frames.ENABLE_PUSH: 0, frames.INITIAL_WINDOW_SIZE: self.limits.window}
        more = _CONNECTION_WINDOW - frames.DEFAULT_WINDOW
        self._transport.write(frames.PREFACE + frames.settings(ours) + frames.window_update(0, more))
        self._ticker = self._clock.timer(_TICK, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionError):
            self._end("connection reset")
        else:
            self._end(str(exc) if exc is not None and str(exc) else self.why)
        if not self._closed.done():
            self._closed.set_result(None)

    def _lost(self, why: str, *, may_have_run: bool) -> RpcError:
        return RpcError(Code.UNAVAILABLE, f"{self._peer}: {why}", may_have_run=may_have_run)

    def _drain(self, why: str) -> None:
        """Begin no more calls; those in progress continue."""
        if not self.is_closed:
            self.is_closed, self.why = True, why
        waiting, self._waiting = self._waiting, deque()
        for call, *_ in waiting:
            call.ended(self._lost(why, may_have_run=False))

    def _end(self, why: str) -> None:
        """Fail all calls, and close."""
        self._drain(why)
        calls, self._calls = self._calls, {}
        for stream, call in calls.items():
            call.ended(self._lost(why, may_have_run=not self._out.is_blocked(stream)))
        if not self._ready.done():
            self._ready.set_result(None)
        for timer in (self._ticker, self._pong_timer, self._deadlines):
            if timer is not None:
                timer.cancel()
        if self._transport is not None and not self._transport.is_closing():
            self._out.flush()
            if self._is_pinging:
                self._transport.abort()  # nobody reads what is left to send
            else:
                self._transport.close()

    def _close_if_unused(self) -> None:
        if self._is_retired and not self._calls:
            self._end(self.why)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _tick(self) -> None:
        """Look whether the peer is alive. Ticks are counted, not seconds: this process may have been stopped."""
        self._ticks_since_ping += 1
        if self._heard or not self._calls:
            self._heard = self._is_pinging = False
            self._silent_ticks = 0
        else:
            self._silent_ticks += 1
            if self._is_pinging:
                if self._ticks_since_ping >= self.limits.ping_timeout:
                    self._end(f"no answer for {self._silent_ticks * _TICK:g} s")
                    return
            elif 0 < self.limits.silence <= self._silent_ticks and self._ticks_since_ping >= self.limits.ping_interval:
                self._out.frame(frame(frames.PING, 0, 0, b"ostinato"))
                self._is_pinging, self._ticks_since_ping = True, 0
        self._ticker = self._clock.timer(_TICK, self._tick)

    # Frames of the server

    def data_received(self, data: bytes) -> None:
        self._heard = True
        buffer = self._rest + data if self._rest else data
        at, end = 0, len(buffer)
        unpack = frames.HEAD.unpack_from
        self._out.hold()
        try:
            while end - at >= frames.HEAD_SIZE:
                size, low, kind, flags, stream = unpack(buffer, at)
                size = size << 8 | low
                if size > frames.MAX_FRAME:
                    raise FrameError(f"frame of {size} bytes")
                begin, stop = at + frames.HEAD_SIZE, at + frames.HEAD_SIZE + size
                if stop > end:
                    break
                at = stop
                self._frame(kind, flags, stream & frames.MAX_STREAM, buffer[begin:stop])
                if self._transport is None or self._transport.is_closing():
                    return
        except (FrameError, HeaderError) as error:
            is_http1 = not self._ready.done() and buffer.startswith(b"HTTP/1")
            self._end("the server answers with HTTP/1; it may require TLS" if is_http1 else f"invalid HTTP/2: {error}")
            return
        self._rest = buffer[at:]
        self._out.flush()

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block_stream and (kind != frames.CONTINUATION or stream != self._block_stream):
            raise FrameError("headers were not continued")
        if kind == frames.DATA:
            self._data(stream, flags, payload)
        elif kind == frames.HEADERS:
            self._check_stream(stream)
            block = frames.without_padding(payload, flags, has_priority=True)
            if flags & frames.END_HEADERS:
                self._headers(stream, block, is_end=bool(flags & frames.END_STREAM))
            else:
                self._block, self._block_stream = block, stream
                self._block_ends = bool(flags & frames.END_STREAM)
        elif kind == frames.CONTINUATION:
            if not self._block_stream:
                raise FrameError("CONTINUATION without HEADERS")
            self._block += payload
            if len(self._block) > _MAX_HEADERS:
                raise FrameError(f"headers of more than {_MAX_HEADERS} bytes")
            if flags & frames.END_HEADERS:
                self._block_stream = 0
                self._headers(stream, self._block, is_end=self._block_ends)
        elif kind == frames.WINDOW_UPDATE:
            self._out.window(stream, frames.read_number(payload, "WINDOW_UPDATE") & frames.MAX_WINDOW)
        elif kind == frames.RST_STREAM:
            self._check_stream(stream)
            self._reset(stream, frames.read_number(payload, "RST_STREAM"))
        elif kind == frames.SETTINGS:
            if not flags & frames.ACK:
                self._settings(frames.read_settings(payload))
        elif kind == frames.PING:
            if len(payload) != 8:
                raise FrameError(f"PING of {len(payload)} bytes")
            if not flags & frames.ACK:
                self._answer_ping(payload)
        elif kind == frames.GOAWAY:
            self._go_away(payload)
        elif kind == frames.PUSH_PROMISE:
            raise FrameError("PUSH_PROMISE, which was disabled")

    def _answer_ping(self, payload: bytes) -> None:
        """Answer a PING a little later.

        Servers of grpc-go measure the bandwidth by a PING with the data that follows the previous answer: one for each
        call of a client that calls one after the other. Answered at once, it would double the writes of both.
        """
        self._pongs.append(frame(frames.PING, frames.ACK, 0, payload))
        if len(self._pongs) > 1 or self._out.has_blocked:  # a measurement of a large request should be exact
            self._send_pongs()
        else:
            self._pong_timer = self._clock.timer(_PONG_SECONDS, self._send_pongs)

    def _send_pongs(self) -> None:
        if self._pong_timer is not None:
            self._pong_timer.cancel()
            self._pong_timer = None
        pongs, self._pongs = self._pongs, []
        for pong in pongs:
            self._out.frame(pong)

    def _check_stream(self, stream: int) -> None:
        if stream % 2 == 0 or stream >= self._next_stream:
            raise FrameError(f"frame of stream {stream}, which was never opened")

    def _data(self, stream: int, flags: int, payload: bytes) -> None:
        self._check_stream(stream)
        self._unacknowledged += len(payload)
        if self._unacknowledged >= _CONNECTION_WINDOW // 2:
            self._out.frame(frames.window_update(0, self._unacknowledged))
            self._unacknowledged = 0
        call = self._calls.get(stream)
        if call is None:  # cancelled
            return
        data = frames.without_padding(payload, flags) if flags & frames.PADDED else payload
        try:
            credit = call.received(data) + len(payload) - len(data)
        except RpcError as error:
            self.cancel(call)
            call.ended(error)
            return
        if credit:
            self.acknowledge(call, credit)
        if flags & frames.END_STREAM:
            self._ended(stream, call, RpcError(Code.UNKNOWN, f"{call.method}: not a gRPC response; no status"))

    def _headers(self, stream: int, block: bytes, *, is_end: bool) -> None:
        headers = self._blocks.get(block)
        if headers is None:
            headers = decode_headers(block)
            if len(self._blocks) >= _CACHED_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = headers
        call = self._calls.get(stream)
        if call is None:
            return
        if not is_end:
            call.headers = headers
            return
        if "grpc-status" not in headers and call.headers:
            headers = call.headers | headers
        self._ended(stream, call, status_error(headers, call.method))

    def _ended(self, stream: int, call: Call | Stream, error: RpcError | None) -> None:
        del self._calls[stream]
        if self._out.is_blocked(stream):  # the server does not want the rest
            self._out.frame(frame(frames.RST_STREAM, 0, stream, frames.NO_ERROR.to_bytes(4, "big")))
        self._out.drop(stream)
        call.ended(error)
        if self._waiting:
            self._begin_waiting()
        elif self._is_retired:
            self._close_if_unused()

    def _reset(self, stream: int, code: int) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        was_sent = not self._out.is_blocked(stream) and code != frames.REFUSED_STREAM
        self._out.drop(stream)
        self._ended(stream, call, self._lost(f"stream reset by the server, error code {code}", may_have_run=was_sent))

    def _settings(self, values: dict[int, int]) -> None:
        self._max_streams = values.get(frames.MAX_CONCURRENT_STREAMS, self._max_streams)
        self._out.settings(values.get(frames.INITIAL_WINDOW_SIZE), values.get(frames.MAX_FRAME_SIZE))
        self._out.frame(frame(frames.SETTINGS, frames.ACK, 0))
        if not self._ready.done():
            self._ready.set_result(None)
        self._begin_waiting()

    def _go_away(self, payload: bytes) -> None:
        if len(payload) < 8:
            raise FrameError(f"GOAWAY of {len(payload)} bytes")
        last = int.from_bytes(payload[:4], "big") & frames.MAX_STREAM
        reason = payload[8:].decode("utf-8", "replace")[:200] or "the server is closing the connection"
        self._drain(reason)
        for stream in [each for each in self._calls if each > last]:
            call = self._calls.pop(stream, None)
            self._out.drop(stream)
            if call is not None:
                call.ended(self._lost(reason, may_have_run=False))


def _complete(answer: asyncio.Future[bytes], result: bytes | RpcError) -> None:
    if answer.done():
        return
    if isinstance(result, RpcError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
