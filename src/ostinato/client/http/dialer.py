"""Dialer: opens connections to a server, with TLS, directly or through a proxy.

To a server with TLS a proxy opens a tunnel (CONNECT). To one without, it forwards each request, whose target is then an
absolute URL.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import aiohappyeyeballs

from ostinato.client.config.config import Config
from ostinato.client.config.proxies import Proxy, proxy_for
from ostinato.client.http.connection import Connection, ConnectionClosed, keepalive_socket
from ostinato.client.http.errors import reason_of, unreachable, untrusted, without_tls
from ostinato.client.transport.metrics import DNS, ClientMetrics
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut
from ostinato.http import unix_sockets
from ostinato.http.errors import InvalidHttp
from ostinato.http.hosts import join_host_port
from ostinato.http.response import ResponseParser
from ostinato.world import Clock
from ostinato.world.clock import Timeout

_CONNECT: Final = 30.0  # seconds for a connection, TLS included
_NEXT_ADDRESS: Final = 0.25  # seconds after which the next address is tried in parallel


class Dialer:
    def __init__(
        self,
        config: Config,
        context: ssl.SSLContext | None,
        clock: Clock,
        metrics: ClientMetrics | None,
        unix_socket: Path | None = None,
    ) -> None:
        self._unix_socket = unix_socket
        parts = urlsplit(config.url)
        self._server = (parts.hostname or "", parts.port or (80 if context is None else 443))
        self._server_name = config.tls.server_name or self._server[0]
        self._context = context
        self._clock = clock
        self._metrics = metrics
        self._limits: set[Timeout] = set()  # of the connections being opened
        self._closed = False
        self.proxy = proxy_for(config, os.environ)
        host = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/")
        forwarded = self.proxy is not None and context is None
        self.prefix = f"{parts.scheme}://{host}{path}" if forwarded else path
        """Put before the path of each request."""
        self.headers: list[tuple[str, str]] = [("Host", host)]
        """Headers that each request needs on this route."""
        if forwarded and self.proxy is not None and self.proxy.authorization is not None:
            self.headers.append(("Proxy-Authorization", self.proxy.authorization.reveal()))

    async def connect(self, what: str) -> Connection:
        """Open a connection. Raises `TransportError`. `what`: the request that needs it, for messages."""
        limit = self._clock.timeout(_CONNECT)
        try:
            async with limit:
                self._limits.add(limit)
                if self._unix_socket is not None:
                    return await _opened_unix(self._unix_socket)
                if self.proxy is None:
                    return await self._opened(*self._server, self._context, self._server_name)
                return await self._through(self.proxy, what)
        except ssl.SSLCertVerificationError as error:
            raise untrusted(error, what) from None
        except ssl.SSLError as error:
            raise without_tls(error, what) from None
        except TimeoutError:
            if self._closed:
                raise ConnectionLost(f"{what}: the transport is closed") from None
            raise RequestTimedOut(f"{what}: timed out while connecting") from None
        except OSError as error:
            raise unreachable(error, what) from None
        finally:
            self._limits.discard(limit)

    def close(self) -> None:
        """Abort the connections being opened."""
        self._closed = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(self._clock.monotonic())

    async def _through(self, proxy: Proxy, what: str) -> Connection:
        parts = urlsplit(proxy.url)
        secure = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if secure else 80)
        try:
            outer = ssl.create_default_context() if secure and self._context is None else self._context
            connection = await self._opened(host, port, outer if secure else None, host)
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or "unknown reason"
            raise ConnectionLost(
                f"{what}: TLS handshake with the proxy failed: {reason}; check proxy-url and certificate-authority"
            ) from None
        except OSError as error:
            raise ConnectionLost(f"{what}: the proxy cannot be reached: {reason_of(error)}; check proxy-url") from None
        if self._context is None:
            return connection
        try:
            return await self._tunnelled(connection, proxy, self._context, what)
        except BaseException:
            connection.abort()
            raise

    async def _tunnelled(self, outer: Connection, proxy: Proxy, context: ssl.SSLContext, what: str) -> Connection:
        host, port = self._server
        address = join_host_port(host, port)
        head = f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n"
        if proxy.authorization is not None:
            head += f"Proxy-Authorization: {proxy.authorization.reveal()}\r\n"
        reader = ResponseParser(bodiless=True)
        try:
            await outer.send(f"{head}\r\n".encode(), reader)
        except (InvalidHttp, ConnectionClosed, OSError):
            raise ConnectionLost(f"{what}: no valid HTTP response from the proxy; check proxy-url") from None
        if reader.status != 200:
            raise ConnectionLost(
                f"{what}: the proxy responded with status {reader.status}; check proxy-url and its password"
            )
        inner = Connection()
        made = await asyncio.get_running_loop().start_tls(
            cast("asyncio.Transport", outer.transport), inner, context, server_hostname=self._server_name
        )
        if made is None:
            raise ConnectionLost(f"{what}: the proxy closed the connection; check proxy-url")
        inner.connection_made(made)
        return inner

    async def _opened(self, host: str, port: int, context: ssl.SSLContext | None, name: str) -> Connection:
        made = await aiohappyeyeballs.start_connection(
            await self._addresses(host, port),
            happy_eyeballs_delay=_NEXT_ADDRESS,
            interleave=1,
            socket_factory=keepalive_socket,
        )
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, sock=made, ssl=context, server_hostname=None if context is None else name
            )
        except BaseException:
            made.close()
            raise
        return connection

    async def _addresses(self, host: str, port: int) -> Any:  # Any: getaddrinfo's tuples
        begun = self._clock.monotonic()
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
            )
        except UnicodeError:
            raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is not a valid host name") from None
        if self._metrics is not None and not _is_address(host):
            self._metrics.observe(DNS, self._clock.monotonic() - begun, {"host": host})
        return found


async def _opened_unix(path: Path) -> Connection:
    made = unix_sockets.connect(path)
    try:
        _, connection = await asyncio.get_running_loop().create_unix_connection(Connection, sock=made)
    except BaseException:
        made.close()
        raise
    return connection


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
