"""Garbage collector: what is kept, what is deleted, and in which order."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.errors import Conflict
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import KindInfo, kind_of
from ostinato.cache import Entry, Informer
from ostinato.client import JsonPatch, MergePatch
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.kinds.rbac_v1 import ClusterRole
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.garbage import add_to
from ostinato.plane.controllers.garbage.collector import GarbageCollector
from ostinato.plane.controllers.garbage.graph import Graph

GARBAGE = "garbage-collector-controller"
NOBODY = "11111111-2222-3333-4444-555555555555"
GADGETS = Unstructured.of("example.com/v1", "Gadget")
Json = dict[str, Any]


def config(name: str, *owners: Json, namespace: str = "default", finalizers: tuple[str, ...] = ()) -> Json:
    meta = {"name": name, "namespace": namespace, "ownerReferences": list(owners), "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def owner(obj: Json, **more: Any) -> Json:
    meta = obj["metadata"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"], **more}


def absent(**more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "never-there", "uid": NOBODY, **more}


def definition(plural: str = "gadgets", kind: str = "Gadget", scope: str = "Namespaced") -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def names(stage: Stage) -> list[str]:
    return sorted(each.metadata.name for each in await stage.client.list(ConfigMap, namespace="default"))


async def references(stage: Stage, name: str) -> list[str]:
    return [each.name for each in (await stage.client.get(ConfigMap, name)).metadata.owner_references]


async def release(stage: Stage, name: str) -> None:
    await stage.client.patch(ConfigMap, name, MergePatch({"metadata": {"finalizers": None}}))


def test_dependents_are_deleted_after_their_owner_recursively() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        second = await stage.client.create(config("second", owner(first)))
        await stage.client.create(config("third", owner(second)))
        await stage.client.create(config("other"))
        await stage.settle()
        assert await names(stage) == ["first", "other", "second", "third"]
        await stage.client.delete(ConfigMap, "first")
        await stage.settle()
        assert await names(stage) == ["other"]

    on_stage(play, GARBAGE)


def test_an_object_with_only_absent_owners_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        there = await stage.client.create(config("there"))
        await stage.client.create(config("of-nobody", absent()))
        await stage.client.create(config("of-two", absent(), owner(there)))
        await stage.client.create(config("wrong-uid", {**owner(there), "uid": NOBODY}))
        await stage.settle()
        assert await names(stage) == ["of-two", "there"]
        assert await references(stage, "of-two") == ["there"]

    on_stage(play, GARBAGE)


def test_objects_orphaned_before_the_start_are_found() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        await stage.client.create(config("second", owner(first)))
        await stage.client.delete(ConfigMap, "first")
        stage.run(lambda manager: add_to(manager, Options()))
        await stage.settle()
        assert await names(stage) == []

    on_stage(play)


def test_foreground_deletion_waits_for_blocking_dependents_only() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        await stage.client.create(config("blocks", owner(first, blockOwnerDeletion=True), finalizers=("a.b/hold",)))
        await stage.client.create(config("does-not", owner(first), finalizers=("a.b/hold",)))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Foreground")
        await stage.settle()
        waiting = await stage.client.get(ConfigMap, "first")
        assert waiting.metadata.finalizers == ["foregroundDeletion"]
        for name in ("blocks", "does-not"):
            assert (await stage.client.get(ConfigMap, name)).metadata.deletion_timestamp is not None
        await release(stage, "blocks")
        await stage.settle()
        assert await names(stage) == ["does-not"]

    on_stage(play, GARBAGE)


def test_foreground_deletion_is_recursive() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        second = await stage.client.create(config("second", owner(first, blockOwnerDeletion=True)))
        await stage.client.create(config("third", owner(second, blockOwnerDeletion=True), finalizers=("a.b/hold",)))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Foreground")
        await stage.settle()
        assert (await stage.client.get(ConfigMap, "second")).metadata.finalizers == ["foregroundDeletion"]
        await release(stage, "third")
        await stage.settle()
        assert await names(stage) == []

    on_stage(play, GARBAGE)


def test_an_owner_stops_waiting_for_a_dependent_that_no_longer_blocks() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        await stage.client.create(config("second", owner(first, blockOwnerDeletion=True), finalizers=("a.b/hold",)))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Foreground")
        await stage.settle()
        change = [{"op": "replace", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": False}]
        await stage.client.patch(ConfigMap, "second", JsonPatch(change))
        await stage.settle()
        assert await names(stage) == ["second"]

    on_stage(play, GARBAGE)


def test_a_dependent_with_a_solid_owner_outlives_a_waiting_one() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        other = await stage.client.create(config("other"))
        await stage.client.create(config("child", owner(first, blockOwnerDeletion=True), owner(other)))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Foreground")
        await stage.settle()
        assert await names(stage) == ["child", "other"]
        assert await references(stage, "child") == ["other"]

    on_stage(play, GARBAGE)


def test_orphaned_dependents_lose_the_reference_and_stay() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        await stage.client.create(config("second", owner(first)))
        await stage.client.create(config("held", owner(first), absent(), finalizers=("a.b/hold",)))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Orphan")
        await stage.settle()
        assert await names(stage) == ["held", "second"]
        assert await references(stage, "second") == []
        assert await references(stage, "held") == []

    on_stage(play, GARBAGE)


def test_dependents_of_a_cluster_scoped_owner_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "role"}}
        created = await stage.client.create(role)
        await stage.client.create(config("child", owner(created)))
        await stage.settle()
        assert await names(stage) == ["child"]
        await stage.client.delete(ClusterRole, "role")
        await stage.settle()
        assert await names(stage) == []

    on_stage(play, GARBAGE)


def test_a_cluster_scoped_object_with_a_namespaced_owner_is_skipped() -> None:
    async def play(stage: Stage) -> None:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "role", "ownerReferences": [absent()]},
        }
        await stage.client.create(role)
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(3600)
        assert stage.version == before
        assert (await stage.client.get(ClusterRole, "role")).metadata.owner_references

    on_stage(play, GARBAGE)


@pytest.mark.parametrize("owner_first", [True, False])
def test_an_owner_in_another_namespace_is_invalid_and_reported_by_an_event(owner_first: bool) -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        there = await stage.client.create(config("there", namespace="other"))
        if owner_first:
            stage.run(lambda manager: add_to(manager, Options()))
            await stage.settle()
        await stage.client.create(config("child", owner(there)))
        if not owner_first:
            stage.run(lambda manager: add_to(manager, Options()))
        await stage.settle()
        assert await names(stage) == []
        uid = there["metadata"]["uid"]
        said = f"[v1/ConfigMap, namespace: default, name: there, uid: {uid}]"
        note = f'ownerRef {said} does not exist in namespace "default"'
        assert ("OwnerRefInvalidNamespace", note) in await stage.events("child")

    on_stage(play)


def test_a_cycle_of_waiting_owners_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        second = await stage.client.create(config("second", owner(first, blockOwnerDeletion=True)))
        change = {"metadata": {"ownerReferences": [owner(second, blockOwnerDeletion=True)]}}
        await stage.client.patch(ConfigMap, "first", MergePatch(change))
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Foreground")
        await stage.settle()
        assert await names(stage) == []

    on_stage(play, GARBAGE)


def test_a_cycle_of_owners_is_kept() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.client.create(config("first"))
        second = await stage.client.create(config("second", owner(first)))
        await stage.client.patch(ConfigMap, "first", MergePatch({"metadata": {"ownerReferences": [owner(second)]}}))
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(3600)
        assert stage.version == before
        assert await names(stage) == ["first", "second"]

    on_stage(play, GARBAGE)


def test_a_thousand_dependents_take_one_delete_each_and_one_owner_lookup() -> None:
    async def play(stage: Stage) -> None:
        for number in range(1000):
            await stage.client.create(config(f"orphan-{number}", absent()))
        before = stage.version
        stage.run(lambda manager: add_to(manager, Options()))
        await stage.settle()
        assert await names(stage) == []
        assert stage.version == before + 1000

    on_stage(play)


def test_an_owner_of_an_unknown_kind_is_not_absent() -> None:
    async def play(stage: Stage) -> None:
        unknown = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "a", "uid": NOBODY}
        await stage.client.create(config("child", unknown))
        await stage.settle()
        before = stage.version
        await stage.world.clock.sleep(3600)
        assert stage.version == before
        await stage.client.create(definition())
        await stage.until(lambda: _is_gone(stage, "child"), limit=1100)

    on_stage(play, GARBAGE)


async def _is_gone(stage: Stage, name: str) -> bool:
    return await stage.client.get(ConfigMap, name, missing=None) is None


def test_new_custom_resource_definitions_are_monitored_within_seconds() -> None:
    async def play(stage: Stage) -> None:
        await stage.settle()
        await stage.client.create(definition())
        await stage.world.clock.sleep(3)
        meta = {"name": "one", "namespace": "default"}
        gadget = await stage.client.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": meta})
        await stage.client.create(config("child", owner(gadget)))
        await stage.settle()
        await stage.client.delete(GADGETS, "one")
        await stage.settle()
        assert await names(stage) == []

    on_stage(play, GARBAGE)


def test_custom_resources_can_be_orphaned() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(definition())
        await stage.settle()
        first = await stage.client.create(config("first"))
        meta = {"name": "one", "namespace": "default", "ownerReferences": [owner(first)]}
        await stage.client.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": meta})
        await stage.settle()
        await stage.client.delete(ConfigMap, "first", propagation="Orphan")
        await stage.settle()
        assert await names(stage) == []
        assert "ownerReferences" not in (await stage.client.get(GADGETS, "one"))["metadata"]

    on_stage(play, GARBAGE)


def test_a_removed_kind_is_not_monitored_and_its_dependents_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(definition())
        manager = stage.run(lambda manager: add_to(manager, Options()))
        await stage.settle()
        meta = {"name": "one", "namespace": "default"}
        gadget = await stage.client.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": meta})
        await stage.client.create(config("child", owner(gadget)))
        await stage.settle()
        assert len(manager.informers.all(GADGETS.gvk)) == 1
        await stage.client.delete(CustomResourceDefinition, "gadgets.example.com")
        await stage.settle(quiet=5)
        assert await names(stage) == []
        assert not manager.informers.all(GADGETS.gvk)

    on_stage(play)


def test_an_existing_informer_is_reused() -> None:
    class Idle:
        async def reconcile(self, request: Any) -> None: ...

    def add(manager: Manager) -> None:
        add_to(manager, Options())
        manager.build("others").watch_for(ConfigMap).complete(Idle())

    async def play(stage: Stage) -> None:
        manager = stage.run(add)
        await stage.settle()
        (informer,) = manager.informers.all(MetadataOf(ConfigMap).gvk)
        assert not informer.metadata_only

    on_stage(play)


class Late:
    """A store with an outdated object."""

    def __init__(self, info: KindInfo, entry: Entry) -> None:
        self.info = info
        self._entry = entry

    def entry(self, key: NamespacedName) -> Entry | None:
        return self._entry


@pytest.mark.parametrize("owners_change", [False, True])
def test_a_changed_object_is_deleted_unless_its_owners_have_changed(owners_change: bool) -> None:
    async def play(stage: Stage) -> None:
        there = await stage.client.create(config("there"))
        await stage.client.create(config("child", absent()))
        manager = stage.run(lambda manager: manager.informers.of(ConfigMap))
        informer = manager.informers.of(ConfigMap)
        await stage.until(lambda: _is_synced(informer))
        stale = informer.store.get(NamespacedName("default", "child"))
        assert stale is not None
        change = {"ownerReferences": [owner(there)]} if owners_change else {"labels": {"a": "b"}}
        await stage.client.patch(ConfigMap, "child", MergePatch({"metadata": change}))
        graph = Graph()
        graph.put(Late(kind_of(ConfigMap), stale), stale)
        ctx: Any = SimpleNamespace(client=manager.client, logger=logging.getLogger())
        if owners_change:
            with pytest.raises(Conflict):
                await GarbageCollector(graph).reconcile(stale.uid, ctx)
        else:
            await GarbageCollector(graph).reconcile(stale.uid, ctx)
        assert await names(stage) == (["child", "there"] if owners_change else ["there"])

    on_stage(play)


def test_a_recreated_object_is_not_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(config("child", absent()))
        manager = stage.run(lambda manager: manager.informers.of(ConfigMap))
        informer = manager.informers.of(ConfigMap)
        await stage.until(lambda: _is_synced(informer))
        stale = informer.store.get(NamespacedName("default", "child"))
        assert stale is not None
        await stage.client.delete(ConfigMap, "child")
        await stage.client.create(config("child", absent()))
        graph = Graph()
        graph.put(Late(kind_of(ConfigMap), stale), stale)
        ctx: Any = SimpleNamespace(client=manager.client, logger=logging.getLogger())
        await GarbageCollector(graph).reconcile(stale.uid, ctx)
        assert await names(stage) == ["child"]

    on_stage(play)


async def _is_synced(informer: Informer) -> bool:
    return informer.has_synced
