"""Exec sessions: the connection to a container's keeper."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from ostinato.plane.node.runtimes.process.sessions import _ExecConnection


def test_a_request_is_sent_whole_though_the_keeper_has_closed_the_connection_by_then() -> None:
    """A command that ends at once: the keeper replies and closes before the sender goes on."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        link = _ExecConnection(ours)
        send_fds = socket.send_fds

        def send_and_reply(*arguments: Any) -> int:
            sent = send_fds(*arguments)
            theirs.sendall(b'{"started":true}\n')
            theirs.close()
            return sent

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "send_fds", send_and_reply)
            await link.send({"command": ["true"]}, [])
        assert await link.reply() == {"started": True}
        link.close()

    asyncio.run(main())
