"""The fence: until when this process may write.

A leader that is cut off does not know that it was replaced. So its right to write ends by itself: `renew_deadline`
seconds after the latest renewal that succeeded was *sent*. Others wait longer than that before they take over, and no
clock is compared with another.

- Before leadership, `deadline` is None, so that anybody may read; writes are refused by `FencedTransport`.
- From then on `deadline` is a time on the monotonic clock. It moves with each renewal, and never comes back once it
  was `closed`.

It also remembers when a write was last left open, without an answer or with none that says what became of it: nobody
knows when, or whether, the server will do it, so that the lease must not be given back at once.

The election's thread moves the fence and the event loop reads it: each is one assignment or one read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

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


class Fence:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        self._closed = False
        self._left_open_at = float("-inf")

    def deadline(self) -> float | None:
        """The time after which nothing may be sent; None as long as this process has never led."""
        return self._until

    @property
    def is_open(self) -> bool:
        """Whether this process may write now."""
        until = self._until
        return until is not None and self._clock.monotonic() <= until

    def extend(self, until: float) -> None:
        """Allow writes until then. After `close` it does nothing."""
        if not self._closed:
            self._until = until

    def close(self) -> None:
        """Allow nothing from now on."""
        self._closed = True
        self._until = float("-inf")

    def left_open(self) -> None:
        """A write may have been done, or may be done yet."""
        self._left_open_at = self._clock.monotonic()

    def was_left_open(self, within: float) -> bool:
        """Whether that happened in so many seconds."""
        return self._clock.monotonic() - self._left_open_at < within


class FencedTransport:
    """A transport that does not write before its process leads. The end is its inner transport's `deadline`."""

    def __init__(self, inner: Transport, fence: Fence) -> None:
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
            raise  # it was not sent
        except (asyncio.CancelledError, TransportError):
            self._fence.left_open()
            raise
        if answer.status >= 500:  # a server that gives up a request may do it all the same
            self._fence.left_open()
        return answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        if not self._fence.is_open:
            raise self._refusal(request)
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()

    def _refusal(self, request: Request) -> DeadlinePassed:
        what = f"{request.method} {self.host}{request.path}: not sent"
        if self._fence.deadline() is not None:
            return DeadlinePassed(f"{what}: this process leads no longer, and only the leader writes")
        return DeadlinePassed(
            f"{what}: this process does not lead, and only the leader writes; what must be written by all is for a "
            "runnable that needs no leader election"
        )
