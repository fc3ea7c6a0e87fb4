"""Create, update, delete, resume and field handlers, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, on
from ostinato.client import MergePatch
from ostinato.frontends.handlers.operator import Handlers
from ostinato.testing import Cluster, VirtualClock


async def test_handlers_are_called_for_the_life_of_an_object(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    handlers = Handlers("test")

    @on.create("examples", registry=handlers)
    def created(spec: Any, reason: str, old: Any, **_: Any) -> Any:
        calls.append(("create", dict(spec), reason, old))
        return {"message": "hello"}

    @on.update("ex", registry=handlers)
    async def updated(diff: Any, **_: Any) -> None:
        calls.append(("update", tuple(diff)))

    @on.field("example.dev", "v1", "examples", field="spec.size", registry=handlers)
    async def sized(old: Any, new: Any, **_: Any) -> None:
        calls.append(("field", old, new))

    @on.delete("examples", registry=handlers)
    async def deleted(name: str) -> None:
        calls.append(("delete", name))

    await cluster.manager().start(handlers)
    await client.create(example(size=1))
    await clock.advance(1)
    assert calls == [("create", {"size": 1}, "create", None), ("field", None, 1)]
    found = await client.get(EXAMPLE, "one")
    assert found["status"]["created"] == {"message": "hello"}
    assert found["metadata"]["finalizers"] == ["handlers.ostinato.dev/test"]
    assert "annotations" not in found["metadata"]
    calls.clear()
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    await clock.advance(1)
    assert calls == [("update", (("change", ("spec", "size"), 1, 2),)), ("field", 1, 2)]
    calls.clear()
    await client.delete(EXAMPLE, "one")
    await clock.advance(1)
    assert calls == [("delete", "one")]
    assert await client.get(EXAMPLE, "one", missing=None) is None


async def test_finished_handlers_are_not_called_again_after_a_restart_and_the_others_are(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    is_broken = True

    def operator() -> Handlers:
        handlers = Handlers("test")

        @on.create("examples", registry=handlers)
        async def first() -> None:
            calls.append("first")

        @on.create("examples", registry=handlers, backoff=10)
        async def second(retry: int) -> None:
            calls.append(("second", retry))
            if is_broken:
                raise ValueError("no")

        @on.create("examples", registry=handlers)
        def third() -> None:
            calls.append("third")

        return handlers

    manager = await cluster.manager().start(operator())
    await client.create(example())
    await clock.advance(1)
    assert calls == ["first", ("second", 0), "third"]
    await clock.advance(10)
    assert calls[3:] == [("second", 1)]
    assert "ValueError: no" in str(manager.errors[0].error)
    await manager.end()
    calls.clear()
    is_broken = False
    await cluster.manager().start(operator())
    await clock.advance(5)
    assert calls == [], "its backoff outlives the process"
    await clock.advance(5)
    assert calls == [("second", 2)]
    await clock.advance(100)
    assert calls == [("second", 2)]


async def test_a_restarted_operator_resumes_objects_and_sees_what_it_missed(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []

    def operator() -> Handlers:
        handlers = Handlers("test")

        @on.create("examples", registry=handlers)
        @on.resume("examples", registry=handlers)
        async def seen(name: str, reason: str) -> None:
            calls.append((reason, name))

        @on.update("examples", registry=handlers)
        async def updated(name: str, old: Any, new: Any) -> None:
            calls.append(("update", name, old["spec"], new["spec"]))

        @on.delete("examples", registry=handlers)
        async def deleted(name: str) -> None:
            calls.append(("delete", name))

        return handlers

    manager = await cluster.manager().start(operator())
    for name in ("a", "b", "c"):
        await client.create(example(name, size=1))
    await clock.advance(1)
    assert sorted(calls) == [("create", "a"), ("create", "b"), ("create", "c")]
    await manager.end()
    calls.clear()
    await client.patch(EXAMPLE, "b", MergePatch({"spec": {"size": 2}}))
    await client.delete(EXAMPLE, "c")
    await client.create(example("d"))
    await cluster.manager().start(operator())
    await clock.advance(1)
    assert sorted(calls) == [
        ("create", "d"),
        ("delete", "c"),
        ("resume", "a"),
        ("update", "b"),
        ("update", "b", {"size": 1}, {"size": 2}),
    ]
    calls.clear()
    await clock.advance(100)
    assert calls == []
