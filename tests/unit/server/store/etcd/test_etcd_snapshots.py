"""Snapshots of an etcd: what is saved is restored, revisions continue, and what must not be restored is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.etcd_cluster import EtcdCluster

from ostinato.etcd import EtcdClient, Unavailable, op, prefix_end
from ostinato.server.store.etcd.index import EtcdIndex
from ostinato.server.store.etcd.snapshots import snapshot
from ostinato.server.store.etcd.snapshots.contents import read
from ostinato.server.store.records import UnusableStore
from ostinato.world import World

Scene = Callable[[EtcdClient], Awaitable[None]]
IDS = World.real(workers=1).ids


def play(cluster: EtcdCluster, scene: Scene) -> None:
    async def main() -> None:
        settings = replace(cluster.settings, prefix=f"/{uuid4().hex}")
        async with EtcdClient(settings, World.real(workers=1)) as client:
            await scene(client)

    asyncio.run(main())


async def keys(client: EtcdClient) -> dict[str, bytes]:
    start = f"{client.settings.prefix}/".encode()
    found = (await client.range(start, prefix_end(start))).kvs
    return {kv.key.removeprefix(start).decode(): kv.value for kv in found}


async def put(client: EtcdClient, key: str, value: bytes, lease: int = 0) -> int:
    return (await client.put(f"{client.settings.prefix}/{key}".encode(), value, lease=lease)).revision


async def delete(client: EtcdClient, key: str) -> int:
    return (await client.delete_range(f"{client.settings.prefix}/{key}".encode())).revision


def test_what_is_saved_is_restored_at_later_revisions(cluster: EtcdCluster, tmp_path: Path) -> None:
    async def scene(client: EtcdClient) -> None:
        lease = (await client.lease_grant(500)).id
        for number in range(300):  # in pages of several levels
            await put(client, f"pods/n/{number:03}", bytes([number % 256]) * (20_000 if number % 50 == 0 else 300))
        await put(client, "events/n/e", b"e", lease)
        await put(client, "pods/n/gone", b"")
        await delete(client, "pods/n/gone")
        before = await keys(client)
        saved = await snapshot.save(client, tmp_path / "one.db", IDS)
        assert (tmp_path / "one.db").stat().st_mode & 0o777 == 0o600
        assert saved == snapshot.snapshot_status(tmp_path / "one.db", client.settings.prefix)
        assert (saved.objects, saved.revision) == (301, await client.revision())

        await put(client, "pods/n/new", b"")
        await put(client, "pods/n/001", b"changed")
        await delete(client, "pods/n/002")
        last = await delete(client, "events/n/e")
        done = await snapshot.restore(client, tmp_path / "one.db")
        assert (done.written, done.deleted) == (3, 1)
        assert done.revision > last
        assert await keys(client) == before
        event = (await client.range(f"{client.settings.prefix}/events/n/e".encode())).kvs[0]
        assert event.mod_revision > last
        assert 490 < await client.lease_time_to_live(event.lease) <= 500
        assert (await snapshot.restore(client, tmp_path / "one.db"))[:2] == (0, 0)

    play(cluster, scene)


def test_a_snapshot_has_the_state_of_its_revision(cluster: EtcdCluster, tmp_path: Path) -> None:
    async def scene(client: EtcdClient) -> None:
        prefix = client.settings.prefix.encode()
        await client.txn([], [op.put(prefix + b"/a", b"1"), op.put(prefix + b"/b", b"1")])
        await put(client, "a", b"2")
        revision = await delete(client, "b")
        await client.compact(revision, physical=True)
        await snapshot.save(client, tmp_path / "one.db", IDS)
        contents = read(tmp_path / "one.db")
        assert {key: kv.value for key, kv in contents.below(client.settings.prefix).items()} == {prefix + b"/a": b"2"}
        assert contents.revision == revision

    play(cluster, scene)


def test_a_restore_that_must_not_be_made_is_refused(cluster: EtcdCluster, tmp_path: Path) -> None:
    async def scene(client: EtcdClient) -> None:
        await put(client, "pods/n/a", b"1")
        file = tmp_path / "one.db"
        await snapshot.save(client, file, IDS)
        with pytest.raises(UnusableStore, match="exists already"):
            await snapshot.save(client, file, IDS)
        lease = (await client.lease_grant(15)).id
        await put(client, "masterleases/192.0.2.1", b"", lease)
        with pytest.raises(UnusableStore, match=r"servers use it: 192\.0\.2\.1; stop them first"):
            await snapshot.restore(client, file)
        await client.lease_revoke(lease)
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        for broken, why in ((bytes(data), "checksum"), (bytes(data)[:-32], "checksum"), (b"", "checksum")):
            (tmp_path / "broken.db").write_bytes(broken)
            with pytest.raises(UnusableStore, match=why):
                await snapshot.restore(client, tmp_path / "broken.db")
        with pytest.raises(UnusableStore, match="there is no snapshot at"):
            await snapshot.restore(client, tmp_path / "absent.db")
        other = EtcdClient(replace(client.settings, prefix="/elsewhere-else"), World.real(workers=1))
        with pytest.raises(UnusableStore, match="no keys below /elsewhere-else; check --etcd-prefix"):
            await snapshot.restore(other, file)
        await other.close()
        assert await keys(client) == {"pods/n/a": b"1"}

    play(cluster, scene)


def test_resource_versions_do_not_go_back_in_a_new_etcd(cluster: EtcdCluster, tmp_path: Path) -> None:
    async def scene(client: EtcdClient) -> None:
        for number in range(5):
            await put(client, "pods/n/a", str(number).encode())
        await snapshot.save(client, tmp_path / "one.db", IDS)
        with EtcdCluster.start(tmp_path / "new") as new:
            async with EtcdClient(
                replace(new.settings, prefix=client.settings.prefix), World.real(workers=1)
            ) as target:
                with pytest.raises(UnusableStore, match="resourceVersions would go back; start etcd on a directory"):
                    await snapshot.restore(target, tmp_path / "one.db")
                assert await keys(target) == {}

    play(cluster, scene)


def test_a_server_does_not_start_before_an_interrupted_restore_is_repeated(
    cluster: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(client: EtcdClient) -> None:
        await put(client, "configmaps/n/a", b'{"metadata":{"name":"a"}}')
        await snapshot.save(client, tmp_path / "one.db", IDS)
        await delete(client, "configmaps/n/a")

        async def interrupted(*_: object) -> None:
            raise Unavailable("interrupted")

        monkeypatch.setattr(client, "txn", interrupted)
        with pytest.raises(Unavailable):
            await snapshot.restore(client, tmp_path / "one.db")
        monkeypatch.undo()
        world = World.real(workers=1)
        async with EtcdClient(client.settings, world) as own:
            with pytest.raises(UnusableStore, match="a restore was interrupted; run `ostinato snapshot restore` again"):
                await EtcdIndex.open(own, client.settings.prefix, world)
        await snapshot.restore(client, tmp_path / "one.db")
        index = await EtcdIndex.open(EtcdClient(client.settings, world), client.settings.prefix, world)
        await index.close()

    play(cluster, scene)
