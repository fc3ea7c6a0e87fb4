"""The mirror: Secrets of one cluster are copied to another, and corrected there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ostinato import Client, ObjectMeta
from ostinato.client import MergePatch, is_deleted
from ostinato.kinds.core_v1 import Secret
from ostinato.testing import Cluster, ClusterManager, Eventually, load

mirror = load(Path(__file__).resolve().parents[2] / "examples" / "mirror.py")


def secret(name: str, value: str, *, wanted: bool = True) -> Secret:
    labels = {mirror.WANTED: "true"} if wanted else {}
    return Secret(metadata=ObjectMeta(name=name, labels=labels), data={"token": value.encode()})


def having(value: str) -> object:
    return lambda each: each.data == {"token": value.encode()}


@asynccontextmanager
async def mirrored(manager: ClusterManager) -> AsyncIterator[Client]:
    """A second cluster, whose Secrets the manager mirrors; yields its client."""
    async with Cluster() as hub:
        mirror.add_mirror(manager, hub.client)
        await manager.start()
        yield hub.client
        await manager.end()


async def test_labelled_secrets_are_copied_and_follow_the_source(
    manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    async with mirrored(manager) as hub:
        await hub.create(secret("b", "1", wanted=False))
        await hub.create(secret("a", "1"))
        await eventually(Secret, "a", having("1"))
        assert await client.get(Secret, "b", missing=None) is None

        await hub.patch(Secret, "a", MergePatch({"stringData": {"token": "2"}}))
        await eventually(Secret, "a", having("2"))
        await hub.patch(Secret, "b", MergePatch({"metadata": {"labels": {mirror.WANTED: "true"}}}))
        await eventually(Secret, "b", having("1"))

        await hub.patch(Secret, "a", MergePatch({"metadata": {"labels": {mirror.WANTED: None}}}))
        await hub.delete(Secret, "b")
        for name in ("a", "b"):
            await client.wait_for(Secret, name, is_deleted, timeout=5)


async def test_changes_of_a_copy_are_corrected(manager: ClusterManager, client: Client, eventually: Eventually) -> None:
    async with mirrored(manager) as hub:
        await hub.create(secret("a", "1"))
        await eventually(Secret, "a")
        await client.patch(Secret, "a", MergePatch({"stringData": {"token": "wrong"}}))
        await eventually(Secret, "a", having("1"))
        await client.delete(Secret, "a")
        await eventually(Secret, "a", having("1"))


async def test_a_secret_that_is_not_a_copy_is_kept(
    manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    async with mirrored(manager) as hub:
        await client.create(secret("a", "theirs", wanted=False))
        await hub.create(secret("a", "1"))
        await hub.create(secret("later", "1"))
        await eventually(Secret, "later")
        assert (await client.get(Secret, "a")).data == {"token": b"theirs"}
        await hub.delete(Secret, "a")
        await hub.delete(Secret, "later")
        await client.wait_for(Secret, "later", is_deleted, timeout=5)
        assert (await client.get(Secret, "a")).data == {"token": b"theirs"}


async def test_a_copy_whose_source_was_deleted_meanwhile_is_deleted(manager: ClusterManager, client: Client) -> None:
    await client.create(Secret(metadata=ObjectMeta(name="old", labels={mirror.COPY: "true"})))
    async with mirrored(manager):
        await client.wait_for(Secret, "old", is_deleted, timeout=5)
