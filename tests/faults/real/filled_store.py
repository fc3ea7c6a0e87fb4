"""A store with many objects, made without a server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Write
from ostinato.world import World

_BATCH = 5000
_OBJECT = (
    b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s%d","namespace":"default","uid":"%036d",'
    b'"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"filler"}},'
    b'"data":{"key":"' + b"YWJj" * 60 + b'"},"type":"Opaque"}'
)


async def fill(path: Path, objects: int) -> None:
    """Add Secrets to a store that no server uses."""
    world = World.real(workers=1)
    with closing(SQLiteLog(path, world)) as log:
        last, _ = log.load()
        for start in range(0, objects, _BATCH):
            writes = []
            for number in range(start, min(start + _BATCH, objects)):
                version = last + number + 1
                writes.append(Write("secrets", f"default/s{number}", version, _OBJECT % (number, number, version)))
            await log.append(writes)
    world.executor.close()
