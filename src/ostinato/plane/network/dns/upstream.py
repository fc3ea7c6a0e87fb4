"""Upstream DNS servers: those of the machine, which answer for names outside of the cluster.

- A query is sent to one server after the other, over UDP or TCP as the client sent it, each with a time limit.
- Each query has a socket and an id of its own; a response that does not have its id and question is ignored.
- The number of queries at a time is limited.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Final

from ostinato.plane.network.dns import wire
from ostinato.plane.network.dns.wire import MalformedMessage, Question, Record
from ostinato.world import World

PORT: Final = 53
_TIMEOUT: Final = 2.0  # seconds for a server
_ATTEMPTS: Final = 3
_CONCURRENT: Final = 1_000
_LENGTH: Final = struct.Struct(">H")

FindServers = Callable[[], Sequence[str]]
"""Returns the addresses of the upstream servers; called for each query, since a machine may change its network."""


class UpstreamBusy(Exception):  # noqa: N818 - what is the case
    """Too many queries wait for an answer."""


class Upstream:
    def __init__(self, world: World, servers: FindServers, port: int = PORT) -> None:
        self._world = world
        self._servers = servers
        self._port = port
        self._free = _CONCURRENT

    async def forward(self, query: bytes, *, tcp: bool) -> bytes | None:
        """The response of the first server that answers; None if none does. Raises `UpstreamBusy`."""
        if not self._free:
            raise UpstreamBusy
        self._free -= 1
        try:
            return await self._forward(query, tcp=tcp)
        finally:
            self._free += 1

    async def resolve(self, question: Question) -> tuple[int, list[Record]]:
        """The response code and the answers to a question."""
        query = wire.encode_query(0, question)
        try:
            response = await self.forward(query, tcp=False)
            if response is not None and wire.is_truncated(response):
                response = await self.forward(query, tcp=True)
            if response is None:
                return wire.SERVER_FAILURE, []
            return wire.answers_of(response, query)
        except (UpstreamBusy, MalformedMessage):
            return wire.SERVER_FAILURE, []

    async def _forward(self, query: bytes, *, tcp: bool) -> bytes | None:
        sent = self._world.ids.token(2) + query[2:]  # not to be guessed, as the port is not
        servers = self._servers()
        for attempt in range(_ATTEMPTS if servers else 0):
            server = servers[attempt % len(servers)]
            try:
                async with self._world.clock.timeout(_TIMEOUT):
                    response = await (_over_tcp if tcp else _over_udp)(server, self._port, sent)
            except (OSError, EOFError):  # OSError includes TimeoutError
                continue
            if response is not None:
                return wire.with_id(response, int.from_bytes(query[:2]))
        return None


async def _over_udp(server: str, port: int, query: bytes) -> bytes | None:
    loop = asyncio.get_running_loop()
    response: asyncio.Future[bytes] = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Exchange(query, response), remote_addr=(server, port))
    try:
        transport.sendto(query)
        return await response
    finally:
        transport.close()


class _Exchange(asyncio.DatagramProtocol):
    def __init__(self, query: bytes, response: asyncio.Future[bytes]) -> None:
        self._query = query
        self._response = response

    def datagram_received(self, data: bytes, address: object) -> None:  # noqa: ARG002
        if not self._response.done() and wire.is_response_to(data, self._query):
            self._response.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self._response.done():
            self._response.set_exception(error)


async def _over_tcp(server: str, port: int, query: bytes) -> bytes | None:
    reader, writer = await asyncio.open_connection(server, port)
    try:
        writer.write(_LENGTH.pack(len(query)) + query)
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        response = await reader.readexactly(length)
        return response if wire.is_response_to(response, query) else None
    finally:
        writer.close()
