"""Calls of the client, against a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.etcd_cluster import EtcdCluster

from ostinato.etcd import (
    Compacted,
    EtcdClient,
    FutureRevision,
    InvalidRequest,
    LeaseExists,
    LeaseNotFound,
    RequestTooLarge,
    compare,
    op,
    prefix_end,
)
from ostinato.world import World

Scene = Callable[[EtcdClient], Awaitable[Any]]


def play(cluster: EtcdCluster, scene: Scene) -> Any:
    async def run() -> Any:
        async with EtcdClient(cluster.settings, World.real()) as etcd:
            return await scene(etcd)

    return asyncio.run(run())


def test_keys_are_written_read_and_deleted(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        first = await etcd.put(b"/kv/a", b"1")
        second = await etcd.put(b"/kv/a", b"2", prev_kv=True)
        assert second.revision == first.revision + 1
        assert second.prev is not None
        assert (second.prev.value, second.prev.mod_revision) == (b"1", first.revision)
        found = await etcd.range(b"/kv/a")
        (kv,) = found.kvs
        assert (kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease) == (
            *(b"/kv/a", b"2", first.revision, second.revision, 2, 0),
        )
        assert found.revision == second.revision == await etcd.revision()
        old = await etcd.range(b"/kv/a", revision=first.revision)
        assert old.kvs[0].value == b"1"
        gone = await etcd.delete_range(b"/kv/a", prev_kv=True)
        assert (gone.deleted, gone.prev[0].value, gone.revision) == (1, b"2", second.revision + 1)
        assert (await etcd.range(b"/kv/a")).kvs == []
        assert (await etcd.delete_range(b"/kv/a")).deleted == 0

    play(one_member, scene)


def test_ranges_have_limits_counts_and_keys_only(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        for index in range(5):
            await etcd.put(b"/range/%d" % index, b"x" * index)
        await etcd.put(b"/range0", b"not of the prefix")
        end = prefix_end(b"/range/")
        page = await etcd.range(b"/range/", end, limit=2)
        assert ([kv.key for kv in page.kvs], page.more, page.count) == ([b"/range/0", b"/range/1"], True, 5)
        rest = await etcd.range(b"/range/1\0", end, limit=10, revision=page.revision)
        assert ([kv.key[-1:] for kv in rest.kvs], rest.more) == ([b"2", b"3", b"4"], False)
        keys = await etcd.range(b"/range/", end, keys_only=True, serializable=True)
        assert [(kv.key[-1:], kv.value) for kv in keys.kvs] == [(b"%d" % index, b"") for index in range(5)]
        count = await etcd.range(b"/range/", end, count_only=True)
        assert (count.count, count.kvs) == (5, [])

    play(one_member, scene)


def test_a_prefix_ends_before_the_next_one() -> None:
    assert prefix_end(b"/a/") == b"/a0"
    assert prefix_end(b"a\xff\xff") == b"b"
    assert prefix_end(b"\xff") == prefix_end(b"") == b"\0"


def test_a_transaction_runs_one_of_its_branches(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        key = b"/txn/a"
        created = await etcd.txn([compare.mod_revision(key, "=", 0)], [op.put(key, b"1")], [op.range(key)])
        assert created.succeeded
        again = await etcd.txn([compare.mod_revision(key, "=", 0)], [op.put(key, b"2")], [op.range(key)])
        assert not again.succeeded
        (found,) = again.results
        assert found.kvs[0].value == b"1"  # type: ignore[union-attr]
        assert found.kvs[0].mod_revision == created.revision  # type: ignore[union-attr]
        assert again.revision == created.revision
        nested = await etcd.txn(
            [compare.version(key, "=", 1), compare.create_revision(key, ">", 0), compare.value(key, "!=", b"x")],
            [
                op.put(key, b"3", prev_kv=True),
                op.txn([compare.lease(key, "=", 0)], [op.delete(b"/txn/none"), op.range(key, keys_only=True)]),
            ],
        )
        put, inner = nested.results
        assert put.prev.value == b"1"  # type: ignore[union-attr]
        assert inner.succeeded  # type: ignore[union-attr]
        assert [each.revision for each in (put, inner, *inner.results)] == [nested.revision] * 4  # type: ignore[union-attr]
        assert inner.results[0].deleted == 0  # type: ignore[union-attr]
        assert inner.results[1].kvs[0].mod_revision == nested.revision  # type: ignore[union-attr]
        empty = await etcd.txn([], [])
        assert (empty.succeeded, empty.results) == (True, [])

    play(one_member, scene)


@pytest.mark.parametrize(
    ("held", "condition"),
    [
        (True, compare.mod_revision(b"/none/", "=", 0, end=b"/none0")),
        (False, compare.mod_revision(b"/none/a", ">", 0)),
        (False, compare.mod_revision(b"/none/a", "<", 0)),
        (False, compare.value(b"/none/a", "=", b"")),
    ],
)
def test_a_key_that_does_not_exist_has_revision_zero(
    one_member: EtcdCluster, held: bool, condition: compare.Compare
) -> None:
    async def scene(etcd: EtcdClient) -> None:
        assert (await etcd.txn([condition], [])).succeeded is held

    play(one_member, scene)


def test_values_may_be_larger_than_windows(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        value = bytes(index % 251 for index in range(1_400_000))
        await asyncio.gather(*(etcd.put(b"/large/%d" % index, value) for index in range(8)))
        found = await etcd.range(b"/large/", prefix_end(b"/large/"))  # 11 MB in one message
        assert [kv.value == value for kv in found.kvs] == [True] * 8
        with pytest.raises(RequestTooLarge) as refused:
            await etcd.put(b"/large/x", bytes(2_000_000))
        assert not refused.value.may_have_happened
        with pytest.raises(RequestTooLarge):
            await etcd.txn([], [op.put(b"/large/%d" % index, b"") for index in range(129)])
        await etcd.delete_range(b"/large/", prefix_end(b"/large/"))

    play(one_member, scene)


def test_a_thousand_calls_run_at_once(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        results = await asyncio.gather(*(etcd.put(b"/many/%d" % index, b"%d" % index) for index in range(1000)))
        assert len({result.revision for result in results}) == 1000
        found = await asyncio.gather(*(etcd.range(b"/many/%d" % index) for index in range(1000)))
        assert [each.kvs[0].value for each in found] == [b"%d" % index for index in range(1000)]

    play(one_member, scene)


def test_compacted_and_future_revisions_are_errors(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        old = (await etcd.put(b"/compact/a", b"1")).revision
        now = (await etcd.put(b"/compact/a", b"2")).revision
        assert await etcd.compact(now, physical=True) == now
        with pytest.raises(Compacted):
            await etcd.compact(now)
        with pytest.raises(Compacted):
            await etcd.range(b"/compact/a", revision=old)
        with pytest.raises(FutureRevision):
            await etcd.range(b"/compact/a", revision=now + 1000)

    play(one_member, scene)


def test_invalid_requests_are_named(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        with pytest.raises(InvalidRequest, match="key is not provided"):
            await etcd.put(b"", b"x")
        with pytest.raises(InvalidRequest, match="duplicate key"):
            await etcd.txn([], [op.put(b"/a", b""), op.put(b"/a", b"")])

    play(one_member, scene)


def test_leases_are_granted_renewed_and_revoked(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        lease = await etcd.lease_grant(60)
        assert lease.ttl == 60
        await etcd.put(b"/lease/a", b"", lease=lease.id)
        assert (await etcd.range(b"/lease/a")).kvs[0].lease == lease.id
        assert (await etcd.txn([compare.lease(b"/lease/a", "=", lease.id)], [])).succeeded
        assert 0 < await etcd.lease_time_to_live(lease.id) <= 60
        assert await etcd.lease_keepalive(lease.id) == 60
        with pytest.raises(LeaseExists):
            await etcd.lease_grant(60, lease.id)
        await etcd.lease_revoke(lease.id)
        assert (await etcd.range(b"/lease/a")).kvs == []
        assert await etcd.lease_time_to_live(lease.id) == -1
        for call in (etcd.lease_keepalive(lease.id), etcd.lease_revoke(lease.id), etcd.put(b"/x", b"", lease=lease.id)):
            with pytest.raises(LeaseNotFound):
                await call

    play(one_member, scene)


def test_members_report_their_state(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        (member,) = await etcd.members()
        (endpoint,) = etcd.endpoints
        assert (member.name, member.client_urls, member.is_learner) == ("m0", [f"http://{endpoint}"], False)
        status = await etcd.status(endpoint)
        assert status.version.startswith("3.")
        assert status.leader == status.member_id == member.id
        assert status.db_size >= status.db_size_in_use > 0
        assert status.errors == []
        assert status.revision == await etcd.revision()
        await etcd.defragment(endpoint)
        assert await etcd.hash_kv(endpoint) == await etcd.hash_kv(endpoint)
        assert await etcd.alarms() == []

    play(one_member, scene)


def test_a_cancelled_call_leaves_the_connection_usable(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        await etcd.revision()
        for _ in range(20):
            calls = [asyncio.ensure_future(etcd.put(b"/cancel/%d" % index, b"x")) for index in range(10)]
            await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [isinstance(each, asyncio.CancelledError) for each in results] == [True, False] * 5
        assert (await etcd.range(b"/cancel/1")).kvs

    play(one_member, scene)
