"""Watches: any number on one stream, which is opened again after a loss.

- A watch yields each event once, in the order of revisions. After a loss of the connection, the member or its leader,
  it continues on another endpoint from the revision after the last one that it has seen.
- All events of a revision are in one batch. A batch without events reports progress: every event up to its revision
  has been yielded.
- A watch ends with an exception: Compacted, WatchCancelled, PermissionDenied or Unauthenticated.
- A watch that is not read stops its stream, with the other watches on it, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ostinato.etcd.errors import (
    Compacted,
    EtcdError,
    PermissionDenied,
    ProtocolError,
    TlsError,
    Unavailable,
    WatchCancelled,
    etcd_error,
    is_stale_token,
)
from ostinato.etcd.messages import read_header, read_key_value
from ostinato.etcd.transport import Transport
from ostinato.etcd.watch import Event, Watch
from ostinato.etcd.wire import WireError, data, fields, number, signed
from ostinato.grpc import Connection, RpcError, Stream
from ostinato.world import World

_LOG: Final = logging.getLogger(__name__)
_METHOD: Final = "/etcdserverpb.Watch/Watch"
_ALL_WATCHES: Final = -1  # the id in answers to requests for progress
_FIRST_DELAY: Final = 0.05
_MAX_DELAY: Final = 2.0
_PROGRESS_REQUEST: Final = data(3, b"")
_STATUS: Final = "/etcdserverpb.Maintenance/Status"
_STATUS_SECONDS: Final = 5.0


class WatchStream:
    """A stream of watches, on a connection of its own."""

    def __init__(
        self,
        transport: Transport,
        world: World,
        *,
        require_leader: bool,
        fragment: bool,
        on_close: Callable[[WatchStream], None],
    ) -> None:
        self.is_connected = False
        self._was_connected = False
        self._was_denied = False  # since a watch was confirmed
        self.reconnections = 0
        self.orders_progress = False  # whether the member answers a request for progress after the events before it
        self._transport = transport
        self._world = world
        self._require_leader = require_leader
        self._fragment = fragment
        self._on_close = on_close
        self._link = transport.new_link()
        self._watches: dict[int, Watch] = {}
        self._last_id = 0
        self._stream: Stream | None = None
        self._room = asyncio.Event()
        self._delay = _FIRST_DELAY
        self._runner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def watch(
        self,
        key: bytes,
        end: bytes = b"",
        *,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress_notify: bool = False,
        no_put: bool = False,
        no_delete: bool = False,
    ) -> Watch:
        """Watch a key, or the keys from `key` to `end`, from a revision on, or from now on."""
        request = data(1, key) + (data(2, end) if end else b"") + number(4, progress_notify) + number(6, prev_kv)
        filters = (b"\0" if no_put else b"") + (b"\1" if no_delete else b"")
        if filters:
            request += data(5, filters)
        self._last_id += 1
        watch = Watch(self._last_id, request, start_revision, on_room=self._room.set, on_cancel=self._forget)
        self._watches[watch.id] = watch
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run())
        elif self._stream is not None:
            self._stream.send(watch.create_request(fragment=self._fragment))
        return watch

    def request_progress(self) -> None:
        """Ask for a progress notification on every watch of the stream; ignored while it is not connected."""
        if self._stream is not None:
            self._stream.send(_PROGRESS_REQUEST)

    async def close(self) -> None:
        """End all watches."""
        for watch in list(self._watches.values()):
            await watch.cancel()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait([self._runner])
        await self._link.close()
        self._on_close(self)

    def _forget(self, watch: Watch) -> None:
        """Cancel a watch at etcd."""
        if self._watches.pop(watch.id, None) is not None and self._stream is not None:
            self._stream.send(data(2, number(1, watch.id)))
        self._room.set()

    async def _run(self) -> None:
        """Keep the stream open, while there are watches."""
        try:
            while self._watches:
                reason = "ended by the server"
                try:
                    await self._serve()
                except (RpcError, Unavailable) as error:
                    if isinstance(error, TlsError) and not self._was_connected:
                        raise
                    reason = str(error)
                if self._watches:
                    self.reconnections += 1
                    _LOG.info("etcd watch stream lost; reconnecting error=%s", reason)
                    await self._world.clock.sleep(self._delay * (0.5 + self._world.rng.random() / 2))
                    self._delay = min(2 * self._delay, _MAX_DELAY)
        except EtcdError as error:
            self._end_all(error)
        except WireError as error:
            self._end_all(ProtocolError(f"invalid watch response: {error}"))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            _LOG.exception("etcd watch stream failed")
            self._end_all(ProtocolError(f"watch stream failed: {error}"))
            raise

    async def _serve(self) -> None:
        """Open the stream, create the watches, and deliver their events until the stream ends."""
        connection = await self._transport.stream_connection(self._link)
        self.orders_progress = await self._is_ordering_progress(connection)
        if not self._watches:
            return
        head = self._transport.head(_METHOD, needs_leader=self._require_leader)
        first, *others = [watch.create_request(fragment=self._fragment) for watch in self._watches.values()]
        stream = self._stream = connection.stream(_METHOD, head, first, is_last=False)
        for request in others:
            stream.send(request)
        try:
            while (message := await stream.receive()) is not None:
                self._handle(message)
                while any(watch.is_full for watch in self._watches.values()):
                    self._room.clear()
                    await self._room.wait()
            self._link.leave(connection)
        except RpcError as error:
            if is_stale_token(error):
                self._transport.refresh_token()
                raise
            failed = etcd_error(error, is_write=False)
            if not isinstance(failed, Unavailable):
                raise failed from None
            self._link.leave(connection)
            raise
        finally:
            self._stream, self.is_connected = None, False
            stream.close()

    async def _is_ordering_progress(self, connection: Connection) -> bool:
        """Ask the member for its version: etcd before 3.4.31 and 3.5.13 may answer requests for progress too early."""
        try:
            head = self._transport.head(_STATUS, needs_leader=False)
            status = await connection.call(_STATUS, head, b"", _STATUS_SECONDS)
        except RpcError:
            return False
        version = next((value for field, value in fields(status) if field == 2 and isinstance(value, bytes)), b"")
        parts = version.decode("ascii", "replace").partition("-")[0].split(".")
        numbers = tuple(int(part) if part.isdecimal() else 0 for part in parts)
        return numbers >= (3, 5, 13) or (3, 4, 31) <= numbers < (3, 5)

    def _handle(self, message: bytes) -> None:
        """Take a WatchResponse."""
        revision = identifier = compact_revision = 0
        created = cancelled = is_fragment = False
        reason = ""
        events: list[Event] = []
        for field, value in fields(message):
            if isinstance(value, bytes):
                if field == 11:
                    events.append(_read_event(value))
                elif field == 1:
                    revision = read_header(value)
                elif field == 6:
                    reason = value.decode("utf-8", "replace")
            elif field == 2:
                identifier = signed(value)
            elif field == 3:
                created = bool(value)
            elif field == 4:
                cancelled = bool(value)
            elif field == 5:
                compact_revision = value
            elif field == 7:
                is_fragment = bool(value)
        if identifier == _ALL_WATCHES and not created and not cancelled:
            for watch in self._watches.values():
                watch.progress(revision, is_trusted=self.orders_progress)
            return
        watch_of = self._watches.get(identifier)
        if cancelled:
            self._cancelled(watch_of, compact_revision, reason)
        elif watch_of is None:
            return  # it was cancelled here
        elif created:
            self.is_connected = self._was_connected = True
            self._was_denied = False
            self._delay = _FIRST_DELAY
            watch_of.confirm(revision)
        elif events:
            watch_of.deliver(revision, events, len(message), is_fragment=is_fragment)
        else:
            watch_of.progress(revision, is_trusted=True)

    def _cancelled(self, watch: Watch | None, compact_revision: int, reason: str) -> None:
        """End a watch that etcd has cancelled."""
        if compact_revision and watch is not None:
            error: EtcdError = Compacted(f"revision {watch.next_revision} has been compacted", compact_revision)
        elif "permission denied" in reason or "auth" in reason:
            if self._transport.has_user and not self._was_denied:  # etcd says so of invalid tokens too
                self._was_denied = True
                self._transport.refresh_token()
                raise Unavailable(reason)
            error = PermissionDenied(reason)
        else:
            error = WatchCancelled(reason or "cancelled by etcd")
        if watch is not None:
            del self._watches[watch.id]
            watch.end(error)
        elif reason:  # refused, without an id
            raise error

    def _end_all(self, error: EtcdError) -> None:
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            watch.end(error)


def _read_event(message: bytes) -> Event:
    is_delete, kv, prev = False, None, None
    for field, value in fields(message):
        if field == 1:
            is_delete = bool(value)
        elif isinstance(value, bytes):
            if field == 2:
                kv = read_key_value(value)
            elif field == 3:
                prev = read_key_value(value)
    if kv is None:
        raise WireError("event without a key")
    return Event(is_delete, kv, prev)
