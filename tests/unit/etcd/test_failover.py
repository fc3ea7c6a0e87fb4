"""A cluster of three members with TLS: members are killed and frozen, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.etcd_cluster import EtcdCluster
from tests.unit.etcd.test_client import play

from ostinato.etcd import DeadlineExceeded, EtcdClient, NoLeader, Unavailable, Watch, compare, op, prefix_end


@pytest.fixture(scope="module")
def three_members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd"), members=3, tls=True) as cluster:
        yield cluster


class Counter:
    """A writer that increases the number in its key by compare-and-swap, and remembers what it was told."""

    def __init__(self, etcd: EtcdClient, key: bytes) -> None:
        self._etcd = etcd
        self.key = key
        self.acknowledged: list[int] = []
        self.unknown = 0
        self.refused = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with suppress(Unavailable):
                found = (await self._etcd.range(self.key)).kvs
                number, revision = (int(found[0].value), found[0].mod_revision) if found else (0, 0)
                try:
                    done = await self._etcd.txn(
                        [compare.mod_revision(self.key, "=", revision)], [op.put(self.key, b"%d" % (number + 1))]
                    )
                    assert done.succeeded, f"{self.key!r} has another writer"
                    self.acknowledged.append(number + 1)
                except Unavailable as error:
                    self.unknown += error.may_have_happened
                    self.refused += not error.may_have_happened


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - of what others do
        await asyncio.sleep(0.01)


async def followed(watch: Watch, seen: dict[bytes, list[tuple[int, int]]]) -> None:
    """Record the numbers of each key, with the version that etcd counts."""
    async for batch in watch:
        for event in batch.events:
            seen.setdefault(event.kv.key, []).append((int(event.kv.value), event.kv.version))


def test_writes_and_watches_survive_the_loss_of_members(three_members: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        counters = [Counter(etcd, b"/count/%d" % index) for index in range(10)]
        seen: dict[bytes, list[tuple[int, int]]] = {}
        async with etcd.watch_stream() as stream:
            watch = stream.watch(b"/count/", prefix_end(b"/count/"))
            await watch.created()
            following = asyncio.ensure_future(followed(watch, seen))
            running = [asyncio.ensure_future(counter.run(stop)) for counter in counters]
            for victim in ("leader", "in use"):
                await until(lambda: all(len(each.acknowledged) >= 3 for each in counters))
                if victim == "leader":
                    member = await loop.run_in_executor(None, three_members.leader)
                else:
                    endpoint = etcd._transport._link.endpoint
                    (member,) = [each for each in three_members.members if each.endpoint == endpoint]
                member.kill()
                goals = [len(counter.acknowledged) + 3 for counter in counters]
                await until(lambda: all(len(c.acknowledged) >= g for c, g in zip(counters, goals, strict=True)))  # noqa: B023
                member.restart()
                await loop.run_in_executor(None, three_members.wait_healthy, member)
            stop.set()
            await asyncio.gather(*running)
            final = {kv.key: kv for kv in (await etcd.range(b"/count/", prefix_end(b"/count/"))).kvs}
            await until(
                lambda: following.done() or all(len(seen.get(key, [])) >= kv.version for key, kv in final.items())
            )
            assert not following.done(), following.exception()
            following.cancel()
        for counter in counters:
            last = int(final[counter.key].value)
            assert seen[counter.key] == [(number, number) for number in range(1, last + 1)]
            assert counter.acknowledged == sorted(set(counter.acknowledged))
            assert last - len(counter.acknowledged) <= counter.unknown

    play(three_members, scene)


def test_a_frozen_member_is_left(three_members: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream:
            watch = stream.watch(b"/frozen")
            await asyncio.gather(watch.created(), etcd.revision())
            endpoints = {etcd._transport._link.endpoint, stream._link.endpoint}
            frozen = [member for member in three_members.members if member.endpoint in endpoints][:1]
            for member in frozen:
                member.stop()
            try:
                with suppress(Unavailable):  # if it was sent to the frozen one
                    await etcd.put(b"/frozen", b"1", within=20)
                await etcd.put(b"/frozen", b"2", within=20)
                values = []
                while b"2" not in values:
                    values += [event.kv.value for event in (await anext(aiter(watch))).events]
            finally:
                for member in frozen:
                    member.cont()

    play(three_members, scene)
    three_members.wait_healthy()


def test_a_member_without_its_majority_refuses(three_members: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        await etcd.put(b"/lonely", b"1")
        others = three_members.members[1:]
        for member in others:
            member.kill()
        try:
            async with EtcdClient(three_members.settings, etcd._world) as other:
                while True:  # until the member notices that it has no leader
                    with suppress(DeadlineExceeded):
                        with pytest.raises(Unavailable) as refused:
                            await other.put(b"/lonely", b"2", within=1)
                        if isinstance(refused.value, NoLeader) or not refused.value.may_have_happened:
                            break
                assert (await other.range(b"/lonely", serializable=True)).kvs[0].value in (b"1", b"2")
        finally:
            for member in others:
                member.restart()

    play(three_members, scene)
    three_members.wait_healthy()


def test_the_outcome_of_a_write_is_reported(tmp_path: Path) -> None:
    with EtcdCluster.start(tmp_path) as cluster:
        (member,) = cluster.members

        async def scene(etcd: EtcdClient) -> None:
            await etcd.put(b"/a", b"1")
            member.stop()
            with pytest.raises(DeadlineExceeded, match=r"no response within 0\.2 s") as late:
                await etcd.put(b"/a", b"2", within=0.2)
            assert late.value.may_have_happened
            with pytest.raises(DeadlineExceeded) as read:
                await etcd.range(b"/a", within=0.2)
            assert not read.value.may_have_happened
            writing = asyncio.ensure_future(etcd.put(b"/a", b"3"))
            await asyncio.sleep(0.1)
            member.kill()
            with pytest.raises(Unavailable) as lost:
                await writing
            assert lost.value.may_have_happened
            with pytest.raises(Unavailable, match="refused") as refused:
                await etcd.put(b"/a", b"4", within=0.3)
            assert not refused.value.may_have_happened
            again = asyncio.ensure_future(etcd.range(b"/a", within=30))
            member.restart()
            assert (await again).kvs[0].value in (b"1", b"2", b"3")

        play(cluster, scene)
