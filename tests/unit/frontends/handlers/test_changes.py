"""Create, update, delete, resume and field handlers, in virtual time."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, PermanentError, TemporaryError, on
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
    def created(spec: Any, reason: str, old: Any, resource: Any, **_: Any) -> Any:
        calls.append(("create", dict(spec), reason, old))
        assert (resource.group, resource.version, resource.plural) == ("example.dev", "v1", "examples")
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


def failing(calls: list[Any]) -> Handlers:
    """Return handlers that fail in every way."""
    handlers = Handlers("test")

    @on.create("examples", registry=handlers)
    async def permanently() -> None:
        calls.append("permanently")
        raise PermanentError("no")

    @on.create("examples", registry=handlers)
    def temporarily(retry: int) -> None:
        calls.append(("temporarily", retry))
        if retry < 3:
            raise TemporaryError("not yet", delay=5)

    @on.create("examples", registry=handlers, retries=3, backoff=5)
    async def thrice() -> None:
        calls.append("thrice")
        raise ValueError("no")

    @on.create("examples", registry=handlers, timeout=12, backoff=5)
    async def timely() -> None:
        calls.append("timely")
        raise ValueError("no")

    @on.create("examples", registry=handlers, errors=on.ErrorsMode.PERMANENT)
    async def strictly() -> None:
        calls.append("strictly")
        raise ValueError("no")

    @on.create("examples", registry=handlers, errors=on.ErrorsMode.IGNORED)
    async def carelessly() -> None:
        calls.append("carelessly")
        raise ValueError("no")

    @on.create("examples", registry=handlers, errors=on.ErrorsMode.PERMANENT)
    async def exiting() -> None:
        calls.append("exiting")
        sys.exit(1)

    @on.create("examples", registry=handlers, errors=on.ErrorsMode.PERMANENT)
    async def cancelled() -> None:
        calls.append("cancelled")
        raise asyncio.CancelledError

    @on.create("examples", registry=handlers)
    async def unstorable() -> object:
        calls.append("unstorable")
        return object()

    return handlers


async def test_errors_are_retried_or_not_as_the_handler_says(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    manager = await cluster.manager().start(failing(calls))
    await client.create(example())
    await clock.advance(1)
    once = ["permanently", "strictly", "carelessly", "exiting", "cancelled", "unstorable"]
    assert [each for each in calls if each in once] == once
    await clock.advance(100)
    for name, count in {**dict.fromkeys(once, 1), "thrice": 3, "timely": 3}.items():
        assert calls.count(name) == count, name
    assert [each for each in calls if isinstance(each, tuple)] == [("temporarily", n) for n in range(4)]
    assert any("the handler called sys.exit(1)" in str(each.error) for each in manager.errors)
    found = await client.get(EXAMPLE, "one")
    stored = found["status"]["handlers"]["test"]
    assert set(stored) == {"uid", "lastHandled"}, "the handling has ended"
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    calls.clear()
    await clock.advance(100)
    assert calls == [], "an update does not repeat the creation"


async def test_a_handler_that_hangs_holds_up_its_object_alone_until_its_timeout(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    handlers = Handlers("test")

    @on.create("examples", registry=handlers, timeout=60)
    async def hang(name: str, ctx: Any) -> None:
        calls.append(name)
        if name == "a":
            await ctx.sleep(10_000)

    manager = await cluster.manager().start(handlers)
    await client.create(example("a"))
    await clock.advance(1)
    await client.create(example("b"))
    await clock.advance(1)
    assert calls == ["a", "b"]
    await clock.advance(60)
    assert "was cancelled after its timeout" in str(manager.errors[0].error)
    found = await client.get(EXAMPLE, "a")
    assert set(found["status"]["handlers"]["test"]) == {"uid", "lastHandled"}
    assert calls == ["a", "b"]


async def test_a_change_while_handlers_are_retried_reaches_those_that_had_finished(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    calls: list[Any] = []
    handlers = Handlers("test")
    is_broken = True

    @on.create("examples", registry=handlers)
    @on.update("examples", registry=handlers)
    async def quick(spec: Any, reason: str) -> None:
        calls.append(("quick", reason, spec["size"]))

    @on.create("examples", registry=handlers, backoff=10)
    @on.update("examples", registry=handlers, backoff=10)
    async def slow(spec: Any, reason: str) -> None:
        calls.append(("slow", reason, spec["size"]))
        if is_broken:
            raise ValueError("no")

    manager = await cluster.manager().start(handlers)
    await client.create(example(size=1))
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    await clock.advance(1)
    assert calls == [("quick", "create", 1), ("slow", "create", 1)], "the creation goes on, after the backoff"
    is_broken = False
    await clock.advance(10)
    assert calls[2:] == [("slow", "create", 2), ("quick", "update", 2), ("slow", "update", 2)]
    calls.clear()
    is_broken = True
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 3}}))
    await clock.advance(1)
    await client.patch(EXAMPLE, "one", MergePatch({"spec": {"size": 2}}))
    is_broken = False
    await clock.advance(20)
    assert calls == [("quick", "update", 3), ("slow", "update", 3), ("quick", "update", 2), ("slow", "update", 2)]
    assert len(manager.errors) == 2


async def test_objects_that_match_no_handler_are_left_alone(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    @on.delete("examples", registry=handlers, labels={"tier": "web"})
    async def deleted(name: str) -> None:
        calls.append(name)

    await cluster.manager().start(handlers)
    made = await client.create(example())
    await clock.advance(1)
    assert await client.get(EXAMPLE, "one") == made
    await client.patch(EXAMPLE, "one", MergePatch({"metadata": {"labels": {"tier": "web"}}}))
    await clock.advance(1)
    assert (await client.get(EXAMPLE, "one"))["metadata"]["finalizers"] == ["handlers.ostinato.dev/test"]
    await client.patch(EXAMPLE, "one", MergePatch({"metadata": {"labels": {"tier": None}}}))
    await clock.advance(1)
    assert "finalizers" not in (await client.get(EXAMPLE, "one"))["metadata"]
    await client.delete(EXAMPLE, "one")
    await clock.advance(1)
    assert calls == []


async def test_a_patch_is_sent_and_a_change_of_the_spec_is_an_update(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    @on.create("examples", registry=handlers)
    def created(patch: Any) -> None:
        patch.spec["size"] = 7
        patch.status["phase"] = "Made"
        patch.meta.labels["made"] = "yes"
        patch.fns.append(lambda body: body["spec"].setdefault("items", []).append("x"))

    @on.update("examples", registry=handlers)
    async def updated(diff: Any) -> None:
        calls.append(sorted(diff))

    await cluster.manager().start(handlers)
    await client.create(example(items=["a"]))
    await clock.advance(1)
    found = await client.get(EXAMPLE, "one")
    assert found["spec"] == {"size": 7, "items": ["a", "x"]}
    assert found["status"]["phase"] == "Made"
    assert found["metadata"]["labels"] == {"made": "yes"}
    assert calls == [
        [
            ("add", ("metadata",), None, {"labels": {"made": "yes"}}),
            ("add", ("spec", "size"), None, 7),
            ("change", ("spec", "items"), ["a"], ["a", "x"]),
        ]
    ]


async def test_an_endless_loop_of_patches_is_slowed_down(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")

    @on.create("examples", registry=handlers)
    @on.update("examples", registry=handlers)
    async def count(spec: Any, patch: Any) -> None:
        patch.spec["count"] = spec.get("count", 0) + 1

    await cluster.manager().start(handlers)
    await client.create(example())
    await clock.advance(60)
    first = (await client.get(EXAMPLE, "one"))["spec"]["count"]
    await clock.advance(60)
    assert (await client.get(EXAMPLE, "one"))["spec"]["count"] - first < 60, "about one a second at most"


async def test_a_patch_that_the_server_rejects_fails_the_handler_once(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[str] = []

    @on.create("examples", registry=handlers)
    async def wrong(patch: Any) -> None:
        calls.append("wrong")
        patch["spec"] = "a text"

    manager = await cluster.manager().start(handlers)
    await client.create(example())
    await clock.advance(100)
    assert calls == ["wrong"]
    assert "PatchRejected" in str(manager.errors[0].error)


async def test_sub_handlers_have_progress_of_their_own(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    @on.create("examples", registry=handlers)
    def parent(spec: Any) -> None:
        calls.append("parent")
        for item in spec["items"]:

            @on.subhandler(id=item, backoff=5)
            async def child(retry: int, item: str = item) -> Any:
                calls.append((item, retry))
                if item == "b" and not retry:
                    raise ValueError("not yet")
                return item.upper()

    @on.create("examples", registry=handlers)
    async def explicit() -> None:
        async def inner() -> None:
            calls.append("inner")

        await on.execute(fns={"inner": inner})
        calls.append("after inner")

    manager = await cluster.manager().start(handlers)
    await client.create(example(items=["a", "b", "c"]))
    await clock.advance(1)
    assert calls == ["parent", ("a", 0), ("b", 0), ("c", 0), "inner", "after inner"]
    calls.clear()
    await clock.advance(60)
    assert calls == ["parent", ("b", 1)]
    found = await client.get(EXAMPLE, "one")
    assert {name: found["status"][f"parent/{name}"] for name in "abc"} == {"a": "A", "b": "B", "c": "C"}
    assert len(manager.errors) == 1


async def test_an_object_that_is_recreated_while_it_is_handled_is_handled_anew(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[str] = []

    @on.create("examples", registry=handlers)
    async def slow(uid: str, ctx: Any, patch: Any) -> None:
        calls.append(uid)
        await ctx.sleep(10)
        patch.status["of"] = uid

    await cluster.manager().start(handlers)
    first = await client.create(example())
    await clock.advance(1)
    await client.delete(EXAMPLE, "one")
    second = await client.create(example())
    await clock.advance(10)
    assert (await client.get(EXAMPLE, "one")).get("status") is None, "the patch is for the first object"
    await clock.advance(20)
    assert calls == [first["metadata"]["uid"], second["metadata"]["uid"]]
    assert (await client.get(EXAMPLE, "one"))["status"]["of"] == second["metadata"]["uid"]
