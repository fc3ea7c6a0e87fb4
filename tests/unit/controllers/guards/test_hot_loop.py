"""The hot-loop guard, and waiting for own writes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget

from ostinato.cache import CachedClient, Informers
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.client import Client, MergePatch
from ostinato.controllers import Builder, Context, Request, Result, controller
from ostinato.controllers.guards.differences import differences, digest
from ostinato.controllers.guards.hot_loop import HotLoopGuard
from ostinato.controllers.reasons import Why
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog


@staged
async def test_a_controller_that_wakes_itself_is_found_held_back_and_reported(stage: ControllerStage) -> None:
    runs: list[float] = []

    @controller(Widget)
    async def restless(each: Widget, ctx: Context) -> None:
        runs.append(ctx.world.clock.monotonic())
        await ctx.status(note=f"run {len(runs)}")

    await stage.user.create(widget("a"))
    async with stage.running(restless):
        await stage.settle(600)
        held_back = stage.metrics.value("ostinato_reconcile_hot_loops_total", controller="restless")
        assert held_back == len([text for text in stage.log.texts() if "hot loop detected" in text]) > 0
    assert len(runs) < 40, "it would have been thousands"
    assert round(runs[-1] - runs[-2]) == 60
    first = stage.log.texts()[0]
    assert first.startswith(
        "hot loop detected controller=restless object='Widget default/a': the reconcile is self-triggered: 11 "
        "consecutive runs were caused by its own write to Widget default/a; the last write changed status.note: "
    )
    assert first.endswith("; delayed by 1 s")
    kind, reason, _ = stage.recorder.events[0]
    assert (kind, reason) == ("Warning", "HotLoop")


@pytest.mark.parametrize("fails", [False, True])
def test_a_loop_is_found_though_each_run_is_to_be_followed_by_another_later(fails: bool) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        runs: list[str] = []

        @controller(Widget)
        async def restless(each: Widget, ctx: Context) -> Result:
            runs.append(str(ctx.reconcile.why))
            await ctx.status(note=f"run {len(runs)}")
            if fails and len(runs) > 12:  # by then it is not tried again for seconds
                raise OSError("no such thing")
            return Result(requeue_after=3600)

        await stage.user.create(widget("a"))
        async with stage.running(restless):
            await stage.settle(600)
        assert len(runs) < 100, "it would have been thousands"
        assert runs[1:12] == ["Widget updated"] * 11
        assert any("the reconcile is self-triggered" in text for text in stage.log.texts())

    play()


@pytest.mark.parametrize("seconds", [0.2, 1, 30])
def test_a_loop_is_held_back_longer_each_time_though_each_run_is_to_be_followed_by_another_soon(seconds: float) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        runs: list[float] = []

        @controller(Widget)
        async def restless(each: Widget, ctx: Context) -> Result:
            runs.append(ctx.world.clock.monotonic())
            await ctx.status(note=f"run {len(runs)}")
            return Result(requeue_after=seconds)

        await stage.user.create(widget("a"))
        async with stage.running(restless):
            await stage.settle(600)
        assert len(runs) < 40, "it would have been thousands"
        assert round(runs[-1] - runs[-2]) == 60

    play()


class _EventsFirst:
    """A transport whose answers to writes come when everybody has seen them."""

    def __init__(self, stage: ControllerStage) -> None:
        self._stage = stage
        self._inner = stage.transport.inner
        self.host = self._inner.host

    async def request(self, request: Any) -> Any:
        answer = await self._inner.request(request)
        if request.method != "GET":
            await self._stage.settle(0.01)
        return answer


@staged
async def test_a_loop_is_found_though_the_cache_sees_writes_before_their_answers_come(stage: ControllerStage) -> None:
    stage.transport.inner = _EventsFirst(stage)
    runs: list[float] = []

    @controller(Widget)
    async def restless(each: Widget, ctx: Context) -> None:
        runs.append(ctx.world.clock.monotonic())
        await ctx.status(note=f"run {len(runs)}")

    await stage.user.create(widget("a"))
    async with stage.running(restless):
        await stage.settle(600)
    assert len(runs) < 40, "it would have been thousands"
    assert 'the last write changed status.note: "run 10" -> "run 11"' in stage.log.texts()[0]


@staged
async def test_a_fight_is_found_though_the_cache_sees_writes_before_their_answers_come(stage: ControllerStage) -> None:
    stage.transport.inner = _EventsFirst(stage)

    @controller(Widget)
    async def stubborn(each: Widget, ctx: Context) -> None:
        if each.spec.size != 5:
            await ctx.client.patch(Widget, ctx.request, MergePatch({"spec": {"size": 5}}))

    await stage.user.create(widget("a"))
    async with stage.running(stubborn):
        for _ in range(20):
            await stage.user.patch(Widget, "a", MergePatch({"spec": {"size": 1}}))
            await stage.settle(1)
    assert "wrote the same state to Widget default/a" in stage.log.texts()[0]


@staged
async def test_writes_without_changes_do_not_count_as_writes(stage: ControllerStage) -> None:
    stage.transport.inner = _EventsFirst(stage)

    @controller(Widget)
    async def idle(each: Widget, ctx: Context) -> None:
        await ctx.client.patch(Widget, ctx.request, MergePatch({"spec": {"text": "x"}}))

    await stage.user.create(widget("a", text="x"))
    async with stage.running(idle):
        for number in range(40):
            await stage.user.patch(Widget, "a", MergePatch({"spec": {"size": number % 2 + 1}}))
            await stage.settle(1)
    assert stage.log.texts() == []


@staged
async def test_fields_at_their_default_are_not_reported_as_removed(stage: ControllerStage) -> None:
    @controller(Widget)
    async def restless(each: Widget, ctx: Context) -> None:
        await ctx.status(note=ctx.reconcile.id)

    made = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    await stage.user.create(made)
    async with stage.running(restless):
        await stage.settle(5)
    assert "hot loop detected" in stage.log.texts()[0]
    assert "spec" not in stage.log.texts()[0]


@staged
async def test_its_neighbours_keep_working(stage: ControllerStage) -> None:
    count = [0]

    @controller(Widget)
    async def restless(each: Widget, ctx: Context) -> None:
        count[0] += 1
        await ctx.status(note=f"run {count[0]}" if each.metadata.name == "bad" else "fine")

    await stage.user.create(widget("bad"))
    async with stage.running(restless):
        await stage.settle(100)
        await stage.user.create(widget("good"))
        await stage.settle(1)
        status = (await stage.user.get(Widget, "good")).status
        assert status is not None
        assert status.note == "fine"


@staged
async def test_a_hot_loop_that_ends_is_no_longer_delayed(stage: ControllerStage) -> None:
    runs: list[float] = []

    @controller(Widget)
    async def restless(each: Widget, ctx: Context) -> None:
        runs.append(ctx.world.clock.monotonic())
        if len(runs) < 15:
            await ctx.status(note=f"run {len(runs)}")

    await stage.user.create(widget("a"))
    async with stage.running(restless):
        await stage.settle(200)
        assert len(runs) == 15
        changed = await stage.user.get(Widget, "a")
        changed.spec.size = 3
        await stage.user.update(changed)
        await stage.settle(0.5)
        assert len(runs) == 16


@staged
async def test_two_controllers_that_fight_are_found_and_the_fields_named(stage: ControllerStage) -> None:
    def fighter(name: str, value: str) -> Any:
        async def fight(each: Widget, ctx: Context) -> None:
            wanted = config_map("shared", mode=value)
            await ctx.apply(wanted, adopt=True)

        return (
            Builder(name).watch_for(Widget).watches(ConfigMap, map_to=lambda _: Request("default", "a")).complete(fight)
        )

    await stage.user.create(widget("a"))
    async with stage.running(fighter("one", "blue")), stage.running(fighter("two", "red")):
        await stage.settle(600)
    assert len(stage.transport.writes()) < 150
    texts = [text for text in stage.log.texts() if "hot loop" in text]
    assert texts
    assert "wrote the same state to ConfigMap default/shared" in texts[0]
    assert "and another writer reverted it; the last write changed data.mode: " in texts[0]


@staged
async def test_a_reconcile_that_proceeds_in_steps_is_not_a_hot_loop(stage: ControllerStage) -> None:
    @controller(Widget, owns=[ConfigMap])
    async def steps(each: Widget, ctx: Context) -> Result | None:
        ready = each.status.ready if each.status is not None else 0
        await ctx.apply(config_map(f"{each.metadata.name}-{ready}"), owner=each)
        if ready < 8:
            await ctx.status(ready=ready + 1)
        return None

    await stage.user.create(widget("a"))
    async with stage.running(steps):
        await stage.settle(5)
    assert stage.log.texts() == []
    assert len(await stage.user.list(ConfigMap, namespace="default")) == 9


@staged
async def test_a_status_that_follows_a_changing_value_is_not_a_hot_loop(stage: ControllerStage) -> None:
    @controller(Widget, owns=[ConfigMap])
    async def follows(each: Widget, ctx: Context) -> None:
        found = await ctx.client.get(ConfigMap, "weather", namespace="default", missing=None)
        await ctx.status(note=(found.data if found is not None else {}).get("now", ""))

    owner = await stage.user.create(widget("a"))
    weather = config_map("weather")
    from ostinato.api.owners import set_controller_reference

    set_controller_reference(owner, weather)
    await stage.user.create(weather)
    async with stage.running(follows):
        for number in range(60):
            change = MergePatch({"data": {"now": "sun" if number % 2 else "rain"}})
            await stage.user.patch(ConfigMap, "weather", change)
            await stage.settle(2)
        assert stage.log.texts() == []
        status = (await stage.user.get(Widget, "a")).status
        assert status is not None
        assert status.note == "sun"


@staged
async def test_a_changing_value_copied_to_another_cluster_is_not_a_hot_loop(stage: ControllerStage) -> None:
    server = Server(stage.world, MemoryLog())
    await server.start()
    client = Client(InProcessTransport(server), world=stage.world, namespace="default", field_manager="copies")
    there = CachedClient(client, Informers(client))

    @controller(ConfigMap)
    async def copies(each: ConfigMap, ctx: Context) -> None:
        await there.apply(config_map("a", **each.data), force=True)

    await stage.user.create(config_map("a", x="0"))
    async with stage.running(copies):
        for number in range(60):
            await stage.user.patch(ConfigMap, "a", MergePatch({"data": {"x": str(number % 2)}}))
            await stage.settle(5)
    assert (await there.get(ConfigMap, "a")).data == {"x": "1"}
    assert stage.log.texts() == []
    await server.close()


@staged
async def test_a_heartbeat_with_requeue_after_is_not_a_hot_loop(stage: ControllerStage) -> None:
    beats = [0]

    @controller(Widget)
    async def beating(each: Widget, ctx: Context) -> Result:
        if (beats[0] % 2) == 0:
            await ctx.status(note=f"beat {beats[0]}")
        beats[0] += 1
        return Result(requeue_after=5)

    await stage.user.create(widget("a"))
    async with stage.running(beating):
        await stage.settle(300)
    assert stage.log.texts() == []


@staged
async def test_the_guard_can_be_switched_off(stage: ControllerStage) -> None:
    runs = [0]

    @controller(Widget, hot_loop_guard=False)
    async def restless(each: Widget, ctx: Context) -> None:
        runs[0] += 1
        if runs[0] < 100:
            await ctx.status(note=f"run {runs[0]}")

    await stage.user.create(widget("a"))
    async with stage.running(restless):
        await stage.settle(5)
    assert runs[0] == 100
    assert stage.log.texts() == []


@staged
async def test_writes_that_change_nothing_do_not_count(stage: ControllerStage) -> None:
    runs = [0]

    @controller(Widget, owns=[ConfigMap])
    async def eager(each: Widget, ctx: Context) -> Result:
        runs[0] += 1
        await ctx.client.live.apply(config_map("x", a="b"), field_manager="eager", force=True)
        await ctx.client.apply(config_map("y", a="b"), field_manager="eager", force=True)
        return Result(requeue_after=0.1)

    await stage.user.create(widget("a"))
    async with stage.running(eager):
        await stage.settle(30)
    assert runs[0] > 200
    assert stage.log.texts() == []


@staged
async def test_the_memory_of_the_guard_is_bounded(stage: ControllerStage) -> None:
    guard = HotLoopGuard(stage.world.clock, stage.informers)
    guard._most = 3
    made = [await stage.user.create(config_map(f"c{number}")) for number in range(5)]
    for each in made:
        write = guard.wrote(OwnWrite.of(each))
        assert write is not None
        assert write.fields() == []
        assert guard.finished(each.metadata.name, Why((), None), [write]) is None
        assert guard.wrote(OwnWrite.of(each)) is None
    assert len(guard._versions) == len(guard._histories) == 3


@staged
async def test_a_key_that_writes_other_objects_each_time_is_forgotten(stage: ControllerStage) -> None:
    guard = HotLoopGuard(stage.world.clock, stage.informers)
    for number in range(150):
        made = config_map(f"c{number}") if number % 2 else {**CONFIG_MAP, "metadata": {"name": str(number)}}
        write = guard.wrote(OwnWrite.of(made))
        assert write is not None
        guard.finished("key", Why((), None), [write])
    assert len(guard._histories["key"]) <= 101


CONFIG_MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}


# Own writes


@staged
async def test_a_key_waits_until_the_cache_has_its_writes(
    stage: ControllerStage,
) -> None:
    """The watch is a second late: without the wait the second run would make a second ConfigMap."""
    made: list[str] = []

    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.list(ConfigMap, namespace="default", labels="owner=a", fresh=False)
        if not found:
            made.append("one")
            wanted = config_map("")
            wanted.metadata.generate_name = "a-"
            wanted.metadata.labels = {"owner": "a"}
            await ctx.client.create(wanted)

    built = Builder("once").watch_for(Widget).watches(ConfigMap, map_to=lambda _: None).complete(reconcile)
    async with stage.running(built):
        await stage.settle()
        feed = stage.informers.of(ConfigMap).feeds[0]
        consume = feed._fifo.pop

        async def late() -> Any:
            taken = await consume()
            await stage.settle(1)
            return taken

        feed._fifo.pop = late  # type: ignore[method-assign]
        await stage.user.create(config_map("wakes"))  # the consumer now waits in the slow one
        await stage.settle(2)
        await stage.user.create(widget("a"))
        await stage.settle(0.2)
        changed = await stage.user.get(Widget, "a")
        changed.spec.size = 2
        await stage.user.update(changed)
        await stage.settle(0.2)
        assert made == ["one"]
        assert built.statistics is not None
        assert built.statistics.stale == 1
        changed = await stage.user.get(Widget, "a")
        changed.spec.size = 3
        await stage.user.update(changed)
        await stage.settle(5)
        assert made == ["one"]
        assert built.statistics.outcomes["success"] == 2


@staged
async def test_a_cache_that_never_sees_the_write_is_waited_for_only_so_long(stage: ControllerStage) -> None:
    runs: list[float] = []

    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(ctx.world.clock.monotonic())
        if len(runs) == 1:
            await ctx.client.create(config_map("x"))

    built = Builder("once").watch_for(Widget).watches(ConfigMap, map_to=lambda _: None).complete(reconcile)
    async with stage.running(built):
        await stage.settle()
        feed = stage.informers.of(ConfigMap).feeds[0]

        async def never() -> Any:
            await asyncio.get_running_loop().create_future()

        feed._fifo.pop = never  # type: ignore[method-assign]
        await stage.user.create(config_map("wakes"))
        await stage.settle()
        await stage.user.create(widget("a"))
        await stage.settle()
        changed = await stage.user.get(Widget, "a")
        changed.spec.size = 2
        await stage.user.update(changed)
        await stage.settle(30)
    assert len(runs) == 2
    assert 9 < runs[1] - runs[0] < 12
    assert "reconciling with a possibly stale cache controller=once object=default/a" in stage.log.texts()[0]


# Differences


def test_differences_name_the_fields_and_their_values() -> None:
    before = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}, "spec": {"n": 1, "l": [1, 2], "gone": True}}
    after = {"metadata": {"resourceVersion": "2", "labels": {"a": "c"}}, "spec": {"n": 2, "l": [1, 3], "new": "x" * 99}}
    assert differences(before, after) == [
        'metadata.labels.a: "b" -> "c"',
        "spec.n: 1 -> 2",
        "spec.l[1]: 2 -> 3",
        "spec.gone: true -> absent",
        f'spec.new: absent -> "{"x" * 39}…',
    ]
    assert differences({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, {})[-1] == "and more"
    assert differences({"a": [1]}, {"a": [1, 2]}) == ["a: [1] -> [1,2]"]
    assert differences({"a": 1}, {"a": True}) == ["a: 1 -> true"]
    assert differences({}, {}) == []


def test_values_of_secrets_are_not_shown() -> None:
    before, after = {"kind": "Secret", "data": {"k": "old"}}, {"kind": "Secret", "data": {"k": "new"}}
    assert differences(before, after) == ["data.k"]


def test_a_digest_ignores_server_managed_metadata() -> None:
    one = {"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}, "spec": {"a": 1, "b": 2}}
    other = {"spec": {"b": 2, "a": 1}, "metadata": {"name": "a", "resourceVersion": "2", "managedFields": []}}
    assert digest(one) == digest(other)
    assert digest(one) != digest({**other, "spec": {}})
    assert len(digest({"metadata": 3})) == 16
