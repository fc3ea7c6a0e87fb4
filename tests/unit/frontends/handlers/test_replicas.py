"""A second copy with leader election, conflicts, lost connections, and the permissions of handlers."""

from __future__ import annotations

from typing import Any

from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, ObjectMeta, on
from ostinato.api.errors import Conflict
from ostinato.api.gvk import GroupResource
from ostinato.client import MergePatch
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.crd.rbac import access_of
from ostinato.frontends.handlers.operator import Handlers
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.testing import Cluster, VirtualClock


def counting(calls: list[Any], copy: str) -> Handlers:
    handlers = Handlers("test")

    @on.create("examples", registry=handlers)
    async def created(name: str) -> None:
        calls.append(("create", name, copy))

    @on.update("examples", registry=handlers)
    async def updated(name: str, patch: Any) -> None:
        calls.append(("update", name, copy))
        patch.status["updated"] = True

    @on.delete("examples", registry=handlers)
    async def deleted(name: str) -> None:
        calls.append(("delete", name, copy))

    return handlers


async def test_a_second_copy_continues_where_the_leader_ended(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    first = cluster.manager(leader_election="test")
    await first.start(counting(calls, "first"))
    await first.elected()
    await cluster.manager(leader_election="test").start(counting(calls, "second"))
    await client.create(example("a"))
    await clock.advance(10)
    assert calls == [("create", "a", "first")]
    await first.end()
    calls.clear()
    await client.patch(EXAMPLE, "a", MergePatch({"spec": {"size": 2}}))
    await client.create(example("b"))
    await clock.advance(60)
    assert sorted(calls) == [("create", "b", "second"), ("update", "a", "second")]


async def test_a_shard_that_another_replica_takes_over_is_not_handled_anew(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    calls: list[Any] = []

    def operator(copy: str) -> Handlers:
        handlers = Handlers("test")

        @on.create(ConfigMap, registry=handlers, labels={"mine": "yes"})
        async def created(name: str) -> None:
            calls.append((name, copy))

        return handlers

    replicas = [await cluster.manager(sharding="test").start(operator(copy)) for copy in ("first", "second")]
    await clock.advance(60)
    names = [f"{batch}{number}" for batch in "ab" for number in range(6)]
    for name in names:
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels={"mine": "yes"})))
        await clock.advance(2)
    assert sorted(name for name, _ in calls) == names
    assert {copy for _, copy in calls} == {"first", "second"}, "both have some"
    await replicas[0].end()
    await clock.advance(120)
    await client.create(ConfigMap(metadata=ObjectMeta(name="last", labels={"mine": "yes"})))
    await clock.advance(10)
    assert calls[12:] == [("last", "second")]


async def test_conflicts_and_lost_connections_do_not_repeat_handlers(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    manager = await cluster.manager().start(counting(calls, ""))
    cluster.fail(next=Conflict, on="examples", verb="patch", times=7)
    await client.create(example())
    await clock.advance(10)
    assert calls == [("create", "one", "")]
    cluster.fail(next=ConnectionLost, on="examples/status", verb="patch", times=3)
    cluster.fail(next=ConnectionLost, on="examples/status", verb="patch", processed=True)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    await clock.advance(60)
    assert calls == [("create", "one", ""), ("update", "one", "")], "progress is in memory until it can be written"
    status = (await client.get(EXAMPLE, "one"))["status"]
    assert status["updated"] is True, "the patch is sent later, too"
    stored = status["handlers"]["test"]
    assert stored["lastHandled"] == '{"spec":{"size":2}}'
    cluster.fail(next=Conflict, on="examples", verb="patch", times=7)
    await client.delete(EXAMPLE, "one")
    await clock.advance(10)
    assert calls[2:] == [("delete", "one", "")]
    assert await client.get(EXAMPLE, "one", missing=None) is None
    assert manager.errors is not None


async def test_a_handler_that_meets_a_conflict_is_retried_soon(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[int] = []

    @on.create("examples", registry=handlers, retries=2)
    async def conflicting(retry: int) -> None:
        calls.append(retry)
        raise Conflict.of(GroupResource("example.dev", "examples"), "one", "changed")

    manager = await cluster.manager().start(handlers)
    await client.create(example())
    await clock.advance(1.5)
    assert calls == [0, 1]
    stored = (await client.get(EXAMPLE, "one"))["status"]["handlers"]["test"]
    assert set(stored) == {"uid", "lastHandled"}, "given up with the last retry, not after it"
    assert manager.errors


def test_permissions_are_those_that_handlers_need() -> None:
    handlers = Handlers("test")
    on.create("example.dev", "v1", "examples", registry=handlers)(print)
    on.event("Pod", registry=handlers)(print)
    rules = [(each.groups, each.resources) for each in access_of(handlers)]
    assert (("example.dev",), ("examples", "examples/status", "examples/finalizers")) in rules
    assert (("*",), ("pods", "pods/status", "pods/finalizers")) in rules
    assert (("",), ("configmaps",)) in rules
    on.create(Secret, registry=handlers)(print)
    on.create(ConfigMap, registry=handlers)(print)
    assert (("",), ("configmaps", "secrets")) in [(each.groups, each.resources) for each in access_of(handlers)]
    on.create("ex", registry=handlers)(print)
    assert (("*",), ("*",)) in [(each.groups, each.resources) for each in access_of(handlers)]
