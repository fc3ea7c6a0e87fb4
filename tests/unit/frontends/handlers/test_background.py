"""Daemons, timers, watch events, indexes, startup and cleanup, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.handlers import EXAMPLE, definition, example

from ostinato import Client, PermanentError, TemporaryError, on
from ostinato.client import MergePatch
from ostinato.controllers import Dependencies
from ostinato.frontends.handlers.operator import Handlers
from ostinato.frontends.handlers.running.activities import ActivityFailed
from ostinato.frontends.handlers.running.memory import Memo, Memories
from ostinato.testing import Cluster, VirtualClock


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
async def test_a_daemon_is_retried_and_ends_with_its_object(
    cluster: Cluster, client: Client, clock: VirtualClock, is_async: bool
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    if is_async:

        @on.daemon("examples", registry=handlers, initial_delay=3, labels={"tier": "web"})
        async def ping(name: str, retry: int, patch: Any, ctx: Any) -> None:
            patch.status["tries"] = retry
            if retry < 2:
                raise TemporaryError("not yet", delay=5)
            try:
                while True:
                    calls.append(name)
                    await ctx.sleep(10)
            finally:
                calls.append("stopped")

    else:

        @on.daemon("examples", registry=handlers, initial_delay=3, labels={"tier": "web"})
        def ping(name: str, retry: int, patch: Any, stopped: Any) -> None:
            patch.status["tries"] = retry
            if retry < 2:
                raise TemporaryError("not yet", delay=5)
            while not stopped:
                calls.append(name)
                stopped.wait(10)
            calls.append("stopped")

    manager = await cluster.manager().start(handlers)
    web = example()
    web["metadata"]["labels"] = {"tier": "web"}
    await client.create(web)
    await client.create(example("other"))
    await clock.advance(2)
    assert "status" not in await client.get(EXAMPLE, "one"), "it has an initial delay"
    await clock.advance(20)
    assert (await client.get(EXAMPLE, "one"))["status"]["tries"] == 1, "the patch of the last call that has ended"
    assert calls == ["one"]
    await clock.advance(10)
    assert calls == ["one", "one"]
    await client.delete(EXAMPLE, "one")
    await clock.advance(5)
    assert calls == ["one", "one", "stopped"]
    assert await client.get(EXAMPLE, "one", missing=None) is None
    assert len(manager.errors) == 2


async def test_a_timer_counts_from_the_end_of_a_call_or_sharply(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: dict[str, list[float]] = {"soft": [], "sharp": [], "idle": [], "failing": []}

    @on.timer("examples", registry=handlers, interval=10)
    async def soft(ctx: Any, patch: Any) -> None:
        calls["soft"].append(ctx.world.clock.monotonic())
        patch.status["soft"] = len(calls["soft"])
        await ctx.sleep(2)

    @on.timer("examples", registry=handlers, interval=10, sharp=True)
    async def sharp(ctx: Any) -> None:
        calls["sharp"].append(ctx.world.clock.monotonic())
        await ctx.sleep(2)

    @on.timer("examples", registry=handlers, interval=10, idle=30)
    def idle(ctx: Any) -> None:
        calls["idle"].append(ctx.world.clock.monotonic())

    @on.timer("examples", registry=handlers, interval=10, retries=2, backoff=1)
    async def failing(retry: int) -> None:
        calls["failing"].append(retry)
        raise ValueError("no")

    manager = await cluster.manager().start(handlers)
    await client.create(example())
    await clock.advance(37)
    assert [round(each - calls["soft"][0]) for each in calls["soft"]] == [0, 12, 24, 36]
    assert [round(each - calls["sharp"][0]) for each in calls["sharp"]] == [0, 10, 20, 30]
    assert len(calls["idle"]) in (1, 2)
    assert calls["failing"] == [0, 1], "after a permanent failure it stands still"
    assert (await client.get(EXAMPLE, "one"))["status"]["soft"] == 3, "sent when the call has ended"
    assert manager.errors


async def test_event_handlers_receive_every_event_and_their_errors_are_logged(
    cluster: Cluster, client: Client, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    @on.event("examples", registry=handlers)
    async def broken() -> None:
        raise ValueError("oops")

    @on.event("examples", registry=handlers, labels={"skip": on.ABSENT})
    def seen(type: str, event: Any, name: str, patch: Any, memo: Any) -> None:  # noqa: A002
        memo.count = memo.get("count", 0) + 1
        calls.append((type, name, event["object"]["spec"].get("size"), memo.count))
        if type == "ADDED":
            patch.status["seen"] = True

    await client.create(example("old"))
    await cluster.manager().start(handlers)
    await client.create(example("new", size=1))
    await clock.advance(1)
    await client.patch(EXAMPLE, "new", MergePatch({"spec": {"size": 2}}))
    await client.patch(EXAMPLE, "new", MergePatch({"spec": {"size": 3}}))
    await clock.advance(1)
    await client.delete(EXAMPLE, "new")
    await clock.advance(1)
    assert calls == [
        (None, "old", None, 1),
        ("ADDED", "new", 1, 1),
        ("MODIFIED", "new", 1, 2),
        ("MODIFIED", "new", 2, 3),
        ("MODIFIED", "new", 3, 4),
        ("DELETED", "new", 3, 5),
    ]
    assert "event handler failed handler=broken error=ValueError: oops" in caplog.text


async def test_indexes_are_complete_before_handlers_and_follow_the_objects(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    seen: list[Any] = []

    @on.index("examples", registry=handlers)
    async def by_size(spec: Any, name: str) -> Any:
        return {spec["size"]: name}

    @on.index("examples", registry=handlers, field="spec.big")
    def big(name: str) -> str:
        return name

    @on.create("examples", registry=handlers)
    async def created(by_size: Any, big: Any) -> None:
        seen.append(({size: sorted(names) for size, names in by_size.items()}, sorted(big.get(None, ()))))

    for number in range(3):
        await client.create(example(f"e{number}", size=number % 2))
    await cluster.manager().start(handlers)
    await clock.advance(1)
    assert seen == [({0: ["e0", "e2"], 1: ["e1"]}, [])] * 3
    await client.delete(EXAMPLE, "e1")
    await client.patch(EXAMPLE, "e0", MergePatch({"spec": {"big": True}}))
    await client.create(example("broken"))
    await client.create(example("last", size=0))
    await clock.advance(1)
    assert seen[-1] == ({0: ["e0", "e2", "last"]}, ["e0"])


async def test_startup_handlers_run_first_and_cleanup_handlers_at_the_end(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install(definition())
    handlers = Handlers("test")
    calls: list[Any] = []

    @on.startup(registry=handlers)
    def configure(settings: Any, memo: Any) -> None:
        settings.persistence.finalizer = "example.dev/own"
        memo.greeting = "hello"
        calls.append("configure")

    @on.startup(registry=handlers)
    async def retried(retry: int) -> None:
        calls.append(("retried", retry))
        if retry < 2:
            raise TemporaryError("not yet", delay=3)

    @on.create("examples", registry=handlers)
    async def created(memo: Any) -> None:
        calls.append(("created", memo.greeting))
        memo.greeting = "changed"

    @on.delete("examples", registry=handlers)
    async def deleted() -> None: ...

    @on.cleanup(registry=handlers)
    async def clean() -> None:
        calls.append("clean")
        raise PermanentError("logged")

    await client.create(example("a"))
    await client.create(example("b"))
    manager = await cluster.manager().start(handlers)
    await clock.advance(10)
    started = ["configure", *(("retried", n) for n in range(3))]
    assert calls == [*started, ("created", "hello"), ("created", "hello")], "each object has a copy of the memo"
    assert (await client.get(EXAMPLE, "a"))["metadata"]["finalizers"] == ["example.dev/own"]
    await manager.end()
    assert calls[-1] == "clean"


async def test_a_startup_handler_that_fails_for_good_stops_the_operator(cluster: Cluster) -> None:
    handlers = Handlers("test")

    @on.startup(registry=handlers, retries=1)
    async def start() -> None:
        raise ValueError("no")

    with pytest.raises(ActivityFailed, match="startup handler start failed: ValueError: no"):
        await handlers.make().run(Dependencies(client=None, informers=None, world=cluster.world))  # type: ignore[arg-type]


def test_a_memo_is_a_dict_with_attributes() -> None:
    memo = Memo()
    memo.a = 1
    assert memo == {"a": 1}
    del memo.a
    with pytest.raises(AttributeError, match="memo has no 'a'"):
        print(memo.a)
    with pytest.raises(AttributeError):
        del memo.a


@pytest.mark.parametrize("forms", [["timer"], ["timer", "create"], ["timer", "event"], ["timer", "create", "event"]])
async def test_deleted_objects_are_forgotten(
    cluster: Cluster, client: Client, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, forms: list[str]
) -> None:
    await cluster.install(definition())
    made: list[Memories] = []
    monkeypatch.setattr(Memories, "__init__", _noted(Memories.__init__, made))
    handlers = Handlers("test")
    calls: list[float] = []

    @on.timer("examples", registry=handlers, interval=10, initial_delay=lambda spec, **_: spec["wait"])
    async def tick(ctx: Any) -> None:
        calls.append(ctx.world.clock.monotonic())

    for form in forms[1:]:
        getattr(on, form)("examples", registry=handlers)(_nothing)
    await cluster.manager().start(handlers)
    begun = clock.monotonic()
    await client.create(example(wait=3))
    await clock.advance(14)
    assert [round(each - begun) for each in calls] == [3, 13]
    assert [len(list(each)) for each in made if list(each)] == [1]
    await client.delete(EXAMPLE, "one")
    await clock.advance(5)
    assert [list(each) for each in made if list(each)] == []


async def _nothing() -> None: ...


def _noted(init: Any, made: list[Any]) -> Any:
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(self)

    return noted
