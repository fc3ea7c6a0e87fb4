"""The listener: takes connections, ends those that have waited too long, and stops in good order."""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

from ostinato.http.encoding import clean, date_line
from ostinato.server.flow.turns import Turns
from ostinato.server.http.client_certificates import RequestingContext, peer_of
from ostinato.server.http.connection import Connection
from ostinato.server.http.listener import MAX_UNAUTHENTICATED, AddressLimit, Listener
from ostinato.server.http.memory import TrimSchedule, trim
from ostinato.server.request import Answer, Peer, Request, Response
from ostinato.world import Timer, World

_BUFFER = 1 << 16
SWEEP_INTERVAL = 1.0  # how exact deadlines are
STOP_TIMEOUT = 3.0  # for requests that are under way when the server stops


class Core(Protocol):
    """What answers: an API server, or the agent of a node."""

    @property
    def world(self) -> World: ...

    def at_once(self, request: Request) -> Response | None:
        """The answer, if there is one that waits for nothing."""

    async def handle(self, request: Request) -> Answer: ...


class HttpServer:
    """Serves a core over HTTP/1.1, with TLS if there is a context for it."""

    def __init__(
        self, core: Core, context: ssl.SSLContext | None, turns: Turns | None = None, *, audited: bool = False
    ) -> None:
        """`turns`: who runs next on the loop. Defaults to a scheduler of its own.

        `audited`: every request is given the id under which it is audited, unless its client names one.
        """
        self.audited = audited
        self.core = core
        self.turns = turns or Turns(core.world.clock.monotonic)
        self.port = 0  # where it listens, once it does
        self.date = date_line(core.world.clock.now())  # of every answer, exact to a second
        self.encrypted = context is not None
        # What a socket has is read into here and used at once: one buffer serves all connections.
        self.buffer = memoryview(bytearray(_BUFFER))
        self._ssl = context
        self._audit_prefix = core.world.ids.uid()[:24].encode()  # of every answer's id; a number follows
        self._answered = 0
        self._listener: Listener | None = None
        self._connections: set[Connection] = set()
        self._unauthenticated: AddressLimit[Connection] = AddressLimit(MAX_UNAUTHENTICATED, Connection.evict)
        self._trims = TrimSchedule(core.world.clock)
        self._trimming: asyncio.Task[None] | None = None
        self._sweeper: Timer | None = None
        self._emptied: asyncio.Event | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; OSError if that cannot be. Port 0 is any that is free."""
        await self.bind(host, port)
        await self.listen()

    async def bind(self, host: str, port: int) -> None:
        """Take a port, on which nobody is heard before `listen`."""
        listener = Listener(lambda: Connection(self), self._ssl, self.core.world.clock, self.turns)
        await listener.bind(host, port)
        self._listener, self.port = listener, listener.port

    async def listen(self) -> None:
        assert self._listener is not None, "listens before it has a port"
        self._listener.listen()
        self._sweep()

    async def stop(self) -> None:
        """Take no more connections, end the streams, and let what else is under way end, for a few seconds."""
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

    # What connections call

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._unauthenticated.add(connection.address, connection)

    def authenticated(self, connection: Connection) -> None:
        """Its client has authenticated."""
        self._unauthenticated.discard(connection.address, connection)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._unauthenticated.discard(connection.address, connection)
        self._trims.closed()
        if self._emptied is not None and not self._connections:
            self._emptied.set()

    def peer_of(self, transport: asyncio.BaseTransport) -> Peer | None:
        """Whom the certificate of a client names."""
        if isinstance(self._ssl, RequestingContext):
            return self._ssl.peer(transport.get_extra_info("ssl_object"))
        certificate = transport.get_extra_info("peercert")  # verified in the handshake
        return peer_of(certificate) if certificate else None

    def audit_id(self, asked: str | None) -> bytes:
        """The header that names a request: as the client says, or anew."""
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
