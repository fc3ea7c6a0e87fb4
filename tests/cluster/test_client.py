"""Our client against any API server: ours over HTTP and in one process, or another with --cluster KUBECONFIG."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable

import pytest

from ostinato.api.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.client import (
    Client,
    JsonPatch,
    MergePatch,
    MetadataOf,
    NoSuchKind,
    StrategicMergePatch,
    Unstructured,
    exists,
    is_deleted,
)
from ostinato.client.list_watch import INITIAL_EVENTS_END, ListOptions, WatchOptions
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap
from tests.cluster.conftest import Play

_numbers = itertools.count(1)

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]},
        },
    },
}


def _config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def test_objects_are_made_read_changed_and_deleted(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        made = await client.create(_config_map("a", x="1"))
        assert made.metadata.uid
        with pytest.raises(AlreadyExists):
            await client.create(_config_map("a"))
        made.data["y"] = "2"
        updated = await client.update(made)
        with pytest.raises(Conflict):
            await client.update(made)
        read = await client.get(ConfigMap, "a")
        assert read.data == updated.data == {"x": "1", "y": "2"}
        await client.delete(read)
        assert await client.get(ConfigMap, "a", missing=None) is None
        with pytest.raises(NotFound, match='configmaps "a" not found'):
            await client.delete(ConfigMap, "a")

    run(play)


def test_objects_come_typed_as_dicts_and_as_metadata(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(_config_map("a", x="1"))
        raw = await client.get(Unstructured.of("v1", "ConfigMap"), "a")
        assert (raw["kind"], raw["data"]) == ("ConfigMap", {"x": "1"})
        metadata = await client.get(MetadataOf(ConfigMap), "a")
        metadata.metadata.labels["l"] = "v"
        assert (await client.patch(metadata)).metadata.labels == {"l": "v"}
        [listed] = await client.list(MetadataOf(ConfigMap), namespace=client.namespace, labels={"l": "v"})
        assert listed.metadata.uid == raw["metadata"]["uid"]
        assert (await client.get(ConfigMap, "a")).data == {"x": "1"}

    run(play)


def test_refusals_are_those_of_kubernetes(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        with pytest.raises(Invalid, match=r'ConfigMap "UPPER" is invalid: metadata\.name: Invalid value'):
            await client.create(_config_map("UPPER"))
        odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dada": {}}
        with pytest.raises(BadRequest, match='unknown field "dada"'):
            await client.create(odd, field_validation="Strict")
        made = await client.create(odd, dry_run=True)
        assert made["metadata"]["uid"]
        assert await client.get(ConfigMap, "a", missing=None) is None

    run(play)


def test_the_four_kinds_of_patches(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(DEPLOYMENT)
        containers = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}}}
        await client.patch(Deployment, "web", StrategicMergePatch(containers))
        await client.patch(Deployment, "web", MergePatch({"metadata": {"labels": {"x": "y"}}}))
        patched = await client.patch(Deployment, "web", JsonPatch([{"op": "remove", "path": "/metadata/labels/x"}]))
        assert [each.image for each in patched.spec.template.spec.containers] == ["a:1", "b:2"]
        assert patched.metadata.labels == {}
        patched.spec.template.spec.containers[0].image = "a:3"
        await client.patch(Deployment, "web", MergePatch({"metadata": {"annotations": {"other": "yes"}}}))
        computed = await client.patch(patched)
        assert [each.image for each in computed.spec.template.spec.containers] == ["a:3", "b:2"]
        assert computed.metadata.annotations["other"] == "yes"
        patched.metadata.labels["late"] = "yes"
        with pytest.raises(Conflict):
            await client.patch(patched, optimistic_lock=True)

    run(play)


def test_applied_fields_have_owners(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.apply(_config_map("a", x="1", y="1"))
        with pytest.raises(Conflict, match=r'conflict with "test": \.data\.x'):
            await client.apply(_config_map("a", x="2"), field_manager="other")
        await client.apply(_config_map("a", x="2"), field_manager="other", force=True)
        applied = await client.apply(_config_map("a", y="1"))
        assert applied.data == {"x": "2", "y": "1"}
        with pytest.raises(ValueError, match="that was read from the server"):
            await client.apply(applied)

    run(play)


def test_status_and_scale_are_written_apart(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(DEPLOYMENT)
        scale = await client.scale.set(Deployment, "web", 2)
        assert scale.spec.replicas == 2

        async def write_status() -> Deployment:
            found = await client.get(Deployment, "web")
            found.spec.replicas = 9
            found.metadata.labels["x"] = "y"
            found.status.observed_generation = 1
            return await client.update(found, subresource="status")

        written = await client.retry_on_conflict(write_status)  # a cluster has a controller that writes it, too
        assert (written.spec.replicas, written.status.observed_generation) == (2, 1)
        await client.scale.set(Deployment, "web", 0)
        assert not (await client.scale.get(Deployment, "web")).spec.replicas

    run(play)


def test_lists_come_in_pages_of_one_state(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        for number in range(7):
            made = _config_map(f"c{number}")
            made.metadata.labels = {"odd": str(number % 2)}
            await client.create(made)
        paged = []
        async for each in client.list(ConfigMap, namespace=client.namespace, labels="odd", page_size=3):
            paged.append(each.metadata.name)
            await client.delete(each)
        assert paged == [f"c{number}" for number in range(7)]
        assert await client.list(ConfigMap, namespace=client.namespace, labels="odd") == []

    run(play)


def test_a_collection_is_deleted_by_selector(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        for number in range(4):
            made = _config_map(f"c{number}")
            made.metadata.labels = {"odd": str(number % 2)}
            await client.create(made)
        await client.delete_all_of(ConfigMap, namespace=client.namespace, labels={"odd": "1"})
        left = await client.list(ConfigMap, namespace=client.namespace, labels="odd")
        assert [each.metadata.name for each in left] == ["c0", "c2"]

    run(play)


def test_a_watch_reports_existing_objects_and_changes(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(_config_map("a"))
        told: list[tuple[str, str]] = []
        async with client.watch(
            ConfigMap, namespace=client.namespace, fields="metadata.name!=kube-root-ca.crt"
        ) as all_:
            async for event in all_:
                told.append((event.type, event.object.metadata.name))
                match told[-1]:
                    case ("ADDED", "a"):
                        await client.create(_config_map("b"))
                    case ("ADDED", "b"):
                        event.object.data["x"] = "y"
                        await client.update(event.object)
                    case ("MODIFIED", "b"):
                        await client.delete(ConfigMap, "a")
                    case ("DELETED", "a"):
                        break
        assert told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]

    run(play)


def test_a_streaming_list_has_an_end(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(_config_map("a"))
        source = client.list_watch(ConfigMap, namespace=client.namespace, fields={"metadata.name": "a"})
        options = WatchOptions(send_initial_events=True, resource_version_match="NotOlderThan")
        async with await source.watch(options) as events:
            first, mark = await anext(events), await anext(events)
        assert (first.type, mark.type) == ("ADDED", "BOOKMARK")
        assert INITIAL_EVENTS_END.encode() in mark.object
        page = await source.list(ListOptions(limit=500))
        assert [bytes(item)[:1] for item in page.items] == [b"{"]

    run(play)


def test_waiting_ends_when_it_is_so(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        waiting = asyncio.ensure_future(client.wait_for(ConfigMap, "a", exists, timeout=30))
        await asyncio.sleep(0)
        await client.create(_config_map("a"))
        found = await waiting
        assert found is not None
        waiting = asyncio.ensure_future(client.wait_for(ConfigMap, "a", is_deleted, timeout=30))
        await asyncio.sleep(0)
        await client.delete(found)
        assert await waiting is None

    run(play)


def test_conflicting_writers_all_get_their_turn(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        await client.create(_config_map("a", count="0"))

        async def increment() -> None:
            found = await client.get(ConfigMap, "a")
            found.data["count"] = str(int(found.data["count"]) + 1)
            await client.update(found)

        await asyncio.gather(*[client.retry_on_conflict(increment) for _ in range(3)])
        assert (await client.get(ConfigMap, "a")).data["count"] == "3"

    run(play)


class WidgetSpec(Struct):
    size: int = 0


def test_a_definition_made_a_moment_ago_is_found(run: Callable[[Play], None]) -> None:
    group = f"g{os.getpid()}-{next(_numbers)}.example.dev"
    widgets = Unstructured.of(f"{group}/v1", "Widget")

    class Widget(CustomResource, group=group, version="v1"):
        spec: WidgetSpec

    async def play(client: Client) -> None:
        with pytest.raises(NoSuchKind, match=f'no matches for kind "Widget" in version "{group}/v1"'):
            await client.get(widgets, "a", missing=None)
        with pytest.raises(NoSuchKind):
            await client.get(Widget, "a", missing=None)
        definition = await client.create(_definition(group))
        try:
            await client.wait_for(
                Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                f"widgets.{group}",
                "Established",
                timeout=30,
            )
            made = await client.retry_on_conflict(lambda: _eventually(client, group))
            assert made["spec"] == {"size": 1, "colour": "red"}
            typed = await client.get(Widget, "a")
            typed.spec.size = 2
            await client.update(typed)
            assert (await client.get(widgets, "a"))["spec"] == {"size": 2, "colour": "red"}
            assert (await client.mapper.find(f"widgets.{group}")).gvk == GroupVersionKind(group, "v1", "Widget")
        finally:
            await client.delete(definition)

    run(play)


async def _eventually(client: Client, group: str) -> dict[str, object]:
    """A server says Established a little before it serves."""
    raw = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}}
    while True:
        try:
            return await client.create({**raw, "spec": {"size": 1, "colour": "red"}})
        except NoSuchKind:
            await asyncio.sleep(0.1)


def _definition(group: str) -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_names_are_found_as_kubectl_finds_them(run: Callable[[Play], None]) -> None:
    async def play(client: Client) -> None:
        for name, found in (
            ("deploy", "apps/v1, Kind=Deployment"),
            ("po", "/v1, Kind=Pod"),
            ("hpa", "autoscaling/v2, Kind=HorizontalPodAutoscaler"),
            ("ev", "/v1, Kind=Event"),
            ("storageclass.storage", "storage.k8s.io/v1, Kind=StorageClass"),
            ("events.events.k8s.io", "events.k8s.io/v1, Kind=Event"),
        ):
            assert str((await client.mapper.find(name)).gvk) == found
        catalogue = await client.mapper.catalogue()
        assert catalogue.failed == {}
        await client.mapper.refresh()
        assert await client.mapper.catalogue() == catalogue

    run(play)
