"""The etcd itself: the values as they are stored, and a full disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ostinato.etcd import EtcdClient, EtcdSettings
from ostinato.etcd.wire import number
from ostinato.world import World

T = TypeVar("T")


def stored_values(settings: EtcdSettings) -> dict[str, bytes]:
    async def read(client: EtcdClient) -> dict[str, bytes]:
        found = await client.range(b"/registry/", b"/registry0")
        return {kv.key.decode(): kv.value for kv in found.kvs}

    return _run(settings, read)


@contextmanager
def full(settings: EtcdSettings) -> Iterator[None]:
    """Raise the alarm of a member that has no space left, until the end of the block."""

    async def activate(client: EtcdClient) -> None:
        member = (await client.status()).member_id
        await client._write("Maintenance/Alarm", number(1, 1) + number(2, member) + number(3, 1), 10.0)

    async def disarm(client: EtcdClient) -> None:
        for alarm in await client.alarms():
            await client.disarm(alarm)

    _run(settings, activate)
    try:
        yield
    finally:
        _run(settings, disarm)


def _run(settings: EtcdSettings, work: Callable[[EtcdClient], Awaitable[T]]) -> T:
    async def main() -> T:
        async with EtcdClient(settings, World.real(workers=1)) as client:
            return await work(client)

    return asyncio.run(main())
