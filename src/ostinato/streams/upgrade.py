"""Upgraded connections: the response that switches protocols, and the socket after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol


class Socket(Protocol):
    """A bidirectional connection: WebSocket messages, or chunks of bytes."""

    async def send(self, data: bytes) -> None:
        """Send data and wait for room in the buffer. Data for a closed connection is dropped."""

    async def receive(self) -> bytes | None:
        """Receive the next message; None when the other side has closed."""


class Upgrade:
    """A response that upgrades the connection; `serve` runs on it until it returns.

    - `protocol`: the new protocol: "websocket" or "SPDY/3.1".
    - `subprotocol`: the negotiated subprotocol; "" if none was offered.
    - `text`: send WebSocket messages as text.
    - `head`: the response head of a proxied connection, sent unchanged; bytes are copied in both directions.
    """

    __slots__ = ("content_type", "head", "headers", "protocol", "serve", "status", "subprotocol", "text")

    def __init__(
        self,
        serve: Callable[[Socket], Awaitable[None]],
        protocol: str,
        subprotocol: str = "",
        *,
        text: bool = False,
        head: bytes | None = None,
        status: int = 101,
    ) -> None:
        self.serve = serve
        self.protocol = protocol
        self.subprotocol = subprotocol
        self.text = text
        self.head = head
        self.status = status
        self.content_type = ""
        self.headers: Sequence[tuple[str, str]] = ()

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> Upgrade:
        """Add headers and return this response."""
        self.headers = [*self.headers, *headers]
        return self

    @property
    def has_messages(self) -> bool:
        """Whether it carries WebSocket messages rather than bytes."""
        return self.protocol == "websocket" and self.head is None
