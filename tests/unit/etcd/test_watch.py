"""Watches on one member: events, progress, compaction, backpressure."""

from __future__ import annotations

import asyncio

import pytest
from tests.etcd_cluster import EtcdCluster
from tests.unit.etcd.test_client import play

from ostinato.etcd import Compacted, EtcdClient, Event, Watch, op, prefix_end


async def events(watch: Watch, count: int) -> list[Event]:
    found: list[Event] = []
    async for batch in watch:
        assert all(event.kv.mod_revision <= batch.revision for event in batch.events)
        found += batch.events
        if len(found) >= count:
            break
    return found


def shown(found: list[Event]) -> list[str]:
    return [f"{'-' if event.is_delete else '+'}{event.kv.key.decode()}={event.kv.value.decode()}" for event in found]


def test_watches_on_one_stream_have_their_own_events(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        start = (await etcd.put(b"/w/a", b"1")).revision
        async with etcd.watch_stream() as stream:
            all_ = stream.watch(b"/w/", prefix_end(b"/w/"), start_revision=start)
            one = stream.watch(b"/w/b")
            puts = stream.watch(b"/w/", prefix_end(b"/w/"), start_revision=start, no_delete=True, prev_kv=True)
            deletions = stream.watch(b"/w/", prefix_end(b"/w/"), no_put=True, prev_kv=True)
            await asyncio.gather(one.created(), deletions.created())
            await etcd.put(b"/w/b", b"2")
            await etcd.txn([], [op.delete(b"/w/a"), op.put(b"/w/c", b"3")])
            await etcd.delete_range(b"/w/b")
            found = await events(all_, 5)
            assert shown(found) == ["+/w/a=1", "+/w/b=2", "-/w/a=", "+/w/c=3", "-/w/b="]
            assert [event.kv.mod_revision - start for event in found] == [0, 1, 2, 2, 3]
            assert shown(await events(one, 2)) == ["+/w/b=2", "-/w/b="]
            assert shown(await events(puts, 3)) == ["+/w/a=1", "+/w/b=2", "+/w/c=3"]
            gone = await events(deletions, 2)
            assert shown(gone) == ["-/w/a=", "-/w/b="]
            assert [event.prev.value for event in gone if event.prev] == [b"1", b"2"]
            assert stream.reconnections == 0

    play(one_member, scene)


def test_a_request_for_progress_is_answered_on_every_watch(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream:
            watches = [stream.watch(key) for key in (b"/progress/a", b"/progress/b")]
            for watch in watches:
                await watch.created()
            assert stream.orders_progress is ((await etcd.status()).version >= "3.5.13")
            now = (await etcd.put(b"/progress/elsewhere", b"")).revision
            stream.request_progress()
            for watch in watches:
                batch = await anext(aiter(watch))
                assert (batch.revision, batch.events) == (now, [])

    play(one_member, scene)


def test_a_compacted_start_is_an_error_with_the_oldest_revision(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        old = (await etcd.put(b"/wc/a", b"1")).revision
        now = (await etcd.put(b"/wc/a", b"2")).revision
        await etcd.compact(now)
        async with etcd.watch_stream() as stream:
            late, other = stream.watch(b"/wc/a", start_revision=old), stream.watch(b"/wc/a", start_revision=now)
            with pytest.raises(Compacted) as caught:
                await anext(aiter(late))
            assert caught.value.revision == now
            assert shown(await events(other, 1)) == ["+/wc/a=2"]

    play(one_member, scene)


def test_a_cancelled_watch_ends_and_others_continue(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream:
            gone, stays = stream.watch(b"/wd/a"), stream.watch(b"/wd/a")
            await asyncio.gather(gone.created(), stays.created())
            reading = asyncio.ensure_future(events(gone, 1))
            await asyncio.sleep(0)
            await gone.cancel()
            assert await reading == []
            await etcd.put(b"/wd/a", b"x")
            assert shown(await events(stays, 1)) == ["+/wd/a=x"]
            assert [batch async for batch in gone] == []
        assert [batch async for batch in stays] == []

    play(one_member, scene)


def test_a_watch_that_is_not_read_stops_its_stream_and_loses_nothing(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream, etcd.watch_stream() as other:
            slow, fast = stream.watch(b"/slow/", prefix_end(b"/slow/")), other.watch(b"/slow/", prefix_end(b"/slow/"))
            await asyncio.gather(slow.created(), fast.created())
            value = bytes(250_000)
            for index in range(60):  # 15 MB: more than the window and the buffers
                await etcd.put(b"/slow/%d" % index, value)
            expected = [b"/slow/%d" % index for index in range(60)]
            assert [event.kv.key for event in await events(fast, 60)] == expected
            assert sum(size for _, size in slow._batches) < 6 << 20
            assert [event.kv.key for event in await events(slow, 60)] == expected

    play(one_member, scene)


def test_a_large_transaction_is_one_batch(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream:
            watch = stream.watch(b"/frag/", prefix_end(b"/frag/"), prev_kv=True)
            await watch.created()
            for content in (b"a", b"b"):
                await etcd.txn([], [op.put(b"/frag/%03d" % index, content * 12_000) for index in range(120)])
            batches = [await anext(aiter(watch)) for _ in range(2)]
            assert [len(batch.events) for batch in batches] == [120, 120]
            assert {event.prev.value[:1] for event in batches[1].events if event.prev} == {b"a"}

    play(one_member, scene)
