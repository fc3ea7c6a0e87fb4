"""Connection of one client: parses its requests, has them handled one after the other, and sends the responses.

- Responses are sent in the order of the requests; a request begins when the previous response has been written.
- What a client sends ahead is bounded: the server stops reading. `ResponseWriter` bounds unread responses.
- A stream ends when its client disconnects. Any other request completes once its body has been received.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ostinato.api.errors import RequestEntityTooLarge, Timeout, Unknown
from ostinato.http.encoding import CONTINUE
from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import MAX_HEAD
from ostinato.http.request import RequestBody, RequestHead, parse_head
from ostinato.http.status import rejection
from ostinato.server.http.closed import CLOSED
from ostinato.server.http.frame_stream import FrameStream
from ostinato.server.http.response_writer import REQUEST_TIMEOUT, ResponseWriter
from ostinato.server.http.upgraded import UpgradedConnection, upgrade_head
from ostinato.server.request import MAX_BODY, Answer, Peer, Request, Response, Stream
from ostinato.server.request.present import error_response
from ostinato.streams.upgrade import Upgrade

if TYPE_CHECKING:
    from ostinato.server.flow.turns import Turn
    from ostinato.server.http.server import HttpServer

IDENTITY_HEADER = "x-ostinato-identity"  # of requests over a Unix socket; ignored on other connections
MAX_READ_AHEAD = 1 << 16  # bytes that are buffered before a request needs them
MAX_DRAINED = 1 << 18  # bytes of an unread body that are discarded so that the connection can be reused

# Seconds
IDLE_TIMEOUT = 90.0  # between requests
HEAD_TIMEOUT = 32.0  # to receive a head, from its first byte on
LINGER_TIMEOUT = 1.0  # for the client to read a rejection while it is still sending
CLOSE_TIMEOUT = 600.0  # for the client of a WebSocket to read what was sent, and to send its close frame

_HEAD_END = b"\r\n\r\n"
_UNAUTHENTICATED = "system:unauthenticated"
_logger = logging.getLogger(__name__)


class Connection(ResponseWriter):
    """asyncio protocol of the server's side."""

    def __init__(self, owner: HttpServer) -> None:
        super().__init__(owner, owner.core.world.clock.monotonic() + HEAD_TIMEOUT)
        self._line: Turn | None = None  # turn of the flow of the last request
        self._queued = False  # received data waits for its turn
        self._peer: Peer | None = None  # identity in the client's certificate
        self.address = ""  # of the client
        self._is_unauthenticated = True  # no request on this connection was authenticated yet
        self._buffer = b""  # received, not parsed yet
        self._scanned = 0  # bytes of the buffer that contain no end of a head
        self._head: RequestHead | None = None  # of the current request
        self._body: RequestBody | None = None  # of the current request, unless it was received with its head
        self._body_waiter: asyncio.Future[None] | None = None  # resolved when the body is complete
        self._task: asyncio.Task[None] | _Waiting | None = None  # handles the current request
        self._upgraded: UpgradedConnection | FrameStream | None = None  # after an upgrade
        self._reading = True  # the transport is not paused
        self._lingering = False  # received data is discarded until the client closes
        self._eof_received = False  # the client will send nothing more
        self._expired = False  # the deadline has passed

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._peer = self._owner.peer_of(transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._owner.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._owner.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._owner.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._upgraded is not None:
            self._upgraded.feed(data)
            return
        if self._lingering:
            return
        self._buffer = self._buffer + data if self._buffer else data
        turns = self._turns
        if turns.contended and turns.is_contended():
            self._advance_in_turn()
        else:
            turns.began = turns.clock()
            self._advance()

    def eof_received(self) -> bool:
        self._eof_received = True
        if self._streaming or self._owner.encrypted or (self._task is None and _HEAD_END not in self._buffer):
            return False  # close the connection: TLS connections cannot be half-closed
        if self._body_waiter is not None and not self._body_waiter.done():
            self._body_waiter.set_exception(Unknown.of("unexpected EOF"))
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._closing = True
        self._transport, self._upgraded = CLOSED, None
        self._owner.closed(self)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        unfinished = self._body is not None and not self._body.complete
        if self._task is not None and (self._streaming or unfinished):
            self._task.cancel()

    # Called by the server

    @property
    def idle(self) -> bool:
        return self._task is None

    def expire(self) -> None:
        """Handle the end of the deadline: cancel the request, or close the connection."""
        if self._task is None or self._writable is not None or self._closing:
            self._transport.abort()
        elif not self._expired:
            self._expired = True
            self._task.cancel()

    def finish(self) -> None:
        """Accept no further request; cancel a stream; let any other request complete."""
        self._closing = True
        if self._task is None:
            self._transport.close()
        elif self._streaming:
            self._task.cancel()

    def evict(self) -> None:
        """Close now, or after the current request, to make room for other connections."""
        if self._task is None:
            self._transport.abort()
        else:
            self._closing = True

    def abort(self) -> None:
        self._transport.abort()

    # Requests

    def _advance_in_turn(self) -> None:
        """Advance now, or when it is the turn of this client's flow, which is known after the first request."""
        turns, line = self._turns, self._line
        if turns.busy and line is not None and self._between_requests and not turns.may_run(line):
            if not self._queued:
                self._queued = True
                turns.wait(line, self._take_turn)
            if len(self._buffer) > MAX_READ_AHEAD:
                self._update_reading()
            return
        turns.began = began = turns.clock()
        self._advance()
        turns.charge(self._line, turns.clock() - began)

    @property
    def _between_requests(self) -> bool:
        return self._task is None and (self._body is None or self._body.complete)

    def _take_turn(self) -> None:
        self._queued = False
        if not self._lost:
            self._advance()

    def _advance(self) -> None:
        """Feed received data to the body of the current request, or begin the next request."""
        if self._body is not None and not self._body.complete:
            self._feed_body()
        elif self._task is None and not self._closing:
            self._begin()
        if self._buffer or self._body is not None or not self._reading:
            self._update_reading()

    def _update_reading(self) -> None:
        """Pause or resume reading, by the size of what is buffered."""
        held = len(self._buffer)
        if self._body is not None and self._body.data is not None and self._body_waiter is None:
            held += len(self._body.data)
        full = held > MAX_READ_AHEAD and (self._task is not None or self._queued or self._closing)
        if full == self._reading and not self._lost:
            self._reading = not full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _begin(self) -> None:
        """Begin the next request if its head has been received."""
        buffer = self._buffer
        if not buffer:
            return
        end = buffer.find(_HEAD_END, max(0, self._scanned - 3))
        if end < 0 or end > MAX_HEAD:
            if len(buffer) > MAX_HEAD:
                self._reject(InvalidHttp("the head of the request is too large", status=431))
            elif not self._scanned:
                self.deadline = self._clock.monotonic() + HEAD_TIMEOUT
            self._scanned = len(buffer)
            return
        self._scanned = 0
        try:
            head = parse_head(buffer[:end])
        except InvalidHttp as error:
            self._reject(error)
            return
        if self._owner.audited and not head.headers.get("audit-id"):
            head.headers = {**head.headers, "audit-id": self._core.world.ids.uid()}  # also sent in the response
        self._head = head
        self.deadline = self._turns.began + REQUEST_TIMEOUT
        peer, identify = self._peer, self._owner.identify
        if identify is not None:
            peer = identify(head.headers.get(IDENTITY_HEADER, ""))
        elif peer is not None and not peer.not_before <= self._clock.wall() <= peer.not_after:
            peer = peer.expired()
        start, length = end + 4, head.length
        read, body = None, b""
        if head.chunked or start + length > len(buffer):
            self._buffer = buffer[start:]
            self._body = RequestBody(head)
            if self._buffer:
                self._feed_body()
                if self._closing:  # rejected
                    return
            read = self._read
        else:  # received as a whole, as nearly every request
            end = start + length
            body, self._buffer = buffer[start:end], buffer[end:]
        request = Request(
            head.method,
            head.path,
            head.query,
            head.headers,
            read,
            body=body,
            peer=peer,
            remote=self.address,
            repeated=head.repeated,
            line=self._line,
        )
        answer = None if length or self._body is not None else self._core.handle_now(request)
        if answer is None or isinstance(answer, Response):
            self._respond(head, request, answer)
        elif self._turns.contended:
            self._respond(head, request, None)  # each step in its turn
        else:
            self._task = _WAITING
            answer(partial(self._answered, head, request))

    def _answered(self, head: RequestHead, request: Request, answer: Response | None) -> None:
        """Continue with a request whose response came later."""
        self._task = None
        if self._lost:
            return
        try:
            self._respond(head, request, answer)
        except Exception:
            _logger.exception("response failed method=%s path=%s", head.method, head.path)
            self._transport.abort()

    def _respond(self, head: RequestHead, request: Request, answer: Response | None) -> None:
        """Send the response, or handle the request in a task."""
        if answer is not None:
            self._line = line = request.line
            if line is not self._turns.latest:
                self._turns.meet(line)
            if self._is_unauthenticated:
                self._note_user(request, answer)
            if self._write_short(head, answer):
                self._next_request()
                return
        if self._turns.contended:
            serving = self._serve_in_turns(self._turns.prepay(self._line), head, request, answer)
        elif _may_stream(head):  # which may last until flows contend
            serving = self._serve_in_turns(0.0, head, request, answer)
        else:
            serving = self._serve(head, request, answer)
        self._task = self._loop.create_task(serving)

    def _feed_body(self) -> None:
        body = self._body
        assert body is not None
        try:
            self._buffer = body.feed(self._buffer)
        except InvalidHttp as error:
            if self._body_waiter is not None and not self._body_waiter.done():
                self._closing = True
                self._body_waiter.set_exception(Unknown.of("malformed chunked encoding"))
            elif self._task is None:
                self._reject(error)
            else:
                self._closing = True
            return
        waiter = self._body_waiter
        if waiter is not None and not waiter.done() and (body.complete or body.size > MAX_BODY):
            waiter.set_result(None)
        elif body.data is None and self._task is None:  # a body that is discarded
            if body.complete:
                self._next_request()
            elif body.size > MAX_DRAINED:
                self._linger()

    async def _read(self) -> bytes:
        """Wait for the whole body of the current request, and return it."""
        body, head = self._body, self._head
        if body is None or head is None:
            return b""
        if not head.chunked and head.length > MAX_BODY:
            raise RequestEntityTooLarge.of(f"limit is {MAX_BODY}")
        if not body.complete:
            if head.expects_continue and not body.size:
                head.expects_continue = False
                self._transport.write(CONTINUE)
            if self._eof_received:
                raise Unknown.of("unexpected EOF")
            self._body_waiter = self._loop.create_future()
            self._update_reading()
            try:
                await self._body_waiter
            finally:
                self._body_waiter = None
        if body.size > MAX_BODY:
            raise RequestEntityTooLarge.of(f"limit is {MAX_BODY}")
        assert body.data is not None
        return bytes(body.data)

    async def _serve_in_turns(self, prepaid: float, head: RequestHead, request: Request, answer: Answer | None) -> None:
        await self._turns.steps(self._serve(head, request, answer), request, prepaid)

    async def _serve(self, head: RequestHead, request: Request, answer: Answer | None) -> None:
        """Handle a request and send the response. `answer`: the response, if there is one already."""
        try:
            answer = answer or await self._core.handle(request)
            if self._is_unauthenticated:
                self._note_user(request, answer)
            if isinstance(answer, Response):
                if not self._write_short(head, answer):
                    await self._write(head, answer)
                elif self._writable is not None:
                    await self._writable
            elif isinstance(answer, Stream):
                await self._stream(head, answer)
            else:
                await self._upgrade(head, answer)
        except asyncio.CancelledError:
            if self._expired and not self._streaming:
                self._closing = True
                why = Timeout.of("request did not complete within the allotted timeout", 0)
                await self._write(head, error_response(why))
        except ConnectionError as error:  # a backend's response ended early: close, so that the client notices
            _logger.info("backend response ended early path=%s error=%s", head.path, error)
            self._closing = True
        except Exception:  # of the response writer: the response cannot be completed
            _logger.exception("response failed method=%s path=%s", head.method, head.path)
            self._closing = True
        finally:
            self._task = None
            self._line = line = request.line
            if line is not self._turns.latest:
                self._turns.meet(line)
            self._streaming = self._patient = False
            self._finish_request()

    def _note_user(self, request: Request, answer: Answer) -> None:
        """Exempt the connection of an authenticated client from the limit of unauthenticated ones."""
        user = request.user
        if answer.status < 400 if user is None else _UNAUTHENTICATED not in user.groups:
            self._is_unauthenticated = False
            self._owner.authenticated(self)

    def _keeps_alive(self, head: RequestHead) -> bool:
        """Whether another request may follow on this connection."""
        if self._closing or not head.keep_alive:
            return False
        body = self._body
        if body is None or body.complete:
            return True
        return not head.expects_continue and body.size + body.remaining <= MAX_DRAINED

    def _finish_request(self) -> None:
        """Continue after a response: discard the rest of the body, begin the next request, or close."""
        if self._lost:
            return
        if (body := self._body) is not None and not body.complete and not self._eof_received:
            if self._closing:
                self._linger()
                return
            body.data = None  # discard the rest
            self.deadline = self._clock.monotonic() + REQUEST_TIMEOUT
            self._update_reading()
            return
        self._next_request()

    def _next_request(self) -> None:
        self._head = self._body = None
        if self._closing or (self._eof_received and _HEAD_END not in self._buffer):
            self._transport.close()
            return
        self.deadline = self._turns.began + IDLE_TIMEOUT
        if self._buffer:
            self._loop.call_soon(self._advance_in_turn)
        elif not self._reading:
            self._update_reading()

    def _reject(self, error: InvalidHttp) -> None:
        """Respond to data that is not a valid request."""
        self._transport.write(rejection(error.status, error.detail))
        self._linger()

    def _linger(self) -> None:
        """Discard received data for a moment before closing: closing immediately could lose the response."""
        self._closing = True
        self._buffer = b""
        self._body = None
        self._lingering = True
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()
        self.deadline = self._clock.monotonic() + LINGER_TIMEOUT

    # Streams

    async def _stream(self, head: RequestHead, answer: Stream) -> None:
        self._streaming = True
        self._patient = answer.patient
        self.deadline = float("inf")
        try:
            if head.websocket:
                await self._stream_frames(head, answer)
            else:
                await self._stream_chunks(head, answer)
        finally:
            await cast("Any", answer.chunks).aclose()

    async def _upgrade(self, head: RequestHead, answer: Upgrade) -> None:
        self._streaming = self._patient = self._closing = True
        self.deadline = float("inf")
        self._transport.write(upgrade_head(head, answer))
        upgraded = self._upgraded = UpgradedConnection(self._transport, lambda: self._writable, answer)
        buffer, self._buffer = self._buffer, b""
        self._update_reading()  # from now on the upgraded connection pauses and resumes reading
        if buffer:
            upgraded.feed(buffer)
        try:
            await answer.serve(upgraded)
        except asyncio.CancelledError:  # the client disconnected, or the server stops
            upgraded.going_away()
            return
        if answer.has_messages:  # closing immediately could lose what was sent
            self.deadline = self._clock.monotonic() + CLOSE_TIMEOUT
            await upgraded.close()

    async def _stream_frames(self, head: RequestHead, answer: Stream) -> None:
        """Send a stream as text messages, one per line."""
        self._closing = True
        frames = self._upgraded = FrameStream(self._transport, lambda: self._writable)
        frames.begin(head)
        buffer, self._buffer = self._buffer, b""
        if buffer:
            frames.feed(buffer)
        with contextlib.suppress(asyncio.CancelledError):  # the client disconnected, or the server stops
            await frames.send(answer.chunks)
        if not self._lost:
            frames.close()


class _Waiting:
    """The state of a connection whose response comes later, without a task."""

    def cancel(self) -> None:
        """Do nothing: it comes soon."""


_WAITING = _Waiting()


def _may_stream(head: RequestHead) -> bool:
    """Whether a request may be a watch, which lasts longer than `CALM_SECONDS`."""
    return head.method == "GET" and (bool(head.query) or "/watch/" in head.path)
