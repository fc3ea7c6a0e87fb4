"""Streams of containerd with a misbehaving streaming server."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.plane.node.runtimes import ExecError
from ostinato.plane.node.runtimes.containerd import streams
from ostinato.plane.node.runtimes.containerd.streams import UpgradedSocket
from ostinato.world import World


def test_a_silent_streaming_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_TIMEOUT", 0.01)

    async def main() -> None:
        left = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()  # until the other side has closed
            writer.close()
            await writer.wait_closed()
            left.set()

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
            port = silent.sockets[0].getsockname()[1]
            with pytest.raises(ExecError, match=r"streaming server: timed out$"):
                await UpgradedSocket.open(f"http://127.0.0.1:{port}/exec", "v4.channel.k8s.io", World.real().clock)
            await left.wait()

    asyncio.run(main())
