"""A workload's way to a server process: HTTPS, with connections that are kept and can all be lost at once."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.faults.workload.api import Lost

_CONNECTION_ERRORS = (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError, ValueError)


@dataclass(frozen=True)
class Address:
    """Where a server listens, and the credentials of its administrator."""

    host: str
    port: int
    context: ssl.SSLContext

    @classmethod
    def of(cls, kubeconfig: Path) -> Address:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        pair = kubeconfig.with_name("pair.pem")
        pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        context.load_cert_chain(pair)
        host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        return cls(host, int(port), context)


@dataclass(eq=False)
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: workload/1\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)

    async def head(self) -> tuple[int, dict[bytes, bytes]]:
        """The status and the headers of the next response."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = (line.partition(b":") for line in lines[1:] if line)
        return int(lines[0].split(b" ")[1]), {name.lower(): value.strip() for name, _, value in headers}

    def abort(self) -> None:
        self.writer.transport.abort()


class HttpsApi:
    """One server, which may be down: `up` is set while it can be reached."""

    def __init__(self, address: Callable[[], Address], up: asyncio.Event, seconds: float = 20.0) -> None:
        self.address = address
        self.up = up
        self._seconds = seconds  # until a request without an answer is given up
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._busy = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def connect(self) -> Connection:
        address = self.address()
        opened = asyncio.open_connection(address.host, address.port, ssl=address.context, server_hostname=address.host)
        return Connection(*await opened)

    async def call(self, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[int, bytes]:
        if not self.up.is_set():
            raise Lost
        self._enter()
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._seconds):
                connection = self._idle.pop() if self._idle else await self._open()
                connection.send(method, f"{path}?{query}" if query else path, body)
                status, headers = await connection.head()
                answer = await self._body(connection, headers)
            self._idle.append(connection)
        except _CONNECTION_ERRORS:
            self._close(connection)
            raise Lost from None
        except BaseException:
            self._close(connection)
            raise
        finally:
            self._leave()
        return status, answer

    async def _open(self) -> Connection:
        connection = await self.connect()
        self._all.add(connection)
        return connection

    def _close(self, connection: Connection | None) -> None:
        if connection is not None:
            self._all.discard(connection)
            connection.abort()

    async def _body(self, connection: Connection, headers: dict[bytes, bytes]) -> bytes:
        if b"content-length" in headers:
            return await connection.reader.readexactly(int(headers[b"content-length"]))
        parts = []
        while size := int(await connection.reader.readline(), 16):
            parts.append((await connection.reader.readexactly(size + 2))[:-2])
        await connection.reader.readexactly(2)
        return b"".join(parts)

    async def stream(self, path: str, query: str, answered: Callable[[int], None]) -> AsyncIterator[bytes]:
        if not self.up.is_set():
            raise Lost
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._seconds):
                connection = await self._open()
                connection.send("GET", f"{path}?{query}")
                status, _ = await connection.head()
            answered(status)
            if status >= 300:
                return
            async with asyncio.timeout(4 * self._seconds):
                async for chunk in self._chunks(connection):
                    yield chunk
        except _CONNECTION_ERRORS:
            raise Lost from None
        finally:
            self._close(connection)

    async def _chunks(self, connection: Connection) -> AsyncIterator[bytes]:
        """The bytes of a chunked body, as they come."""
        while size := int(await connection.reader.readuntil(b"\r\n"), 16):
            while size:
                data = await connection.reader.read(size)
                if not data:
                    raise EOFError
                size -= len(data)
                yield data
            await connection.reader.readexactly(2)

    def _enter(self) -> None:
        self._busy += 1
        self._quiet.clear()

    def _leave(self) -> None:
        self._busy -= 1
        if not self._busy:
            self._quiet.set()

    async def lose_connections(self) -> None:
        """End all connections; return when no client waits for an answer."""
        for connection in self._all:
            with suppress(Exception):
                connection.abort()
        self._all.clear()
        self._idle.clear()
        await self._quiet.wait()

    async def available(self) -> None:
        await self.up.wait()
        await asyncio.sleep(0.001)  # a server that does not answer although it is up is not asked without a pause

    def state(self) -> tuple[int, int] | None:
        return None


class OneByteApi(HttpsApi):
    """Reads one byte at a time, from the smallest buffer."""

    async def connect(self) -> Connection:
        address = self.address()
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        made.settimeout(5.0)
        made.connect((address.host, address.port))  # to this machine: it takes no time
        opened = asyncio.open_connection(sock=made, ssl=address.context, server_hostname=address.host, limit=1 << 12)
        return Connection(*await opened)

    async def _chunks(self, connection: Connection) -> AsyncIterator[bytes]:
        size = b""
        while True:
            size += await connection.reader.readexactly(1)
            if size.endswith(b"\r\n") and size.strip():
                if not (left := int(size, 16)):
                    return
                for _ in range(left):
                    yield await connection.reader.readexactly(1)
                size = b""
