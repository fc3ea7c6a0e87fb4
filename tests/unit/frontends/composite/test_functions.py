"""Composites and decorators as Python functions, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ostinato import CustomResource, ObjectMeta, Struct
from ostinato.client import MergePatch, Unstructured
from ostinato.frontends.composite import (
    DeciderError,
    Observed,
    Related,
    Sync,
    SyncEvent,
    annotation,
    composite,
    decorate,
    labels,
    on_delete,
    recreate,
    rolling,
)
from ostinato.frontends.kernel.sync import SyncRequest
from ostinato.kinds.core_v1 import ConfigMap, Container, Pod, PodSpec, Secret
from ostinato.testing import Cluster, VirtualClock


class FarmSpec(Struct):
    fields: int = 1
    crop: str = "rye"


class FarmStatus(Struct):
    harvested: int = 0


class Farm(CustomResource, group="example.dev", version="v1"):
    spec: FarmSpec
    status: FarmStatus | None = None


def farm(name: str = "a", **spec: Any) -> Farm:
    return Farm(metadata=ObjectMeta(name=name), spec=FarmSpec(**spec))


def field(of: Farm, number: int) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=f"{of.metadata.name}-{number}"), data={"crop": of.spec.crop})


async def start(cluster: Cluster, *runnables: Any) -> Any:
    await cluster.install(Farm)
    return await cluster.manager(rbac=False).start(*runnables)


async def test_a_generator_yields_children_and_those_it_leaves_out_are_deleted(
    cluster: Cluster, clock: VirtualClock
) -> None:
    @composite(Farm, children=[ConfigMap])
    def farms(of: Farm) -> Iterator[ConfigMap]:
        for number in range(of.spec.fields):
            yield field(of, number)

    await start(cluster, farms)
    await cluster.client.create(farm(fields=3))
    made = await cluster.eventually(ConfigMap, "a-2")
    assert made.metadata.owner_references[0].name == "a"
    await cluster.client.patch(Farm, "a", MergePatch({"spec": {"fields": 1, "crop": "oat"}}))
    await cluster.eventually(ConfigMap, "a-2", gone=True)
    await cluster.eventually(ConfigMap, "a-0", lambda each: each.data == {"crop": "oat"})
    await cluster.client.delete(ConfigMap, "a-0")
    await cluster.eventually(ConfigMap, "a-0")


async def test_sync_adds_status_condition_events_and_the_next_call(cluster: Cluster, clock: VirtualClock) -> None:
    calls: list[int] = []

    @composite(Farm, children=[ConfigMap])
    async def farms(of: Farm, observed: Observed) -> Sync:
        calls.append(len(observed[ConfigMap]))
        return Sync(
            children=[field(of, 0)],
            status=FarmStatus(harvested=len(observed[ConfigMap])),
            resync_after=60,
            events=[SyncEvent("Harvested", "done")],
        )

    await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(Farm, "a", lambda each: each.status and each.status.harvested == 1)
    await cluster.events.expect("Harvested", regarding="a")
    await clock.advance(5)
    seen = len(calls)
    await clock.advance(61)
    assert len(calls) > seen
    assert calls[0] == 0


async def test_kinds_that_were_not_declared_are_learned_and_cleaned_up(cluster: Cluster, clock: VirtualClock) -> None:
    @composite(Farm)
    def farms(of: Farm) -> list[Any]:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "well"}}
        return [secret] if of.spec.fields == 1 else [field(of, 0)]

    await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(Secret, "well")
    await cluster.client.patch(Farm, "a", MergePatch({"spec": {"fields": 2}}))
    await cluster.eventually(Secret, "well", gone=True)
    await cluster.client.delete(ConfigMap, "a-0")
    await cluster.eventually(ConfigMap, "a-0")


async def test_children_are_updated_as_declared(cluster: Cluster, clock: VirtualClock) -> None:
    @composite(Farm, children=[on_delete(Secret), recreate(ConfigMap)])
    def farms(of: Farm) -> Iterator[Any]:
        yield field(of, 0)
        yield Secret(metadata=ObjectMeta(name="kept"), string_data={"crop": of.spec.crop})

    await start(cluster, farms)
    await cluster.client.create(farm())
    kept, first = await cluster.eventually(Secret, "kept"), await cluster.eventually(ConfigMap, "a-0")
    await cluster.client.patch(Farm, "a", MergePatch({"spec": {"crop": "oat"}}))
    second = await cluster.eventually(ConfigMap, "a-0", lambda each: each.data == {"crop": "oat"})
    assert second.metadata.uid != first.metadata.uid
    assert (await cluster.client.get(Secret, "kept")).data == kept.data == {"crop": b"rye"}


async def test_a_rolling_update_waits_until_a_child_is_ready(cluster: Cluster, clock: VirtualClock) -> None:
    @composite(Farm, children=[rolling(Pod, recreate=True)])
    def farms(of: Farm) -> Iterator[Pod]:
        for number in range(2):
            yield Pod(
                metadata=ObjectMeta(name=f"p-{number}"),
                spec=PodSpec(containers=[Container(name="a", image=of.spec.crop)]),
            )

    async def image_of(name: str) -> Any:
        pod = await cluster.client.get(Pod, name, missing=None)
        return None if pod is None or pod.spec is None else pod.spec.containers[0].image

    async def ready(name: str) -> None:
        condition = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "conditions": [condition]}
        await cluster.client.patch(Pod, name, MergePatch({"status": status}), subresource="status")

    await start(cluster, farms)
    await cluster.client.create(farm())
    for name in ("p-0", "p-1"):
        await cluster.eventually(Pod, name)
        await ready(name)
    await cluster.client.patch(Farm, "a", MergePatch({"spec": {"crop": "oat"}}))
    await cluster.eventually(Pod, "p-0", lambda each: each.spec.containers[0].image == "oat")
    await clock.advance(60)
    assert await image_of("p-1") == "rye"
    await ready("p-0")
    await cluster.eventually(Pod, "p-1", lambda each: each.spec.containers[0].image == "oat")


async def test_related_objects_are_seen_and_their_changes_call_the_function(
    cluster: Cluster, clock: VirtualClock
) -> None:
    def seeds(of: Farm) -> Related:
        return Related(ConfigMap, labels=f"crop={of.spec.crop}")

    @composite(Farm, related=seeds)
    def farms(of: Farm, observed: Observed) -> list[Any]:
        names = ",".join(sorted(observed.related[ConfigMap]))
        return [Secret(metadata=ObjectMeta(name="seeds"), string_data={"names": names})]

    await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(Secret, "seeds")
    await cluster.client.create(ConfigMap(metadata=ObjectMeta(name="one", labels={"crop": "rye"})))
    await cluster.client.create(ConfigMap(metadata=ObjectMeta(name="two", labels={"crop": "oat"})))
    await cluster.eventually(Secret, "seeds", lambda each: each.data == {"names": b"one"})


async def test_finalize_runs_before_the_parent_is_deleted_until_it_is_done(
    cluster: Cluster, clock: VirtualClock
) -> None:
    tries: list[str] = []

    def sell(of: Farm) -> bool:
        tries.append(of.metadata.name)
        if len(tries) < 3:
            raise DeciderError("nobody buys", retry_after=30)
        return True

    @composite(Farm, children=[ConfigMap], finalize=sell)
    def farms(of: Farm) -> list[ConfigMap]:
        return [field(of, 0)]

    manager = await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(ConfigMap, "a-0")
    await cluster.client.delete(Farm, "a")
    await clock.advance(61)
    await cluster.eventually(Farm, "a", gone=True)
    assert tries == ["a"] * 3
    assert "nobody buys" in str(manager.errors)


async def test_a_decorator_attaches_to_what_matches_and_detaches_from_what_does_not(
    cluster: Cluster, clock: VirtualClock
) -> None:
    @decorate(Secret, when=annotation("copied"), attaches=[ConfigMap])
    def copied(secret: Secret) -> Sync:
        copy = ConfigMap(metadata=ObjectMeta(name=f"{secret.metadata.name}-copy"))
        return Sync(children=[copy], labels={"copied": "yes"})

    @decorate(Secret, when=labels("marked"), attaches=[ConfigMap], name="marks")
    def marks(secret: Secret) -> list[ConfigMap]:
        return [ConfigMap(metadata=ObjectMeta(name=f"{secret.metadata.name}-mark"))]

    await start(cluster, copied, marks)
    client, eventually = cluster.client, cluster.eventually
    await client.create(Secret(metadata=ObjectMeta(name="s", annotations={"copied": ""}, labels={"marked": "1"})))
    await client.create(Secret(metadata=ObjectMeta(name="other")))
    await eventually(ConfigMap, "s-copy")
    await eventually(ConfigMap, "s-mark")
    uids = [(await client.get(ConfigMap, name)).metadata.uid for name in ("s-copy", "s-mark")]
    await client.patch(Secret, "s", MergePatch({"metadata": {"annotations": {"again": "1"}}}))
    await clock.advance(60)  # neither deletes what the other attached
    assert [(await client.get(ConfigMap, name)).metadata.uid for name in ("s-copy", "s-mark")] == uids
    await eventually(Secret, "s", lambda each: each.metadata.labels == {"marked": "1", "copied": "yes"})
    await client.patch(Secret, "s", MergePatch({"metadata": {"annotations": {"copied": None}}}))
    await eventually(ConfigMap, "s-copy", gone=True)
    assert await client.get(ConfigMap, "s-mark")
    assert await client.get(ConfigMap, "other-copy", missing=None) is None


async def test_an_async_generator_and_dicts_for_a_kind_without_a_class(cluster: Cluster, clock: VirtualClock) -> None:
    view = Unstructured.of("example.dev/v1", "Farm")

    @composite(view, children=[ConfigMap])
    async def farms(of: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{of['metadata']['name']}-plain"}}

    await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(ConfigMap, "a-plain")


async def test_what_is_not_an_object_is_an_error_that_deletes_nothing(cluster: Cluster, clock: VirtualClock) -> None:
    answers: list[Any] = [[field(farm(), 0)]]

    @composite(Farm, children=[ConfigMap])
    def farms(of: Farm) -> Any:
        return answers[-1]

    manager = await start(cluster, farms)
    await cluster.client.create(farm())
    await cluster.eventually(ConfigMap, "a-0")
    for answer, said in (
        (None, "returned None; return or yield objects"),
        (7, "returned an int"),
        ([7], "object number 1 is an int"),
        ("pod", "returned the text 'pod'"),
    ):
        answers.append(answer)
        await cluster.client.patch(Farm, "a", MergePatch({"spec": {"fields": len(answers)}}))
        await cluster.eventually(lambda said=said: said in str(manager.errors))
    assert await cluster.client.get(ConfigMap, "a-0")


def test_a_function_can_be_called_and_replayed() -> None:
    @composite(Farm, children=[ConfigMap])
    def farms(of: Farm, observed: Observed) -> Iterator[ConfigMap]:
        yield field(of, len(observed))

    assert [each.metadata.name for each in farms(farm(), ())] == ["a-0"]
    parent = {"apiVersion": "example.dev/v1", "kind": "Farm", "metadata": {"name": "b"}, "spec": {}}
    result = asyncio.run(farms.deciders()["farms"](SyncRequest(controller="farms", parent=parent)))
    assert result.children == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b-0"}, "data": {"crop": "rye"}}
    ]


def test_wrong_definitions_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="@composite needs a kind"):
        composite(lambda farm: [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must take the parent"):
        composite(Farm)(list)
    with pytest.raises(TypeError, match="max_concurent"):
        composite(Farm, max_concurent=3)(lambda farm: [])  # type: ignore[call-arg]
