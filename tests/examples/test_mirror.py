"""The mirror: Secrets of one API server are copied to another, and corrected there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.examples.example_plane import example, running
from tests.stage.server import started_server

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.core_v1 import Secret
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation

mirror = example("mirror")

Play = Callable[[Client, Client, Callable[[], Awaitable[None]]], Awaitable[None]]


def secret(name: str, value: str, *, wanted: bool = True) -> Secret:
    labels = {mirror.WANTED: "true"} if wanted else {}
    return Secret(metadata=ObjectMeta(name=name, labels=labels), data={"token": value.encode()})


def on_two_clusters(play: Play) -> None:
    """Run a test with clients of the source and the target cluster, and a function that waits for the operator."""
    world = Simulation(seed=1)

    async def main() -> None:
        async with started_server(world) as one, started_server(world) as other:
            hub = Client(InProcessTransport(one), world=world, namespace="default", field_manager="user")
            edge = Client(InProcessTransport(other), world=world, namespace="default", field_manager="user")
            source = Client(InProcessTransport(one), world=world)
            async with hub, edge, source, running(other, lambda manager: mirror.add_mirror(manager, source)):
                await play(hub, edge, lambda: world.clock.sleep(5))

    world.run(main())


def test_labelled_secrets_are_copied_and_follow_the_source() -> None:
    async def play(hub: Client, edge: Client, settled: Callable[[], Awaitable[None]]) -> None:
        await hub.create(secret("a", "1"))
        await hub.create(secret("b", "1", wanted=False))
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"1"}
        assert await edge.get(Secret, "b", missing=None) is None

        await hub.patch(Secret, "a", MergePatch({"stringData": {"token": "2"}}))
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"2"}

        await hub.patch(Secret, "a", MergePatch({"metadata": {"labels": {mirror.WANTED: None}}}))
        await hub.patch(Secret, "b", MergePatch({"metadata": {"labels": {mirror.WANTED: "true"}}}))
        await settled()
        assert [each.metadata.name for each in await edge.list(Secret)] == ["b"]

        await hub.delete(Secret, "b")
        await settled()
        assert await edge.list(Secret) == []

    on_two_clusters(play)


def test_changes_of_a_copy_are_corrected() -> None:
    async def play(hub: Client, edge: Client, settled: Callable[[], Awaitable[None]]) -> None:
        await hub.create(secret("a", "1"))
        await settled()
        await edge.patch(Secret, "a", MergePatch({"stringData": {"token": "wrong"}}))
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"1"}
        await edge.delete(Secret, "a")
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"1"}

    on_two_clusters(play)


def test_a_secret_that_is_not_a_copy_is_kept() -> None:
    async def play(hub: Client, edge: Client, settled: Callable[[], Awaitable[None]]) -> None:
        await edge.create(secret("a", "theirs", wanted=False))
        await hub.create(secret("a", "1"))
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"theirs"}
        await hub.delete(Secret, "a")
        await settled()
        assert (await edge.get(Secret, "a")).data == {"token": b"theirs"}

    on_two_clusters(play)
