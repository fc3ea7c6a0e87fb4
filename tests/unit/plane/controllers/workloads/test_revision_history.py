from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.codec import ObjectError, from_dict
from ostinato.api.selectors.labels import from_set
from ostinato.cache import CachedClient
from ostinato.client import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet
from ostinato.manager import Manager
from ostinato.plane.controllers.workloads.revision_history import History, hash_of, patch_to, template_of
from ostinato.plane.ownership.controller_refs import add_controller_index

LABEL = "controller-revision-hash"
SELECTOR = from_set({"app": "agent"})


def daemonset(image: str = "agent:1", name: str = "agent") -> DaemonSet:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "app", "image": image}]},
    }
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    return from_dict(DaemonSet, {"metadata": {"name": name, "annotations": {"note": "this"}}, "spec": spec})


def with_client(test: Callable[[Stage, CachedClient], Awaitable[None]]) -> None:
    """Run a test with a client that keeps the revisions in a cache."""

    async def play(stage: Stage) -> None:
        class Nothing:
            async def reconcile(self, request: Request, ctx: Context) -> None:
                pass

        def add(manager: Manager) -> None:
            add_controller_index(manager, ControllerRevision)
            manager.build("history").watch_for(ControllerRevision).complete(Nothing())

        manager = stage.run(add)
        await stage.settle()
        await test(stage, manager.client)

    on_stage(play)


async def revise(client: CachedClient, owner: DaemonSet, collisions: int = 0) -> tuple[ControllerRevision, int]:
    history = History(client, owner, SELECTOR, LABEL)
    return await history.revise(await history.load(), collisions)


async def set_image(stage: Stage, image: str) -> DaemonSet:
    change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
    return await stage.client.patch(DaemonSet, "agent", MergePatch(change))


def test_the_data_of_a_revision_has_sorted_keys() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        made, _ = await revise(client, await stage.client.create(daemonset()))
        data = (await stage.client.get(ControllerRevision, made.metadata.name)).data
        assert msgspec.json.encode(data) == msgspec.json.encode(data, order="sorted")
        assert [*data["spec"]["template"]] == ["$patch", "metadata", "spec"]

    with_client(test)


def test_a_template_is_stored_once_as_a_patch_with_a_revision_number() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        owner = await stage.client.create(daemonset())
        first, _ = await revise(client, owner)
        await stage.settle()
        again, _ = await revise(client, owner)
        assert first.metadata.uid == again.metadata.uid
        assert first.revision == 1
        assert first.metadata.name == f"agent-{first.metadata.labels[LABEL]}"
        assert first.metadata.annotations["note"] == "this"
        assert first.data["spec"]["template"]["$patch"] == "replace"
        assert template_of(first) == owner.spec.template

    with_client(test)


def test_a_restored_template_reuses_its_revision_with_the_highest_number() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        await stage.client.create(daemonset())
        first, _ = await revise(client, await stage.client.get(DaemonSet, "agent"))
        await stage.settle()
        second, _ = await revise(client, await set_image(stage, "agent:2"))
        assert second.revision == 2
        await stage.settle()
        back, _ = await revise(client, await set_image(stage, "agent:1"))
        assert (back.metadata.uid, back.revision) == (first.metadata.uid, 3)

    with_client(test)


def test_a_name_of_another_template_is_a_collision() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        owner = await stage.client.create(daemonset())
        taken = f"agent-{hash_of(patch_to(owner.spec.template), 0)}"
        other = {"metadata": {"name": taken}, "revision": 7, "data": {"some": "thing"}}
        await stage.client.create(from_dict(ControllerRevision, other))
        made, collisions = await revise(client, owner)
        assert collisions == 1
        assert made.metadata.name == f"agent-{hash_of(patch_to(owner.spec.template), 1)}"

    with_client(test)


def test_equal_revisions_are_recognized_regardless_of_defaults() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        owner = await stage.client.create(daemonset())
        first, _ = await revise(client, owner)
        data = dict(first.data)
        metadata = {**data["spec"]["template"]["metadata"], "creationTimestamp": None}
        data["spec"] = {"template": {**data["spec"]["template"], "metadata": metadata}}
        await stage.client.delete(ControllerRevision, first.metadata)
        old = {"name": "agent-old", "labels": {"app": "agent"}}
        await stage.client.create(from_dict(ControllerRevision, {"metadata": old, "revision": 4, "data": data}))
        await stage.settle()
        found, _ = await revise(client, owner)
        assert (found.metadata.name, found.revision) == ("agent-old", 4)

    with_client(test)


def test_foreign_and_malformed_revisions_are_ignored() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        labels = {"app": "agent"}
        for name, data in (("one", {"some": 1}), ("two", {"spec": []}), ("three", {"spec": {"template": {"spec": 5}}})):
            metadata = {"name": name, "labels": labels}
            await stage.client.create(
                from_dict(ControllerRevision, {"metadata": metadata, "revision": 1, "data": data})
            )
        await stage.settle()
        made, _ = await revise(client, await stage.client.create(daemonset()))
        assert made.revision == 2

    with_client(test)


def test_the_oldest_unused_revisions_are_deleted() -> None:
    async def test(stage: Stage, client: CachedClient) -> None:
        await stage.client.create(daemonset())
        for number in range(1, 5):
            await revise(client, await set_image(stage, f"agent:{number}"))
            await stage.settle()
        history = History(client, await stage.client.get(DaemonSet, "agent"), SELECTOR, LABEL)
        revisions = await history.load()
        await history.truncate(revisions[:3], 2)
        await history.truncate(revisions[:3], -1)
        await stage.settle()
        assert [each.revision for each in await history.load()] == [3, 4]

    with_client(test)


def test_a_hash_uses_the_safe_alphabet() -> None:
    patches: list[dict[str, Any]] = [{"spec": {"template": {"number": number}}} for number in range(1000)]
    hashes = {hash_of(patch, 0) for patch in patches}
    assert len(hashes) == 1000
    assert set("".join(hashes)) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert hash_of(patches[0], 0) != hash_of(patches[0], 1)
    assert hash_of({"a": 1, "b": 2}, 0) == hash_of({"b": 2, "a": 1}, 0)


def test_a_revision_without_a_template_is_an_error() -> None:
    with pytest.raises(ObjectError, match=r"ControllerRevision: data\.spec\.template: missing"):
        template_of(ControllerRevision(revision=1, data={}))
