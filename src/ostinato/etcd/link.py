"""Connection to one of several endpoints: the next one is tried after a failure.

- One attempt to connect at a time, shared by all who wait for it; it tries every endpoint once.
- A member that accepts connections and does not speak is skipped: connecting includes the server's first frame.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from ostinato.etcd.errors import TlsError, Unavailable
from ostinato.etcd.settings import EtcdSettings
from ostinato.grpc import Connection, Limits, RpcError
from ostinato.world import World

_CONNECT_SECONDS: Final = 3.0
_LIMITS: Final = Limits(message=256 << 20)
_CLOSED: Final = "the connection was closed before the first answer"
_ENDED: Final = ("connection closed", "connection reset")


class Link:
    """A connection to one of the endpoints, opened on demand."""

    def __init__(
        self,
        settings: EtcdSettings,
        tls: Callable[[], ssl.SSLContext | None],
        world: World,
        endpoints: Sequence[str],
    ) -> None:
        """`tls`: called for each connection; None if the members do not use TLS."""
        self._settings = settings
        self._endpoints = endpoints
        self._tls = tls
        self._world = world
        self._index = world.rng.randrange(len(endpoints))
        self._connection: Connection | None = None
        self._left: list[Connection] = []  # that calls in progress may still use
        self._attempt: asyncio.Task[Connection] | None = None
        self._is_closed = False

    @property
    def endpoint(self) -> str:
        """The endpoint in use, or to be tried next."""
        return self._endpoints[self._index]

    def current(self) -> Connection | None:
        """Return the connection in use; None if there is none."""
        connection = self._connection
        return None if connection is None or connection.is_closed else connection

    async def connected(self) -> Connection:
        """Return a connection. Raises Unavailable if no endpoint can be reached."""
        if (connection := self.current()) is not None:
            return connection
        if self._is_closed:
            raise Unavailable("the client is closed")
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_task(self._connect())
            self._attempt.add_done_callback(_retrieved)
        return await asyncio.shield(self._attempt)

    def leave(self, connection: Connection) -> None:
        """Use the next endpoint from now on, if this connection is still in use; calls in progress on it continue."""
        if connection is self._connection:
            self._connection = None
            self._index = (self._index + 1) % len(self._endpoints)
            self._left = [each for each in self._left if not each.has_ended]
            self._left.append(connection)
        connection.retire()

    async def close(self) -> None:
        self._is_closed = True
        if self._attempt is not None and not self._attempt.done():
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        if self._connection is not None:
            self._left.append(self._connection)
        for each in self._left:
            await each.close()

    async def _connect(self) -> Connection:
        if self._connection is not None:  # lost
            self._connection = None
            self._index = (self._index + 1) % len(self._endpoints)
        failures: list[Unavailable] = []
        for _ in self._endpoints:
            endpoint = self.endpoint
            try:
                self._connection = await self._dial(endpoint)
            except Unavailable as error:
                failures.append(error)
                self._index = (self._index + 1) % len(self._endpoints)
            else:
                return self._connection
        kind = TlsError if all(isinstance(each, TlsError) for each in failures) else Unavailable
        raise kind("; ".join(str(each) for each in failures))

    async def _dial(self, endpoint: str) -> Connection:
        host, _, port = endpoint.rpartition(":")
        host = host.strip("[]")
        loop = asyncio.get_running_loop()
        connection: Connection | None = None
        is_usable = False
        try:
            async with self._world.clock.timeout(_CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._world.clock, endpoint, _LIMITS),
                    host,
                    int(port),
                    ssl=self._tls(),
                    server_hostname=host if self._settings.tls else None,
                )
                await connection.ready()
        except TimeoutError:
            raise Unavailable(f"{endpoint}: no answer within {_CONNECT_SECONDS:g} s") from None
        except ssl.SSLError as error:
            raise TlsError(f"{endpoint}: {self._explained(error)}") from None
        except (ConnectionResetError, BrokenPipeError):
            raise Unavailable(f"{endpoint}: {self._closed()}") from None
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
            raise Unavailable(f"{endpoint}: {why or self._closed()}") from None
        except RpcError as error:
            if "SSL" in str(error):
                raise TlsError(f"{endpoint}: {self._explained(error)}") from None
            why = str(error)
            raise Unavailable(f"{endpoint}: {self._closed()}" if why.endswith(_ENDED) else why) from None
        else:
            is_usable = True
            return connection
        finally:
            if connection is not None and not is_usable:  # also if the attempt is cancelled with the server's answer
                connection.abort()

    def _closed(self) -> str:
        return f"{_CLOSED}; the server may {'not use' if self._settings.tls else 'require'} TLS"

    def _explained(self, error: Exception) -> str:
        """Say what is wrong with a TLS handshake."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"the server's certificate is not accepted: {error.verify_message}; check --etcd-cafile"
        text = str(error).upper().replace(" ", "_")
        if "WRONG_VERSION_NUMBER" in text or "RECORD_LAYER_FAILURE" in text:
            return "the server does not use TLS; remove the certificate options"
        if "ALERT" in text and ("CERTIFICATE" in text or "UNKNOWN_CA" in text or "DECRYPT_ERROR" in text):
            if not self._settings.certfile:
                return "the server requires a client certificate; give --etcd-certfile and --etcd-keyfile"
            return f"the server does not accept the client certificate {self._settings.certfile}; check --etcd-certfile"
        return str(error)


def _retrieved(attempt: asyncio.Task[Connection]) -> None:
    """Mark the error as seen: all who waited may have been cancelled."""
    if not attempt.cancelled():
        attempt.exception()
