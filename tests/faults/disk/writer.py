"""A process that writes batches to a store and reports each when it is acknowledged.

python -m tests.faults.disk.writer STORE SEED BATCHES
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Write
from ostinato.world import World

CHECKPOINT_PAGES = 30  # much more often than SQLite does by default
State = dict[str, bytes]


def batches(seed: int, count: int) -> list[list[Write]]:
    """The same for the same seed."""
    rng = random.Random(seed)
    version, found = 1, []
    versions: dict[str, int] = {}
    for _ in range(count):
        batch = []
        for _ in range(rng.choice([1, 1, 2, 5, 40])):
            version += 1
            key = f"default/{rng.randrange(12)}"
            is_deletion = key in versions and rng.random() < 0.2
            data = None if is_deletion else b"%d:" % version + b"x" * rng.choice([10, 300, 6000])
            batch.append(Write("configmaps", key, version, data, versions.pop(key, 0)))
            if not is_deletion:
                versions[key] = version
        found.append(batch)
    return found


def states(seed: int, count: int) -> list[State]:
    """The objects after each batch; the first is the empty store."""
    now: State = {}
    found: list[State] = [{}]
    for batch in batches(seed, count):
        for each in batch:
            now.pop(each.key, None)
            if each.data is not None:
                now[each.key] = each.data
        found.append(dict(now))
    return found


def main() -> None:
    path, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    world = World.real(workers=1)
    log = SQLiteLog(path, world)
    log.load()
    log._database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    reports = os.open(path.with_name("acknowledged"), os.O_WRONLY | os.O_CREAT, 0o600)

    async def write() -> None:
        for number, batch in enumerate(batches(seed, count), 1):
            await log.append(batch)
            os.write(reports, b"%08d" % number)

    asyncio.run(write())
    log.close()
    world.executor.close()


if __name__ == "__main__":
    main()
