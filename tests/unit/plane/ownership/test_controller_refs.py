from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage

from ostinato.api.codec import from_dict
from ostinato.api.selectors.labels import from_set
from ostinato.cache import CachedClient
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import ConfigMap, Pod
from ostinato.manager import Manager
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.ownership.controller_refs import (
    ControllerRefManager,
    add_controller_index,
    controlled_by,
    orphans_in,
)

SELECTOR = from_set({"app": "web"})


def pod(name: str, app: str = "web", **metadata: Any) -> Pod:
    return from_dict(
        Pod,
        {
            "metadata": {"name": name, "labels": {"app": app}, **metadata},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    )


def reference(owner: ConfigMap, *, controller: bool = True) -> dict[str, Any]:
    found = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid}
    return {**found, "controller": True} if controller else found


async def an_owner(stage: Stage, name: str, **metadata: Any) -> ConfigMap:
    return await stage.client.create(from_dict(ConfigMap, {"metadata": {"name": name, **metadata}}))


async def caches(stage: Stage) -> CachedClient:
    """A client with an informer of Pods and the index."""

    def add(manager: Manager) -> None:
        add_controller_index(manager, PodState)
        manager.build("watching").watch_for(PodState).complete(lambda request: None)

    manager = stage.run(add)
    await stage.settle()
    return manager.client


async def owners(stage: Stage) -> dict[str, list[str]]:
    return {
        each.metadata.name: sorted(reference.name for reference in each.metadata.owner_references)
        for each in await stage.client.list(Pod)
    }


def test_matching_orphans_are_adopted_and_non_matching_objects_are_released() -> None:
    async def play(stage: Stage) -> None:
        owner, other = await an_owner(stage, "me"), await an_owner(stage, "other")
        await stage.client.create(pod("orphan"))
        await stage.client.create(pod("not-meant", "db"))
        await stage.client.create(pod("mine", ownerReferences=[reference(owner)]))
        await stage.client.create(
            pod("no-longer", "db", ownerReferences=[reference(owner), reference(other, controller=False)])
        )
        await stage.client.create(pod("theirs", ownerReferences=[reference(other)]))
        client = await caches(stage)
        claimed = await ControllerRefManager(client, owner, SELECTOR, PodState).claim()
        assert sorted(each.metadata.name for each in claimed) == ["mine", "orphan"]
        assert await owners(stage) == {
            "orphan": ["me"],
            "not-meant": [],
            "mine": ["me"],
            "no-longer": ["other"],
            "theirs": ["other"],
        }

    on_stage(play)


def test_a_deleted_or_terminating_owner_adopts_nothing() -> None:
    async def play(stage: Stage) -> None:
        gone = await an_owner(stage, "gone")
        await stage.client.delete(gone)
        replaced = await an_owner(stage, "replaced")
        await stage.client.delete(replaced)
        await an_owner(stage, "replaced")
        going = await an_owner(stage, "going", finalizers=["example.dev/hold"])
        await stage.client.delete(going)  # the cached state, before the deletion
        await stage.client.create(pod("orphan"))
        client = await caches(stage)
        for owner in (gone, replaced, going, await stage.client.get(ConfigMap, "going")):
            assert await ControllerRefManager(client, owner, SELECTOR, PodState).claim() == []
        assert await owners(stage) == {"orphan": []}

    on_stage(play)


def test_a_terminating_owner_releases_nothing() -> None:
    async def play(stage: Stage) -> None:
        owner = await an_owner(stage, "me", finalizers=["example.dev/hold"])
        await stage.client.create(pod("mine", "db", ownerReferences=[reference(owner)]))
        await stage.client.delete(owner)
        client = await caches(stage)
        assert (
            await ControllerRefManager(client, await stage.client.get(ConfigMap, "me"), SELECTOR, PodState).claim()
            == []
        )
        assert await owners(stage) == {"mine": ["me"]}

    on_stage(play)


def test_a_deleted_or_recreated_candidate_is_ignored() -> None:
    async def play(stage: Stage) -> None:
        owner = await an_owner(stage, "me")
        client = await caches(stage)
        await stage.client.create(pod("gone"))
        await stage.client.create(pod("dropped", "db", ownerReferences=[reference(owner)]))
        candidates = [await stage.client.get(PodState, name) for name in ("gone", "dropped")]
        for name in ("gone", "dropped"):
            await stage.client.delete(Pod, name)
        assert await ControllerRefManager(client, owner, SELECTOR, PodState).claim_from(candidates) == []

    on_stage(play)


def test_objects_are_indexed_by_controller_uid_and_orphans_by_namespace() -> None:
    async def play(stage: Stage) -> None:
        owner = await an_owner(stage, "me")
        await stage.client.create(pod("mine", ownerReferences=[reference(owner)]))
        await stage.client.create(pod("orphan"))
        client = await caches(stage)
        assert [each.key.name for each in await controlled_by(client, PodState, owner.metadata.uid)] == ["mine"]
        assert [each.key.name for each in await controlled_by(client, PodState, orphans_in("default"))] == ["orphan"]
        await stage.client.patch(Pod, "mine", MergePatch({"metadata": {"ownerReferences": None}}))
        await stage.settle()
        assert await controlled_by(client, PodState, owner.metadata.uid) == []
        assert len(await controlled_by(client, PodState, orphans_in("default"))) == 2

    on_stage(play)
