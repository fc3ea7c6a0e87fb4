"""Fence: the time until which this process may write as leader.

A leader that is partitioned from the server does not know that it was replaced. Its permission to write therefore
expires `renew_deadline` seconds after its last successful renewal was *sent*. Other candidates wait longer than that
before they take over; clocks of different machines are not compared.

- Before leadership `deadline` is None: reads are allowed, writes are rejected by `FencedTransport`.
- From then on `deadline` is a time on the monotonic clock, extended by each renewal. `close` is final.

The fence also records when the result of a write was last unknown (no response, or a server error): the server may
still execute the write, so the lease must not be released immediately.

The election's thread extends the fence and the event loop reads it; each access is one assignment or one read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from ostinato.client.transport.protocol import (
    DeadlinePassed,
    Request,
    Response,
    Transport,
    TransportError,
    Unreachable,
    WebSocket,
)
from ostinato.world import Clock

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class AnyFence(Protocol):
    """What `FencedTransport` asks: a `Fence`, or the one of the current reconcile (`ostinato.manager.sharding`)."""

    @property
    def refusal(self) -> str:
        """Why nothing may be written while it is not open."""

    @property
    def is_open(self) -> bool: ...

    def deadline(self) -> float | None: ...

    def unconfirmed_write(self) -> None: ...


class Fence:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        self._closed = False
        self._unconfirmed_at = float("-inf")

    def deadline(self) -> float | None:
        """Return the time after which nothing may be sent; None if this process has never led."""
        return self._until

    @property
    def is_open(self) -> bool:
        """Whether this process may write now."""
        until = self._until
        return until is not None and self._clock.monotonic() <= until

    @property
    def refusal(self) -> str:
        if self._until is not None:
            return "this process has lost leadership"
        return "this process is not the leader; write from a runnable with needs_leader_election=False"

    def extend(self, until: float) -> None:
        """Allow writes until a time. No effect after `close`."""
        if not self._closed:
            self._until = until

    def close(self) -> None:
        """Reject all requests from now on."""
        self._closed = True
        self._until = float("-inf")

    def unconfirmed_write(self) -> None:
        """Record a write whose result is unknown."""
        self._unconfirmed_at = self._clock.monotonic()

    def had_unconfirmed_write(self, within: float) -> bool:
        """Return whether the result of a write became unknown within so many seconds."""
        return self._clock.monotonic() - self._unconfirmed_at < within


class FencedTransport:
    """A transport that rejects writes unless the process leads. The inner transport enforces `deadline`."""

    def __init__(self, inner: Transport, fence: AnyFence) -> None:
        self._inner = inner
        self._fence = fence

    @property
    def host(self) -> str:
        return self._inner.host

    async def request(self, request: Request) -> Response:
        if request.method in _READS:
            return await self._inner.request(request)
        if not self._fence.is_open:
            raise self._refusal(request)
        try:
            answer = await self._inner.request(request)
        except (DeadlinePassed, Unreachable):
            raise  # the request was not sent
        except (asyncio.CancelledError, TransportError):
            self._fence.unconfirmed_write()
            raise
        if answer.status >= 500:  # the server may still execute the request
            self._fence.unconfirmed_write()
        return answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        if not self._fence.is_open:
            raise self._refusal(request)
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()

    def _refusal(self, request: Request) -> DeadlinePassed:
        return DeadlinePassed(f"{request.method} {self.host}{request.path}: not sent: {self._fence.refusal}")
