"""Listener: accepts connections, and bounds what unauthenticated clients can hold of the server.

- Connections are accepted here and not by the event loop, so that a handshake counts from its first byte.
- At most `MAX_HANDSHAKES` handshakes are in progress, and at most `MAX_UNAUTHENTICATED` connections are open on which
  no request was authenticated. One more closes the oldest of the address that has the most: a client that opens many
  loses its own, and a client that authenticates is safe within milliseconds.
- A handshake begins when its first bytes have been received and it is its turn: handshakes take turns with requests and
  with the handshakes of other addresses, because each takes about a millisecond of the event loop.
- A handshake that takes longer than `HANDSHAKE_TIMEOUT` is aborted.
- Without file descriptors, accepting pauses for a second instead of spinning.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from ostinato.http import unix_sockets
from ostinato.server.flow.turns import Turns
from ostinato.world import Clock, Timer

MAX_HANDSHAKES = 256  # 50 kB each
MAX_UNAUTHENTICATED = 1024
HANDSHAKE_TIMEOUT = 10.0
HANDSHAKE_COST = 0.001  # seconds of the event loop, approximately
SHUTDOWN_TIMEOUT = 1.0  # seconds for the TLS shutdown
ACCEPT_PAUSE = 1.0
BACKLOG = 1024

_SHARES = 50  # of the event loop, for all handshakes
_ACCEPTED_AT_ONCE = 64  # connections, before other tasks run
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_logger = logging.getLogger(__name__)
T = TypeVar("T")


class AddressLimit(Generic[T]):
    """Bounded set of items, each of an address. Beyond the bound, the address with the most loses its oldest."""

    def __init__(self, most: int, drop: Callable[[T], None]) -> None:
        self._most = most
        self._drop = drop
        self._count = 0
        self._of: dict[str, dict[T, None]] = {}  # by address, oldest first

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, one: T) -> None:
        self._of.setdefault(address, {})[one] = None
        self._count += 1
        if self._count > self._most:
            largest = max(self._of, key=lambda each: len(self._of[each]))
            oldest = next(iter(self._of[largest]))
            self.discard(largest, oldest)
            self._drop(oldest)

    def discard(self, address: str, one: T) -> None:
        """Remove an item, if it is in the set."""
        found = self._of.get(address)
        if found is None or one not in found:
            return
        del found[one]
        self._count -= 1
        if not found:
            del self._of[address]


class Listener:
    """Listening sockets."""

    def __init__(
        self,
        make: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext | None,
        clock: Clock,
        turns: Turns,
    ) -> None:
        self._make = make
        self._context = context
        self._turns = turns
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._accepted: set[asyncio.Task[None]] = set()  # in a handshake
        self._handshakes: AddressLimit[asyncio.Task[None]] = AddressLimit(MAX_HANDSHAKES, _cancel)
        self._pause: Timer | None = None

    @property
    def port(self) -> int:
        port: int = self._sockets[0].getsockname()[1]
        return port

    async def bind(self, host: str, port: int, *, reuse_port: bool = False) -> None:
        """Bind a port at each address of a host. Raises OSError. Port 0 selects a free port.

        `reuse_port`: share it with other processes that do so; the kernel distributes connections among them.
        """
        self._sockets += await bound_sockets(host, port, reuse_port=reuse_port)

    def bind_unix(self, listening: socket.socket) -> None:
        """Accept connections of processes of this user; see `http.unix_sockets.listen`."""
        self._sockets.append(listening)

    def listen(self) -> None:
        for each in self._sockets:
            each.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        """Accept no more connections; abort handshakes."""
        if self._pause is not None:
            self._pause.cancel()
        for each in self._sockets:
            if each.fileno() >= 0:
                self._loop.remove_reader(each.fileno())
                each.close()
        for task in self._accepted:
            task.cancel()

    def _resume(self) -> None:
        self._pause = None
        for each in self._sockets:
            self._loop.add_reader(each.fileno(), self._accept, each)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                _logger.error("cannot accept connections error=%s retry=%gs", error.strerror, ACCEPT_PAUSE)
                for each in self._sockets:
                    self._loop.remove_reader(each.fileno())
                self._pause = self._clock.timer(ACCEPT_PAUSE, self._resume)
                return
            accepted.settimeout(0)
            if accepted.family == socket.AF_UNIX:
                if not unix_sockets.is_own(accepted):
                    accepted.close()
                    continue
                address = ("",)
            task = self._loop.create_task(self._begin(accepted, address[0]), name="handshake")
            self._accepted.add(task)
            self._handshakes.add(address[0], task)
            task.add_done_callback(partial(self._begun, accepted, address[0]))

    async def _begin(self, accepted: socket.socket, address: str) -> None:
        """Run the handshake, and hand the connection to its protocol. A failed handshake closes the connection."""
        with contextlib.suppress(OSError, TimeoutError):  # SSLError is one
            if self._context is not None:
                async with self._clock.timeout(HANDSHAKE_TIMEOUT):
                    await self._take_turn(accepted, address)
            await self._loop.connect_accepted_socket(
                self._make,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT if self._context is not None else None,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT if self._context is not None else None,
            )
            return
        accepted.close()

    async def _take_turn(self, accepted: socket.socket, address: str) -> None:
        """Wait for the first bytes of a client, and for the turn of its address."""
        there: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(accepted.fileno(), _resolve, there)
        try:
            await there
        finally:
            self._loop.remove_reader(accepted.fileno())
        line = self._turns.queue.line("tls", _SHARES, address)
        line.expected = HANDSHAKE_COST
        if self._turns.busy and not self._turns.may_run(line):
            await self._turns.gate(line)
        self._turns.charge(line, HANDSHAKE_COST)

    def _begun(self, accepted: socket.socket, address: str, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # perhaps before it began
            accepted.close()
        self._accepted.discard(task)
        self._handshakes.discard(address, task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("connection failed error=%s", error, exc_info=error)


async def bound_sockets(host: str, port: int, *, reuse_port: bool) -> list[socket.socket]:
    """Sockets that are bound to a port at each address of a host; see `Listener.bind`."""
    flags, kind = socket.AI_PASSIVE, socket.SOCK_STREAM
    found = await asyncio.get_running_loop().getaddrinfo(host or None, port, type=kind, flags=flags)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.settimeout(0)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            port = port or (sockets[0].getsockname()[1] if len(sockets) > 1 else 0)
            one.bind((address[0], port, *address[2:]))
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


def _resolve(there: asyncio.Future[None]) -> None:
    if not there.done():
        there.set_result(None)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
