"""Two ends of a connection, without a connection."""

from __future__ import annotations

from ostinato.streams.inbox import Inbox


class End:
    """A `Socket`."""

    def __init__(self, incoming: Inbox, outgoing: Inbox) -> None:
        self.incoming = incoming
        self.outgoing = outgoing

    async def send(self, data: bytes) -> None:
        self.outgoing.put(data)
        await self.outgoing.room()

    async def receive(self) -> bytes | None:
        return await self.incoming.take()

    def close(self) -> None:
        self.outgoing.end()


def ends() -> tuple[End, End]:
    one, other = Inbox(), Inbox()
    return End(one, other), End(other, one)
