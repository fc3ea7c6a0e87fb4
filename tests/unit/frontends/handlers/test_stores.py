"""Where progress is stored: the status, or objects beside the handled one; never annotations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, ObjectMeta, on
from ostinato.client import MergePatch
from ostinato.frontends.handlers.operator import Handlers
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Secret
from ostinato.testing import Cluster, VirtualClock


class Operator:
    """Handlers of a kind, which can be started again."""

    def __init__(self, cluster: Cluster, *kind: Any) -> None:
        self.calls: list[Any] = []
        self._cluster = cluster
        self._kind = kind
        self._manager: Any = None

    async def restart(self) -> None:
        if self._manager is not None:
            await self._manager.end()
        handlers = Handlers("test")

        @on.create(*self._kind, registry=handlers)
        async def create(name: str, patch: Any) -> None:
            self.calls.append(("create", name))
            patch.status["message"] = "made"

        @on.update(*self._kind, registry=handlers)
        async def update(name: str, diff: Any) -> None:
            self.calls.append(("update", name, tuple(diff)))

        self._manager = await self._cluster.manager().start(handlers)


@pytest.mark.parametrize(("status", "keeps"), [(True, True), (False, True), (True, False), (False, False)], ids=str)
async def test_progress_survives_a_restart_whatever_the_schema_keeps(
    cluster: Cluster, client: Client, clock: VirtualClock, status: bool, keeps: bool
) -> None:
    await cluster.install(definition(status=status, keeps=keeps))
    operator = Operator(cluster, "examples")
    await operator.restart()
    await client.create(example(size=1))
    await clock.advance(1)
    found = await client.get(EXAMPLE, "one")
    assert found["status"]["message"] == "made"
    assert ("handlers" in found["status"]) is keeps
    records = [each.metadata.name async for each in client.list(ConfigMap, namespace="default")]
    assert records == ([] if keeps else [f"test.{found['metadata']['uid']}"])
    await operator.restart()
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    await clock.advance(1)
    await operator.restart()
    await clock.advance(1)
    change = ("change", ("spec", "size"), 1, 2)
    assert operator.calls == [("create", "one"), ("update", "one", (change,))]
    await client.delete(EXAMPLE, "one")
    await clock.advance(1)
    assert [each async for each in client.list(ConfigMap, namespace="default")] == []


async def test_kinds_of_kubernetes_are_not_changed(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    operator = Operator(cluster, ConfigMap)
    await operator.restart()
    made = await client.create(ConfigMap(metadata=ObjectMeta(name="one"), data={"a": "1"}))
    await clock.advance(1)
    assert await client.get(ConfigMap, "one") == made
    record = await client.get(ConfigMap, f"test.{made.metadata.uid}")
    assert [each.uid for each in record.metadata.owner_references] == [made.metadata.uid]
    assert ("create", "one") in operator.calls
    assert len(operator.calls) == 1, "records are not objects of the user"
    await client.patch(ConfigMap, "one", MergePatch({"data": {"a": "2"}}))
    await clock.advance(1)
    await operator.restart()
    await clock.advance(1)
    assert operator.calls[1:] == [("update", "one", (("change", ("data", "a"), "1", "2"),))]


async def test_the_data_of_secrets_is_not_copied_to_configmaps(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    operator = Operator(cluster, Secret)
    await operator.restart()
    made = await client.create(Secret(metadata=ObjectMeta(name="one"), data={"a": b"1"}))
    await clock.advance(1)
    assert [each async for each in client.list(ConfigMap, namespace="default")] == []
    assert (await client.get(Secret, f"test.{made.metadata.uid}")).data.keys() == {"record"}
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == [("create", "one")]


async def test_records_of_cluster_scoped_objects_are_in_the_operators_namespace(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    operator = Operator(cluster, Namespace)
    await operator.restart()
    await client.create(Namespace(metadata=ObjectMeta(name="other")))
    await clock.advance(1)
    names = [each.metadata.name async for each in client.list(ConfigMap, namespace=cluster.namespace)]
    assert f"test.{(await client.get(Namespace, 'other')).metadata.uid}" in names
    before = list(operator.calls)
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == before


async def test_an_erased_status_does_not_repeat_the_creation(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    operator = Operator(cluster, "examples")
    await operator.restart()
    await client.create(example())
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"status": {"handlers": None}}), subresource="status")
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    await clock.advance(1)
    await operator.restart()
    await clock.advance(1)
    assert [each[0] for each in operator.calls] == ["create", "update"]


@pytest.mark.parametrize("damage", ["text", {"uid": 5}, {"lastHandled": "{"}, {"progress": {"x": {"retries": "many"}}}])
async def test_a_damaged_record_is_handled_as_none(
    cluster: Cluster, client: Client, clock: VirtualClock, damage: Any
) -> None:
    await cluster.install(definition())
    operator = Operator(cluster, "examples")
    made = await client.create(example())
    uid = {"uid": made["metadata"]["uid"]}
    stored = {**uid, **damage} if isinstance(damage, dict) else damage
    await client.patch(EXAMPLE, "one", MergePatch({"status": {"handlers": {"test": stored}}}), subresource="status")
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == [("create", "one")]
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == [("create", "one")]


async def test_objects_that_kopf_has_handled_are_not_created_again(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handled = example(size=2)
    handled["metadata"]["annotations"] = {"kopf.zalando.org/last-handled-configuration": '{"spec":{"size":1}}\n'}
    await client.create(handled)
    operator = Operator(cluster, "examples")
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == [("update", "one", (("change", ("spec", "size"), 1, 2),))]


async def test_a_record_of_another_object_is_ignored(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    """A backup that was restored with its status."""
    await cluster.install(definition(status=False))
    restored = example()
    stored = {"uid": "another", "lastHandled": '{"spec":{}}'}
    await client.create(restored | {"status": {"handlers": {"test": stored}}})
    operator = Operator(cluster, "examples")
    await operator.restart()
    await clock.advance(1)
    assert operator.calls == [("create", "one")]


async def test_resuming_writes_nothing(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    calls: list[str] = []

    def operator() -> Handlers:
        handlers = Handlers("test")
        for number in (1, 2):

            @on.resume("examples", registry=handlers, id=f"resume-{number}")
            async def resume() -> None:
                calls.append("resume")

        return handlers

    manager = await cluster.manager().start(operator())
    await client.create(example())
    await clock.advance(1)
    before = await client.get(EXAMPLE, "one")
    await manager.end()
    await cluster.manager().start(operator())
    await clock.advance(1)
    assert calls == ["resume", "resume"]
    assert await client.get(EXAMPLE, "one") == before
