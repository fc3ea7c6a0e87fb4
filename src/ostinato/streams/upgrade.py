"""Upgraded connections: the answer that switches protocols, and the socket that it leads to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol


class Socket(Protocol):
    """A connection that goes both ways: messages of a WebSocket, or bytes in pieces of any size."""

    async def send(self, data: bytes) -> None:
        """Returns when there is room for more. What nobody reads any more is dropped."""

    async def receive(self) -> bytes | None:
        """What comes next; None when the other side has gone."""


class Upgrade:
    """An answer that turns the connection into one that goes both ways, for as long as `serve` takes.

    - `protocol`: what the connection speaks from now on: "websocket", "SPDY/3.1".
    - `subprotocol`: what of that; "" if nothing was offered.
    - `text`: messages of a WebSocket are text.
    - `head`: the head to send as it is, of a connection that is passed through; its bytes go both ways untouched.
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
        """This answer with more headers."""
        self.headers = [*self.headers, *headers]
        return self

    @property
    def has_messages(self) -> bool:
        """Whether it carries messages of a WebSocket, and not just bytes."""
        return self.protocol == "websocket" and self.head is None
