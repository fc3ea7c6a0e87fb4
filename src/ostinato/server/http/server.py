"""HTTP server: owns the listener and its connections, enforces their deadlines, and stops gracefully."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from ostinato.http.encoding import clean, date_line
from ostinato.server.flow.turns import Turns
from ostinato.server.http.client_certificates import RequestingContext, peer_of
from ostinato.server.http.connection import Connection
from ostinato.server.http.listener import MAX_UNAUTHENTICATED, AddressLimit, Listener
from ostinato.server.http.memory import TrimSchedule, trim
from ostinato.server.request import Answer, Later, Peer, Request, Response
from ostinato.world import Timer, World

_BUFFER = 1 << 16
SWEEP_INTERVAL = 1.0  # seconds between two checks of deadlines
STOP_TIMEOUT = 3.0  # seconds for requests to complete when the server stops

Identify = Callable[[str], Peer]
"""Returns the user of an identity that a local process claims, with a fault if there is no such identity."""


class Core(Protocol):
    """Handler of requests: an API server, or the agent of a node."""

    @property
    def world(self) -> World: ...

    def handle_now(self, request: Request) -> Response | Later | None:
        """Handle a request that needs no task; None if `handle` has to. What it returns need not be used."""

    async def handle(self, request: Request) -> Answer: ...


class HttpServer:
    """Serves a core over HTTP/1.1, with TLS if there is a context for it."""

    def __init__(
        self,
        core: Core,
        context: ssl.SSLContext | None,
        turns: Turns | None = None,
        *,
        audited: bool = False,
        identify: Identify | None = None,
    ) -> None:
        """Parameters:

        - `context`: TLS of the server. None serves without TLS.
        - `turns`: scheduler of requests on the event loop. Defaults to a new one.
        - `audited`: whether requests without an audit id get one.
        - `identify`: the users of requests over a Unix socket, which name an identity in `IDENTITY_HEADER`. Only for a
          server without other listeners. Defaults to the client certificates of connections.
        """
        self.audited = audited
        self.identify = identify
        self.core = core
        self.turns = turns or Turns(core.world.clock.monotonic)
        self.port = 0  # of the listener, once it is bound
        self.date = date_line(core.world.clock.now())  # header of every response, updated every second
        self.encrypted = context is not None
        # Data is copied out of it before the next read: one buffer serves all connections.
        self.buffer = memoryview(bytearray(_BUFFER))
        self._ssl = context
        self._audit_prefix = core.world.ids.uid()[:24].encode()  # of generated audit ids; a number follows
        self._answered = 0
        self._listener: Listener | None = None
        self._connections: set[Connection] = set()
        self._unauthenticated: AddressLimit[Connection] = AddressLimit(MAX_UNAUTHENTICATED, Connection.evict)
        self._trims = TrimSchedule(core.world.clock)
        self._trimming: asyncio.Task[None] | None = None
        self._sweeper: Timer | None = None
        self._emptied: asyncio.Event | None = None

    async def start(self, host: str, port: int) -> None:
        """Bind and listen. Raises OSError. Port 0 selects a free port."""
        await self.bind(host, port)
        await self.listen()

    async def bind(self, host: str, port: int, *, reuse_port: bool = False) -> None:
        """Bind a port. Connections are accepted after `listen`. `reuse_port`: share it with other processes."""
        listener = Listener(lambda: Connection(self), self._ssl, self.core.world.clock, self.turns)
        await listener.bind(host, port, reuse_port=reuse_port)
        self._listener, self.port = listener, listener.port

    async def start_unix(self, listening: socket.socket) -> None:
        """Serve on a Unix socket, for processes of this user; see `http.unix_sockets.listen`."""
        listener = self._listener = Listener(lambda: Connection(self), None, self.core.world.clock, self.turns)
        listener.bind_unix(listening)
        await self.listen()

    async def listen(self) -> None:
        assert self._listener is not None, "bind() must be called first"
        self._listener.listen()
        self._sweep()

    async def stop(self) -> None:
        """Accept no more connections, cancel streams, and wait some seconds for other requests to complete."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.finish()
        if self._connections:
            self._emptied = asyncio.Event()
            try:
                async with self.core.world.clock.timeout(STOP_TIMEOUT):
                    await self._emptied.wait()
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._trimming is not None:
            await self._trimming

    # Called by connections

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._unauthenticated.add(connection.address, connection)

    def authenticated(self, connection: Connection) -> None:
        """Exempt a connection from the limit of unauthenticated ones."""
        self._unauthenticated.discard(connection.address, connection)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._unauthenticated.discard(connection.address, connection)
        self._trims.closed()
        if self._emptied is not None and not self._connections:
            self._emptied.set()

    def peer_of(self, transport: asyncio.BaseTransport) -> Peer | None:
        """Return the identity in the client certificate of a connection."""
        if isinstance(self._ssl, RequestingContext):
            return self._ssl.peer(transport.get_extra_info("ssl_object"))
        certificate = transport.get_extra_info("peercert")  # verified in the handshake
        return peer_of(certificate) if certificate else None

    def audit_id(self, asked: str | None) -> bytes:
        """Encode the audit id header: the client's id, or a generated one."""
        if asked:
            return f"Audit-Id: {clean(asked)}\r\n".encode()
        self._answered += 1
        return b"Audit-Id: %b%012x\r\n" % (self._audit_prefix, self._answered)

    def _sweep(self) -> None:
        clock = self.core.world.clock
        self.date = date_line(clock.now())
        now = clock.monotonic()
        for connection in [c for c in self._connections if c.deadline < now]:
            connection.expire()
        if self._trims.is_due():
            self._trimming = asyncio.get_running_loop().create_task(self.core.world.executor.run(trim))
        self._sweeper = clock.timer(SWEEP_INTERVAL, self._sweep)
