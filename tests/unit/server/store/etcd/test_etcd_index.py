"""Servers on a real etcd: what one writes all of them see, in one order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from tests.etcd_cluster import EtcdCluster

from ostinato.api.errors import Timeout
from ostinato.etcd import EtcdClient, Unavailable
from ostinato.server.store.collection import Collection
from ostinato.server.store.etcd import index as etcd_index
from ostinato.server.store.etcd import objects, past
from ostinato.server.store.etcd.compaction import Compactor
from ostinato.server.store.etcd.following import PendingWrite
from ostinato.server.store.etcd.index import EtcdIndex
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.etcd.options import EtcdOptions
from ostinato.server.store.records import Conflict, Entry, OutcomeUnknown, UnusableStore
from ostinato.world import World

Body = Callable[["Site"], Any]


class Site:
    """Servers on one etcd, each with its own index and the collection of ConfigMaps."""

    def __init__(self, cluster: EtcdCluster, world: World, prefix: str) -> None:
        self.cluster = cluster
        self.world = world
        self.prefix = prefix
        self.client = EtcdClient(cluster.settings, world)

    @asynccontextmanager
    async def server(self, **options: Any) -> AsyncIterator[Peer]:
        client = EtcdClient(self.cluster.settings, self.world)
        options.setdefault("compaction_interval", 0.0)
        index = await EtcdIndex.open(client, self.prefix, self.world, EtcdOptions(**options))
        try:
            yield Peer(index, client)
        finally:
            await index.close()


class Peer:
    def __init__(self, index: EtcdIndex, client: EtcdClient) -> None:
        self.index = index
        self.client = client
        self.maps = index.collection("configmaps", describe)

    async def put(self, key: str, value: str, *, expected: Entry | str | None = "newest", to: str = "") -> Entry:
        collection = self.index.collection(to, describe) if to else self.maps
        at = collection.newest(key) if expected == "newest" else expected
        assert not isinstance(at, str)
        namespace, _, name = key.partition("/")
        meta = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": ""}
        body: dict[str, Any] = {"metadata": meta, "data": {"k": value}}
        if to == "events":
            body = {"metadata": meta, "involvedObject": {}, "message": value}

        def encode(version: int) -> bytes:
            meta["resourceVersion"] = str(version)
            return msgspec.json.encode(body)

        return await self.index.put(collection, Entry(key, 0, b"", {}, {"k": value}, "u"), at, encode)

    async def delete(self, key: str) -> int:
        entry = self.maps.newest(key)
        assert entry is not None
        return await self.index.delete(self.maps, key, entry)


def describe(data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    obj = msgspec.json.decode(data)
    return {}, {"k": (obj.get("data") or {}).get("k", "")}, obj["metadata"].get("uid", "")


def shown(collection: Collection) -> dict[str, str]:
    return {entry.key: entry.fields["k"] for entry in collection.select()}


def run(cluster: EtcdCluster, play: Body) -> None:
    async def main() -> None:
        site = Site(cluster, World.real(workers=1), f"/{uuid4().hex}")
        try:
            async with asyncio.timeout(60):
                await play(site)
        finally:
            await site.client.close()

    asyncio.run(main())


def test_a_write_is_seen_by_its_server_at_once_and_by_others_that_catch_up(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            for number in range(20):
                entry = await one.put("n/a", str(number))
                assert one.maps.entries["n/a"] is entry
                assert msgspec.json.decode(entry.data)["metadata"]["resourceVersion"] == str(entry.version)
                assert one.index.version >= entry.version
                await other.index.catch_up()
                assert other.maps.entries["n/a"].version == entry.version
                assert msgspec.json.decode(other.maps.entries["n/a"].data) == msgspec.json.decode(entry.data)
            gone = await other.delete("n/a")
            await one.index.catch_up()
            assert (shown(one.maps), one.index.version >= gone) == ({}, True)
            assert [e.version for e in one.maps.history] == [e.version for e in other.maps.history]

    run(cluster, play)


def test_of_many_writers_one_wins_and_the_others_see_its_state(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            first = await one.put("n/a", "start")
            await other.index.catch_up()
            bases = {one: first, other: other.maps.entries["n/a"]}
            attempts = [peer.put("n/a", str(i), expected=bases[peer]) for i in range(8) for peer in (one, other)]
            results = await asyncio.gather(*attempts, return_exceptions=True)
            won = [result for result in results if isinstance(result, Entry)]
            lost = [result for result in results if isinstance(result, Conflict)]
            assert (len(won), len(lost)) == (1, 15)
            assert {conflict.current.version for conflict in lost if conflict.current} == {won[0].version}
            await one.put("n/b", "1", expected=None)
            with pytest.raises(Conflict):
                await other.put("n/b", "2", expected=None)
            assert shown(other.maps)["n/b"] == "1"

    run(cluster, play)


def test_a_counter_of_two_servers_loses_no_increment(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            await one.put("n/a", "0")

            async def add(peer: Peer) -> None:
                for _ in range(10):
                    while True:
                        current = peer.maps.newest("n/a")
                        value = 0 if current is None else int(current.fields["k"])
                        try:
                            await peer.put("n/a", str(value + 1), expected=current)
                            break
                        except Conflict:
                            continue

            await other.index.catch_up()
            await asyncio.gather(add(one), add(one), add(other), add(other))
            await one.index.catch_up()
            assert shown(one.maps) == {"n/a": "40"}

    run(cluster, play)


def test_watchers_of_every_server_get_every_event_in_one_order(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            subscriptions = [peer.maps.hub.subscribe() for peer in (one, other)]

            async def write(peer: Peer, name: str) -> None:
                for number in range(30):
                    await peer.put(f"n/{name}{number % 3}", str(number))
                await peer.delete(f"n/{name}0")

            await asyncio.gather(write(one, "a"), write(one, "b"), write(other, "c"), write(other, "d"))
            await asyncio.gather(one.index.catch_up(), other.index.catch_up())
            seen = [[(e.version, e.key, e.entry is None) for e in each.take()] for each in subscriptions]
            assert seen[0] == seen[1]
            versions = [version for version, _, _ in seen[0]]
            assert len(versions) == len(set(versions)) == 4 * 31
            assert versions == sorted(versions)

    run(cluster, play)


def test_a_revision_without_event_is_reached(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            revision = (await site.client.put(b"/elsewhere", b"")).revision
            await one.index.catch_up()
            assert one.index.version >= revision
            later = (await site.client.put(b"/elsewhere", b"")).revision
            await one.index.wait_for(later)

    run(cluster, play)


def test_objects_are_loaded_and_foreign_keys_are_left_alone(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        strange = f"{site.prefix}/peerserverleases/x".encode()
        await site.client.put(strange, b"?")
        async with site.server() as one:
            for number in range(5):
                await one.put(f"n/{number}", str(number))
        async with site.server() as other:
            assert shown(other.maps) == {f"n/{n}": str(n) for n in range(5)}
            await site.client.put(strange, b"!")
            await other.index.catch_up()
            assert (await site.client.range(strange)).kvs[0].value == b"!"

    run(cluster, play)


def test_objects_of_kinds_that_are_opened_later_are_kept(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            for key, value in (("n/a", "AAAA"), ("n/a", "BBBB"), ("n/b", "AAAA")):
                await one.put(key, value, to="secrets")
            await other.index.catch_up()
            secrets = other.index.collection("secrets", describe)
            assert shown(secrets) == {"n/a": "BBBB", "n/b": "AAAA"}

    run(cluster, play)


def test_an_unreadable_value_is_not_overwritten_and_does_not_stop_the_others(
    cluster: EtcdCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            entry = await one.put("n/a", "1")
            await site.client.put(f"{site.prefix}/configmaps/n/a".encode(), b"nonsense")
            with pytest.raises(Exception, match="configmaps n/a: the stored object cannot be read"):
                await one.put("n/a", "2", expected=entry)
            await one.put("n/b", "1")
            assert "stored object cannot be read collection=configmaps key=n/a" in caplog.text

    run(cluster, play)


def test_after_a_compaction_of_unseen_events_the_state_is_loaded_and_watches_end(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            await one.put("n/kept", "1")
            await one.put("n/gone", "1")
            await other.index.catch_up()
            subscription = other.maps.hub.subscribe()
            heard: list[tuple[str, bool]] = []
            other.maps.hub.listen(lambda event: heard.append((event.key, event.entry is None)))
            await pause(other)
            await one.put("n/kept", "2")
            await one.put("n/new", "1")
            await one.delete("n/gone")
            last = (await site.client.put(b"/elsewhere", b"")).revision
            await site.client.compact(last)
            other.index._run("resumed watch", other.index._follow)
            await other.index.wait_for(last)
            assert shown(other.maps) == {"n/kept": "2", "n/new": "1"}
            assert subscription.closed
            assert sorted(heard) == [("n/gone", True), ("n/kept", False), ("n/new", False)]
            assert other.index.compacted == other.index.version
            await other.put("n/kept", "3")

    run(cluster, play)


async def pause(peer: Peer) -> None:
    """End the watch of a server, as a long stop of its process does."""
    (watch,) = [task for task in peer.index._tasks if task.get_name() == "etcd watch"]
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


def test_a_write_without_answer_is_unknown_and_happens_at_most_once(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            sent = one.client.txn

            async def lost(*arguments: Any, **options: Any) -> Any:
                await sent(*arguments, **options)
                raise Unavailable("connection lost", may_have_happened=True)

            monkeypatch.setattr(one.client, "txn", lost)
            with pytest.raises(OutcomeUnknown):
                await one.put("n/a", "1")
            monkeypatch.undo()
            await one.index.catch_up()
            assert shown(one.maps) == {"n/a": "1"}  # it has happened
            await one.put("n/a", "2")

    run(cluster, play)


def test_a_cancelled_write_does_not_block_the_next_one(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            for number in range(20):
                task = asyncio.get_running_loop().create_task(one.put("n/a", f"x{number}"))
                await asyncio.sleep(0.0002 * number)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                while True:
                    await one.index.catch_up()
                    try:
                        await one.put("n/a", str(number))
                        break
                    except Conflict:
                        continue
                assert shown(one.maps) == {"n/a": str(number)}

    run(cluster, play)


def test_events_have_a_lease_that_they_share(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server(event_ttl=100.0) as one:
            for name in ("a", "b"):
                await one.put(f"n/{name}", "m", to="events")
            await one.put("n/c", "1")
            found = (await site.client.range(f"{site.prefix}/".encode(), f"{site.prefix}0".encode())).kvs
            leases = {kv.key.rpartition(b"/")[2]: kv.lease for kv in found}
            assert leases[b"a"] == leases[b"b"] != 0
            assert leases[b"c"] == 0
            assert 100 <= await site.client.lease_time_to_live(leases[b"a"]) <= 105
            await site.client.lease_revoke(leases[b"a"])  # as if it had expired
            await one.index.catch_up()
            assert one.index.collections["events"].entries == {}
            await one.put("n/d", "m", to="events")  # with a new lease

    run(cluster, play)


def test_one_of_the_servers_compacts_to_the_revision_of_the_previous_interval(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        await site.client.delete_range(b"compact_rev_key")
        one, other = (Compactor(site.client, site.world.clock, 300.0) for _ in range(2))
        await one.compact()  # the first one creates the key
        await other.compact()
        first = (await site.client.range(b"compact_rev_key")).kvs[0]
        assert (first.value, first.version) == (b"0", 1)
        before = first.mod_revision
        await site.client.put(b"/elsewhere", b"")
        await one.compact()
        await other.compact()
        second = (await site.client.range(b"compact_rev_key")).kvs[0]
        assert (int(second.value), second.version) == (before, 2)

    run(cluster, play)


def test_a_reader_does_not_join_a_question_that_is_under_way(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            asked: list[int] = []
            ask = one.client.ask_revision

            def counted(*arguments: Any) -> bool:
                asked.append(1)
                return ask(*arguments)

            monkeypatch.setattr(one.client, "ask_revision", counted)
            loop = asyncio.get_running_loop()
            first = [loop.create_task(one.index.catch_up()) for _ in range(50)]
            while not asked:  # noqa: ASYNC110 - turns of the loop
                await asyncio.sleep(0)
            second = [loop.create_task(one.index.catch_up()) for _ in range(50)]
            await asyncio.gather(*first, *second)
            assert len(asked) == 2

    run(cluster, play)


class Held:
    """A watch whose batches the test delivers."""

    def __init__(self, index: EtcdIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        self._batches: list[Any] = []
        self._receive = index._receive
        self._is_open = False
        monkeypatch.setattr(index, "_receive", self._take)

    def _take(self, batch: Any) -> None:
        if self._is_open:
            self._receive(batch)
        else:
            self._batches.append(batch)

    def release(self) -> None:
        self._is_open = True
        for batch in self._batches:
            self._receive(batch)


def test_an_own_write_needs_no_event_if_it_is_the_next_revision(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            held = Held(one.index, monkeypatch)
            before = one.index.version
            first = await one.put("n/a", "1")
            await one.put("n/a", "2")
            await asyncio.gather(*(one.put(f"n/{number}", "x") for number in range(20)))
            last = await one.delete("n/a")
            assert last == one.index.version
            assert (await one.client.revision()) == last
            held.release()  # all of it is known
            events = one.index.since(one.maps, before)
            assert [event.version for event in events] == list(range(first.version, last + 1))
            assert [event.key for event in events[:2]] == ["n/a", "n/a"]
            assert events[-1].entry is None
            assert len(shown(one.maps)) == 20

    run(cluster, play)


def test_an_own_write_after_one_of_another_server_waits_for_its_event(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one, site.server() as other:
            before = one.index.version
            held = Held(one.index, monkeypatch)
            theirs = await other.put("n/theirs", "1")
            writes = [asyncio.ensure_future(one.put(f"n/{number}", "x")) for number in range(5)]
            while (await one.client.revision()) < theirs.version + 5:  # noqa: ASYNC110 - of etcd
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert not any(write.done() for write in writes)
            assert one.index.version == before
            held.release()
            await asyncio.gather(*writes)
            events = one.index.since(one.maps, before)
            assert [event.version for event in events] == list(range(theirs.version, theirs.version + 6))
            assert events[0].key == "n/theirs"
            assert not one.index._answered

    run(cluster, play)


def test_the_answer_to_a_write_is_not_applied_to_a_state_that_was_loaded_since(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            index, before = one.index, one.index.version
            values = index._values
            body = b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"%d"}}' % values.placeholder
            draft = values.draft(one.maps, b"/k", body)
            for epoch, outdated in ((index._epoch - 1, False), (index._epoch, True)):
                entry = Entry("n/a", 0, b"", {}, {"k": ""}, "u")
                index._is_outdated = outdated
                index._confirm(PendingWrite(one.maps, "n/a", entry, draft, epoch), before + 1)
                assert index.version == before
                assert shown(one.maps) == {}
            index._answered.clear()
            index._is_outdated = False

    run(cluster, play)


def test_the_past_is_read_in_pages_up_to_the_limit(cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(site: Site) -> None:
        monkeypatch.setattr(past, "_PAGE", 3)
        async with site.server() as one:
            for number in range(10):
                await one.put(f"n/{number}", str(number))
            await one.put("other/a", "x")
            version = one.index.version
            await one.put("n/3", "new")
            await one.delete("n/4")
            await site.client.put(f"{site.prefix}/configmaps/n/5".encode(), b"damaged")
            await one.index.catch_up()
            newest = one.index.version

            async def read(*arguments: Any) -> tuple[dict[str, str], int]:
                entries, beyond = await one.index.select_past(one.maps, *arguments)
                return {entry.key: entry.fields["k"] for entry in entries}, beyond

            assert await read(version, "n/", "", 0) == ({f"n/{number}": str(number) for number in range(10)}, 0)
            assert await read(version, "n/", "n/2", 5) == ({f"n/{number}": str(number) for number in range(3, 8)}, 2)
            assert await read(version, "n/", "n/9", 5) == ({}, 0)
            assert await read(version, "", "n/8", 0) == ({"n/9": "9", "other/a": "x"}, 0)
            assert await read(newest, "n/", "n/2", 2) == ({"n/3": "new", "n/6": "6"}, 3)
            outdated = one.index.is_outdated(one.maps, "n/3")
            assert outdated is False

    run(cluster, play)


def test_a_server_starts_while_a_member_is_down(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        world = site.world
        for endpoints in (("127.0.0.1:1", *cluster.endpoints), (*cluster.endpoints, "127.0.0.1:1")):
            client = EtcdClient(replace(cluster.settings, endpoints=endpoints), world)
            index = await EtcdIndex.open(client, site.prefix, world)
            peer = Peer(index, client)
            await peer.put("n/a", endpoints[0])
            await index.catch_up()
            await index.close()

    run(cluster, play)


def test_objects_are_loaded_although_pages_are_compacted_meanwhile(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(site: Site) -> None:
        monkeypatch.setattr(objects, "_FIRST_PAGE", 2)
        async with site.server() as one:
            for number in range(5):
                await one.put(f"n/{number}", str(number))
        read = site.client.range

        async def compacting(*arguments: Any, **options: Any) -> Any:
            found = await read(*arguments, **options)
            await site.client.compact((await site.client.put(b"/elsewhere", b"")).revision)
            return found

        monkeypatch.setattr(site.client, "range", compacting)
        _, found = await objects.load(site.client, Layout(site.prefix))
        assert sorted(found["configmaps"]) == [f"n/{number}" for number in range(5)]

    run(cluster, play)


def test_an_etcd_that_has_lost_its_data_is_noticed_and_loaded_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            await one.put("n/old", "1")
            for number in range(3):
                last = await one.put("n/counted", str(number))
            subscription = one.maps.hub.subscribe()
            (member,) = site.cluster.members
            member.kill()
            rmtree(tmp_path / "lost" / member.name)
            member.restart()
            site.cluster.wait_healthy()
            key = f"{site.prefix}/configmaps/n/new".encode()
            await site.client.put(key, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"new","uid":"u"}}')
            await caught_up(one)
            assert shown(one.maps) == {"n/new": ""}
            assert one.index.version < last.version
            assert subscription.closed
            assert "etcd has lost writes, loading all objects" in caplog.text
            await one.put("n/old", "2")

    with EtcdCluster.start(tmp_path / "lost") as own:
        run(own, play)


async def caught_up(peer: Peer) -> None:
    """Wait until reads succeed again."""
    while True:
        try:
            return await peer.index.catch_up()
        except Timeout:
            continue


def test_a_write_to_an_etcd_that_has_lost_its_data_is_not_acknowledged(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        async with site.server() as one:
            known = await one.put("n/old", "1")
            await one.put("n/other", "1")
            (member,) = site.cluster.members
            member.kill()
            rmtree(tmp_path / "lost" / member.name)
            member.restart()
            site.cluster.wait_healthy()
            await one.client.revision()  # on a new connection
            with pytest.raises(OutcomeUnknown, match="etcd has lost writes"):
                await one.put("n/new", "1")
            await caught_up(one)
            assert shown(one.maps) == {"n/new": "1"}
            with pytest.raises(Conflict):
                await one.put("n/old", "2", expected=known)

    with EtcdCluster.start(tmp_path / "lost") as own:
        run(own, play)


def test_the_watch_keeps_up_with_revisions_of_other_keys(cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(site: Site) -> None:
        monkeypatch.setattr(etcd_index, "_CHECK_SECONDS", 0.01)
        async with site.server() as one:
            revision = (await site.client.put(b"/elsewhere", b"")).revision
            while one.index.version < revision:  # noqa: ASYNC110 - the regular check
                await asyncio.sleep(0.01)

    run(cluster, play)


def test_a_kind_with_an_unreadable_object_can_be_opened_when_it_is_readable(cluster: EtcdCluster) -> None:
    async def play(site: Site) -> None:
        key = f"{site.prefix}/secrets/n/a".encode()
        await site.client.put(key, b"nonsense")
        async with site.server() as one:
            for _ in range(2):
                with pytest.raises(UnusableStore, match="secrets/n/a"):
                    one.index.collection("secrets", describe)
            await site.client.put(key, b'{"metadata":{"name":"a","uid":"u"}}')
            await one.index.catch_up()
            assert shown(one.index.collection("secrets", describe)) == {"n/a": ""}

    run(cluster, play)
