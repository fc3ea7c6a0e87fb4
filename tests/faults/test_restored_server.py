"""Caches of a server whose store was restored: they hold what the snapshot holds, and nothing of what was lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from ostinato.cache import CachedClient
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.sqlite import snapshot
from ostinato.world import World
from tests.faults.damaged_store import killed, refusal
from tests.stage.kinds import config_map
from tests.unit.cache.lagging import LaggingStage, staged
from tests.unit.server.store.test_sqlite import SOURCE, WRITER


async def started(stage: LaggingStage, path: Path) -> Server:
    """A server with the store at a path, in the place of the one before it."""
    server = Server(stage.world, SQLiteLog(path, stage.world))
    await server.start()
    stage.late._inner = InProcessTransport(server)
    return server


async def contents(client: CachedClient) -> dict[str, tuple[str, dict[str, str]]]:
    found = await client.list(ConfigMap, namespace="default")
    return {each.metadata.name: (each.metadata.resource_version, each.data) for each in found}


@staged
async def test_caches_follow_a_restored_server(stage: LaggingStage) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path, file = Path(directory) / "store.db", Path(directory) / "snapshot"
        server = await started(stage, path)
        client = await stage.watching(ConfigMap)
        for name in ("kept", "changed", "deleted"):
            await client.create(config_map(name, key="old"))
        snapshot.save(path, file, stage.world.ids)
        before = await contents(client)
        await client.apply(config_map("changed", key="new"), force=True)
        await client.delete(ConfigMap, "deleted")
        for number in range(5):
            await client.create(config_map(f"lost-{number}"))
        assert len(await contents(client)) == 7
        await server.close()

        snapshot.restore(file, path, stage.world.ids)
        server = await started(stage, path)
        await stage.world.clock.sleep(90)
        assert await contents(client) == before
        await client.create(config_map("new", key="new"))
        await client.apply(config_map("changed", key="newer"), force=True)
        after = await contents(client)
        assert set(after) == {"kept", "changed", "deleted", "new"}
        assert after["changed"][1] == {"key": "newer"}
        assert all(int(after[name][0]) > snapshot.VERSION_JUMP for name in ("new", "changed"))
        await stage.informers.stop()
        await server.close()


@pytest.mark.parametrize("step", range(4))
def test_a_restore_that_was_interrupted_is_refused_by_the_server_and_can_be_made_again(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before any of its renames: the mark is ahead of whatever files there are."""
    world = World.real(workers=1)
    file = tmp_path / "snapshot"
    path = killed(tmp_path, world)
    snapshot.save(path, file, world.ids)
    rename, done = Path.rename, 0

    def interrupted(self: Path, target: Path) -> Path:
        nonlocal done
        done += 1
        if done > step:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", interrupted)
        if step == 3:
            snapshot.restore(file, path, world.ids)
        else:
            with pytest.raises(KeyboardInterrupt):
                snapshot.restore(file, path, world.ids)
    if step < 3:
        assert refusal(path, world) is not None
        snapshot.restore(file, path, world.ids)
    assert refusal(path, world) is None
    kept = {each.name for each in path.parent.iterdir() if "replaced" in each.name}
    assert kept >= {"store.db.replaced-1-mark"}
    world.executor.close()


def test_snapshots_of_a_store_under_load_are_whole_and_disturb_no_writer(tmp_path: Path) -> None:
    world = World.real(workers=1)
    path = tmp_path / "store.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert writer.stdout is not None
    versions = []
    with writer.stdout:
        for number in range(6):
            acknowledged = dict(writer.stdout.readline().decode().split() for _ in range(150))
            saved = snapshot.save(path, tmp_path / f"snapshot-{number}", world.ids)
            assert saved.in_use
            versions.append(saved.version)
            with closing(sqlite3.connect(saved.path)) as database:
                found = dict(database.execute("SELECT key, data FROM object"))
            for key, written in acknowledged.items():
                assert int(found[key].decode().partition(":")[2]) >= int(written)
        assert writer.poll() is None
        writer.kill()
    writer.wait()
    assert versions == sorted(set(versions))
    assert snapshot.status(path).version >= versions[-1]
    world.executor.close()
