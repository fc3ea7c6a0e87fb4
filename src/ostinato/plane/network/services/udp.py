"""UDP relay of a frontend.

Datagrams of one client to one address form a flow and go to one backend while it exists. A flow expires after a minute
without datagrams; beyond a limit the least recently used flow is dropped.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict, deque
from typing import Any, Final

from ostinato.plane.network.services.balancer import Balancer
from ostinato.plane.network.services.datagrams import Client, DatagramSocket
from ostinato.plane.network.services.table import Backend
from ostinato.world import Clock, Timer

_IDLE_TIMEOUT: Final = 60.0
_MAX_FLOWS: Final = 1_000  # per frontend
_MAX_PENDING: Final = 64  # datagrams buffered while a flow connects


class UdpListener:
    def __init__(self, clock: Clock, balancer: Balancer) -> None:
        self._clock = clock
        self._balancer = balancer
        self._socket: DatagramSocket | None = None
        self._flows: OrderedDict[Client, _Flow] = OrderedDict()  # least recently used first
        self._timer: Timer | None = None

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    async def open(self, bound: socket.socket) -> None:
        """Listen with a bound socket; the listener closes it."""
        self._socket = DatagramSocket(bound, self._received)

    def stop_listening(self) -> None:
        """Stop listening and close all flows."""
        for flow in self._flows.values():
            flow.close()
        self._flows.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def end(self) -> None:
        self.stop_listening()

    def _received(self, data: bytes, client: Client) -> None:
        flow = self._flows.get(client)
        if flow is not None and (flow.closed or flow.backend not in self._balancer.backend_set.all):
            self._remove_flow(client)
            flow = None
        if flow is None:
            flow = self._start_flow(client)
        if flow is not None:
            flow.last_used = self._clock.monotonic()
            self._flows.move_to_end(client)
            flow.send(data)

    # Flows

    def _start_flow(self, client: Client) -> _Flow | None:
        candidates = self._balancer.candidates(client.host)
        if not candidates:
            return None
        self._balancer.record(client.host, candidates[0])
        if len(self._flows) >= _MAX_FLOWS:
            self._remove_flow(next(iter(self._flows)))
        flow = self._flows[client] = _Flow(self, client, candidates[0])
        if self._timer is None:
            self._timer = self._clock.timer(_IDLE_TIMEOUT, self._expire_flows)
        return flow

    def _remove_flow(self, client: Client) -> None:
        self._flows.pop(client).close()

    def _expire_flows(self) -> None:
        now = self._clock.monotonic()
        while self._flows and now - next(iter(self._flows.values())).last_used >= _IDLE_TIMEOUT:
            self._remove_flow(next(iter(self._flows)))
        self._timer = self._clock.timer(_IDLE_TIMEOUT / 2, self._expire_flows) if self._flows else None

    def reply(self, flow: _Flow, data: bytes) -> None:
        if self._socket is not None and self._flows.get(flow.client) is flow:
            flow.last_used = self._clock.monotonic()
            self._flows.move_to_end(flow.client)
            self._socket.send(data, flow.client)


class _Flow(asyncio.DatagramProtocol):
    """Datagrams between one client and its backend."""

    def __init__(self, listener: UdpListener, client: Client, backend: Backend) -> None:
        self.client = client
        self.backend = backend
        self.last_used = 0.0
        self.closed = False
        self._listener = listener
        self._transport: asyncio.DatagramTransport | None = None
        self._pending: deque[bytes] = deque(maxlen=_MAX_PENDING)
        self._connecting = asyncio.get_running_loop().create_task(self._start_flow())

    async def _start_flow(self) -> None:
        loop = asyncio.get_running_loop()
        remote = (self.backend.address, self.backend.port)
        try:
            transport, _ = await loop.create_datagram_endpoint(lambda: self, remote_addr=remote)
        except OSError:
            self.closed = True
            return
        if self.closed:
            transport.close()
            return
        self._transport = transport
        while self._pending:
            transport.sendto(self._pending.popleft())

    def send(self, data: bytes) -> None:
        if self._transport is None:
            self._pending.append(data)
        else:
            self._transport.sendto(data)

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:  # noqa: ARG002
        self._listener.reply(self, data)

    def error_received(self, error: Exception) -> None:  # noqa: ARG002
        """Close the flow: the next datagram starts a new one."""
        self.closed = True
