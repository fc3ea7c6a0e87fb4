"""How controllers start, warm up and stop; workers, and one key at a time."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.unit.controllers.stage import Light, Stage, Widget, lightly, staged, widget

from ostinato.api.errors import Forbidden, NotFound, Unauthorized
from ostinato.api.gvk import GroupResource, NamespacedName
from ostinato.api.markers import Foreign, marked
from ostinato.api.object import CustomResource
from ostinato.cache import SyncError
from ostinato.cache.own_writes.expectations import Expectation, Written
from ostinato.cache.own_writes.recorder import current_own_writes
from ostinato.client.views import Unstructured, view_of
from ostinato.controllers import (
    Builder,
    Context,
    Controller,
    ControllerError,
    ControllerOptions,
    Dependencies,
    ForObject,
    KindSource,
    Request,
    Sink,
    StartupSource,
    Task,
    WarmupRunnable,
    controller,
    current_reconcile,
)
from ostinato.controllers.guards.remedy import remedy_for
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.metrics import Family

KEY = Request("default", "a")


class Here(CustomResource, group="example.dev", version="v1"):
    """A kind that is defined in this file."""


class Gate:
    """A source that is ready when the test says so."""

    def __init__(self, *keys: Request) -> None:
        self.open = asyncio.Event()
        self.starts = 0
        self.ended = False
        self._keys = keys

    def __str__(self) -> str:
        return "a gate"

    async def run(self, sink: Sink) -> None:
        self.starts += 1
        for key in self._keys:
            sink.add(key, "gate", 0, None)
        try:
            await self.open.wait()
            sink.ready()
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended = True


class RecordingReconciler:
    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def reconcile(self, request: Request) -> None:
        self.requests.append(request)


@lightly
async def test_no_reconcile_runs_before_all_sources_are_ready(light: Light) -> None:
    first, second, noting = Gate(KEY), Gate(), RecordingReconciler()
    async with light.running(light.controller(noting, first, second)):
        await light.settle()
        first.open.set()
        await light.settle()
        assert noting.requests == []
        second.open.set()
        await light.settle()
        assert noting.requests == [KEY]


@staged
async def test_no_reconcile_runs_before_the_handler_has_heard_of_every_object(stage: Stage) -> None:
    for number in range(20):
        await stage.people.create(widget(f"w{number}"))
    heard: list[str] = []
    seen_at_first: list[int] = []

    async def slowly(each: Widget) -> list[Request]:
        await stage.settle(1)
        heard.append(each.metadata.name)
        return [Request("default", each.metadata.name)]

    async def reconcile(request: Request) -> None:
        seen_at_first.append(len(heard))

    built = Builder("slow").watches(Widget, map_to=slowly).complete(reconcile)
    async with stage.running(built):
        await stage.settle(15)
        assert seen_at_first == []
        await stage.settle(10)
        assert seen_at_first == [20] * 20


@lightly
async def test_a_controller_runs_once(light: Light) -> None:
    made = light.controller(RecordingReconciler())
    async with light.running(made):
        await light.settle()
        with pytest.raises(ControllerError, match="can be started only once; was it added twice"):
            await made.run(light.dependencies)


@lightly
async def test_a_controller_that_watches_nothing_is_refused(light: Light) -> None:
    with pytest.raises(ControllerError, match="has no sources"):
        await Controller("idle", RecordingReconciler()).run(light.dependencies)


@lightly
async def test_cancelling_while_sources_start_is_no_error(light: Light) -> None:
    gate = Gate()
    async with light.running(light.controller(RecordingReconciler(), gate)) as task:
        await light.settle()
    assert task.cancelled()
    assert gate.ended


@lightly
async def test_a_source_that_never_gets_ready_is_an_error_that_names_it(light: Light) -> None:
    made = light.controller(RecordingReconciler(), Gate(), sync_timeout=3)
    with pytest.raises(
        ControllerError, match=r"controller test: not ready after 3 s: a gate; a source must call sink\.ready"
    ):
        await made.run(light.dependencies)


@lightly
async def test_a_source_that_fails_ends_the_controller(light: Light) -> None:
    class Broken:
        def __str__(self) -> str:
            return "a broken source"

        async def run(self, sink: Sink) -> None:
            sink.ready()
            await light.settle(1)
            raise OSError("gone")

    made = light.controller(RecordingReconciler(), Broken())
    with pytest.raises(OSError, match="gone"):
        await made.run(light.dependencies)


@lightly
async def test_a_source_that_ends_as_cancelled_though_it_was_not_to_ends_the_controller(light: Light) -> None:
    class Broken:
        def __str__(self) -> str:
            return "a broken source"

        async def run(self, sink: Sink) -> None:
            sink.ready()
            connection = asyncio.get_running_loop().create_future()
            connection.cancel()
            await connection

    with pytest.raises(ControllerError, match="controller test: a broken source was cancelled by something"):
        await light.controller(RecordingReconciler(), Broken()).run(light.dependencies)


@lightly
async def test_a_source_that_fails_before_it_is_ready_ends_the_controller(light: Light) -> None:
    class Broken:
        async def run(self, sink: Sink) -> None:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await light.controller(RecordingReconciler(), Broken(), Gate()).run(light.dependencies)


@lightly
async def test_a_source_that_returns_has_told_all_it_knows(light: Light) -> None:
    class Short:
        async def run(self, sink: Sink) -> None:
            sink.add(KEY, "short", 0, None)

    noting = RecordingReconciler()
    async with light.running(light.controller(noting, Short())):
        await light.settle()
    assert noting.requests == [KEY]


@lightly
async def test_a_source_may_be_added_to_a_controller_that_runs(light: Light) -> None:
    noting = RecordingReconciler()
    made = light.controller(noting)
    async with light.running(made):
        await light.settle()
        made.watch(StartupSource([KEY]))
        await light.settle()
        assert noting.requests == [KEY]
        assert len(made.sources) == 2


@lightly
async def test_a_source_that_a_reconcile_adds_does_not_belong_to_it(light: Light) -> None:
    class Looking:
        async def run(self, sink: Sink) -> None:
            seen.append(current_reconcile())

    seen: list[object] = []

    async def reconcile(request: Request) -> None:
        assert current_reconcile() is not None
        made.watch(Looking())

    made = light.controller(reconcile, StartupSource([KEY]))
    async with light.running(made):
        await light.settle()
    assert seen == [None]


@lightly
async def test_a_source_may_be_added_to_a_controller_that_is_warm(light: Light) -> None:
    gate, noting = Gate(), RecordingReconciler()
    made = light.controller(noting, warm_up=True)
    await made.warm_up(light.dependencies)
    made.watch(gate)
    await light.settle()
    assert gate.starts == 1, "it starts at once"
    async with light.running(made):
        made._loop._add(KEY, "test", 0, None)  # type: ignore[union-attr]
        await light.settle()
        assert noting.requests == [], "it is waited for before the first reconcile"
        gate.open.set()
        await light.settle()
        assert (gate.starts, noting.requests) == (1, [KEY])


# Warming up


@lightly
async def test_a_warm_up_starts_the_sources_once_and_no_workers(light: Light) -> None:
    gate, noting = Gate(KEY), RecordingReconciler()
    made = light.controller(noting, gate, warm_up=True)
    warming = asyncio.create_task(made.warm_up(light.dependencies))
    async with light.running(made):
        await light.settle()
        assert (gate.starts, warming.done()) == (1, False)
        assert noting.requests == [], "who comes second waits as well"
        gate.open.set()
        await warming
        await light.settle()
        assert (gate.starts, noting.requests) == (1, [KEY])


@pytest.mark.parametrize("options", [{}, {"warm_up": False}, {"warm_up": True, "needs_leader_election": False}])
def test_a_warm_up_that_is_not_asked_for_or_not_needed_does_nothing(options: dict[str, Any]) -> None:
    @lightly
    async def play(light: Light) -> None:
        gate = Gate()
        await light.controller(RecordingReconciler(), gate, **options).warm_up(light.dependencies)
        assert gate.starts == 0

    play()


@lightly
async def test_an_error_while_warming_up_is_raised(light: Light) -> None:
    class Broken:
        async def run(self, sink: Sink) -> None:
            raise OSError("gone")

    gate = Gate()
    made = light.controller(RecordingReconciler(), Broken(), gate, warm_up=True)
    with pytest.raises(OSError, match="gone"):
        await made.warm_up(light.dependencies)
    assert gate.ended


@lightly
async def test_a_warmed_up_controller_that_never_led_is_torn_down(light: Light) -> None:
    gate = Gate()
    gate.open.set()

    @controller(sources=[gate], warm_up=True)
    async def never(request: Request, ctx: Context) -> None: ...

    await never.tear_down(light.dependencies)
    await never.warm_up(light.dependencies)
    assert (gate.starts, gate.ended) == (1, False)
    await never.tear_down(light.dependencies)
    assert gate.ended
    await never.tear_down(light.dependencies)


@lightly
async def test_a_warm_up_that_is_cancelled_leaves_nothing_behind(light: Light) -> None:
    gate = Gate()
    made = light.controller(RecordingReconciler(), gate, warm_up=True)
    task = asyncio.create_task(made.warm_up(light.dependencies))
    await light.settle()
    task.cancel()
    await asyncio.wait([task])
    assert gate.ended


@lightly
async def test_the_managers_options_are_taken_where_the_controller_has_none(light: Light) -> None:
    manager = ControllerOptions(max_concurrent=3, warm_up=True, concurrency_of={"Widget.example.dev": 9})
    dependencies = Light(light.world, controllers=manager).dependencies
    made = light.controller(RecordingReconciler(), StartupSource([]))
    await made.warm_up(dependencies)
    assert made.statistics is not None
    families = {each.name: each for each in made.statistics.families()}
    assert families["controller_runtime_max_concurrent_reconciles"].samples[0].value == 3
    task = asyncio.create_task(made.run(dependencies))
    await light.settle()
    task.cancel()
    await asyncio.wait([task])


# Workers


@lightly
async def test_a_key_is_never_with_two_workers_and_others_run_beside_it(light: Light) -> None:
    under_way: dict[Request, int] = {}
    most = {"same": 0, "all": 0}

    async def reconcile(request: Request) -> None:
        under_way[request] = under_way.get(request, 0) + 1
        most["same"] = max(most["same"], under_way[request])
        most["all"] = max(most["all"], sum(under_way.values()))
        await light.settle(1)
        under_way[request] -= 1

    async with light.running(light.controller(reconcile, max_concurrent=4)):
        for _ in range(10):
            for name in "abcdefgh":
                light.channel.put(Request("default", name))
            await light.settle(0.3)
        assert light.count("controller_runtime_active_workers") == 4
        await light.settle(10)
        assert most == {"same": 1, "all": 4}


@lightly
async def test_a_key_that_is_told_while_it_is_worked_on_runs_again(light: Light) -> None:
    runs: list[Request] = []

    async def reconcile(request: Request) -> None:
        runs.append(request)
        await light.settle(1)

    async with light.running(light.controller(reconcile, max_concurrent=2)):
        light.channel.put(KEY)
        await light.settle(0.5)
        light.channel.put(KEY)
        light.channel.put(KEY)
        await light.settle(5)
    assert runs == [KEY, KEY]


# Stopping


@lightly
async def test_what_is_under_way_finishes_and_what_is_queued_is_dropped(light: Light) -> None:
    done: list[str] = []

    async def reconcile(request: Request) -> None:
        await light.settle(5)
        done.append(request.name)

    made = light.controller(reconcile)
    task = asyncio.create_task(made.run(light.dependencies))
    light.channel.put(Request("", "first"))
    light.channel.put(Request("", "second"))
    await light.settle(1)
    task.cancel()
    began = light.world.clock.monotonic()
    await asyncio.wait([task])
    assert task.cancelled()
    assert done == ["first"]
    assert light.world.clock.monotonic() - began == pytest.approx(4)
    assert light.metrics.sources == []


@lightly
async def test_a_second_cancellation_drops_what_is_under_way(light: Light) -> None:
    ended: list[str] = []

    async def reconcile(request: Request) -> None:
        try:
            await light.settle(3600)
        finally:
            ended.append("dropped")

    made = light.controller(reconcile)
    task = asyncio.create_task(made.run(light.dependencies))
    light.channel.put(KEY)
    await light.settle(1)
    task.cancel()
    await light.settle(10)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert ended == ["dropped"]
    assert task.cancelled()


@lightly
async def test_a_reconciler_that_cancels_its_worker_ends_the_controller_with_an_error(light: Light) -> None:
    async def reconcile(request: Request, ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await ctx.world.clock.sleep(1)

    task = asyncio.get_running_loop().create_task(light.controller(reconcile).run(light.dependencies))
    light.channel.put("a")
    with pytest.raises(ControllerError, match=r"controller test: the reconciler cancelled the worker task"):
        await task


@lightly
async def test_a_key_that_waits_for_its_writes_keeps_the_highest_priority_that_it_was_told_with(light: Light) -> None:
    unseen = Expectation("test", Written(NamespacedName("", "x"), "5"))
    gate, ran = asyncio.Event(), list[Any]()

    async def reconcile(request: Any, ctx: Context) -> None:
        ran.append(request)
        writes = current_own_writes()
        if ran == ["a"] and writes is not None:
            writes.add(unseen, ctx.world.clock)
        if request == "busy":
            await gate.wait()

    async with light.running(light.controller(reconcile)):
        for key, priority in (("a", 0), ("a", -100), ("a", 5), ("busy", 0)):
            light.channel.put(key, priority)
            await light.settle()
        light.channel.put("b", 0)
        unseen.satisfy()
        await light.settle()
        gate.set()
        await light.settle()
    assert ran == ["a", "busy", "a", "b"]


@lightly
async def test_writes_that_were_seen_are_forgotten_though_their_keys_do_not_run_again(light: Light) -> None:
    class Unseen(Expectation):
        """One that can be looked for."""

    made: weakref.WeakSet[Unseen] = weakref.WeakSet()

    async def reconcile(request: Any, ctx: Context) -> None:
        writes = current_own_writes()
        assert writes is not None
        unseen = Unseen("test", Written(NamespacedName("", request), "5"))
        made.add(unseen)
        writes.add(unseen, ctx.world.clock)
        ctx.world.clock.timer(0.01, unseen.satisfy)

    async with light.running(light.controller(reconcile)):
        for number in range(2_500):
            light.channel.put(str(number))
            await light.settle(0.001)
        await light.settle()
        assert 400 < len(made) <= 1_100


@lightly
async def test_nothing_is_added_once_a_controller_stops(light: Light) -> None:
    noting = RecordingReconciler()
    made = light.controller(noting)
    async with light.running(made):
        await light.settle()
    assert made._loop is not None
    made._loop._add(KEY, "late", 0, None)
    assert len(made._loop._queue) == 0


@lightly
async def test_a_controller_that_is_not_started_does_nothing_in_the_background(light: Light) -> None:
    gate = Gate()
    made = Controller("idle", RecordingReconciler(), sources=[StartupSource([KEY])])
    made.watch(gate)
    await made.warm_up(light.dependencies)
    await light.settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (made.statistics, gate.starts, light.metrics.sources) == (None, 0, [])
    assert repr(made) == "<controller idle>"


# The missing kind


@staged
async def test_a_kind_that_is_missing_is_told_within_seconds_and_is_an_error_at_last(stage: Stage) -> None:
    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    @controller(Gadget, sync_timeout=30)
    async def gadgets(gadget: Gadget, ctx: Context) -> None: ...

    task = asyncio.create_task(gadgets.run(stage.dependencies))
    await stage.settle(10)
    assert not task.done()
    file = Path(__file__).relative_to(Path.cwd())
    installs = f"`ostinato manifests {file} | kubectl apply -f -` installs it"
    assert stage.log.texts()[0] == (
        "waiting for sync controller=gadgets source='Gadget of example.dev/v1' error=the server rejects the list: "
        'gadgets.example.dev: no matches for kind "Gadget" in version "example.dev/v1"; '
        f"is its definition gadgets.example.dev installed? {installs}"
    )
    with pytest.raises(SyncError) as caught:
        await task
    assert str(caught.value) == (
        "controller gadgets: Gadget of example.dev/v1 is not synced after 30 s: "
        'no matches for kind "Gadget" in version "example.dev/v1"; '
        f"is its definition gadgets.example.dev installed? {installs}"
    )


@staged
async def test_a_kind_of_somebody_else_that_is_missing_comes_with_its_program(stage: Stage) -> None:
    @marked(Foreign())
    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    @controller(Gadget)
    async def gadgets(gadget: Gadget, ctx: Context) -> None: ...

    task = asyncio.create_task(gadgets.run(stage.dependencies))
    await stage.settle(10)
    assert stage.log.texts()[0].endswith("installed? It is installed with the program that defines the kind")
    task.cancel()


def test_what_a_refusal_asks_for_is_told() -> None:
    file = Path(__file__).relative_to(Path.cwd())
    forbidden = Forbidden.of(GroupResource("", "widgets"), "", "no")
    assert (
        remedy_for(view_of(Widget), Unauthorized.of("no"))
        == "; the credentials of the kubeconfig are invalid or expired"
    )
    assert remedy_for(view_of(ConfigMap), forbidden) == "; `ostinato manifests FILE` writes the role that it needs"
    assert remedy_for(view_of(Here), forbidden) == f"; `ostinato manifests {file}` writes the role that it needs"
    assert remedy_for(view_of(ConfigMap), NotFound.of(GroupResource("", "configmaps"), "a")) == ""
    assert remedy_for(Unstructured.of("example.dev/v1", "Widget"), forbidden) == ""
    assert remedy_for(view_of(Widget), None) == ""


@staged
async def test_a_kind_that_comes_in_time_is_fine(stage: Stage) -> None:
    from tests.unit.controllers.stage import definition

    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    seen: list[str] = []

    @controller(Gadget)
    async def gadgets(gadget: Gadget, ctx: Context) -> None:
        seen.append(gadget.metadata.name)

    async with stage.running(gadgets):
        await stage.settle(10)
        await stage.people.create(definition("Gadget", "gadgets"))
        await stage.settle(40)
        await stage.people.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
    assert seen == ["g"]


@staged
async def test_a_kind_that_is_missing_and_was_added_later_ends_nothing_and_is_told_when_it_comes(stage: Stage) -> None:
    from tests.unit.controllers.stage import definition

    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    noting = RecordingReconciler()
    made = Builder("widgets").watch_for(Widget).complete(noting)
    async with stage.running(made):
        await stage.settle(5)
        made.watch(KindSource(Gadget, ForObject()))
        await stage.settle(1000)
        (text,) = stage.log.texts()
        assert "waiting for sync controller=widgets source='Gadget of example.dev/v1'" in text
        await stage.people.create(widget("a"))
        await stage.people.create(definition("Gadget", "gadgets"))
        await stage.settle(60)
        await stage.people.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
    assert noting.requests == [Request("default", "a"), Request("default", "g")]


@staged
async def test_an_optional_kind_is_not_waited_for_and_is_told_when_it_comes(stage: Stage) -> None:
    from tests.unit.controllers.stage import definition

    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    noting = RecordingReconciler()
    built = (
        Builder("both")
        .watch_for(Widget)
        .watches(Gadget, map_to=lambda gadget: Request("default", f"for-{gadget.metadata.name}"), optional=True)
        .complete(noting)
    )
    await stage.people.create(widget("a"))
    async with stage.running(built):
        await stage.settle(10)
        assert noting.requests == [Request("default", "a")]
        assert any("optional kind does not exist" in text for text in stage.log.texts())
        await stage.people.create(definition("Gadget", "gadgets"))
        await stage.settle(60)
        await stage.people.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
        assert noting.requests[1:] == [Request("default", "for-g")]


# Runnables


@lightly
async def test_a_function_is_a_runnable(light: Light) -> None:
    ran: list[Dependencies] = []

    async def sweep(dependencies: Dependencies) -> None:
        ran.append(dependencies)

    task = Task("janitor", sweep, needs_leader_election=False)
    await task.run(light.dependencies)
    assert ran == [light.dependencies]
    assert (task.name, task.needs_leader_election) == ("janitor", False)
    assert not isinstance(task, WarmupRunnable)
    assert isinstance(light.controller(RecordingReconciler()), WarmupRunnable)


@lightly
async def test_dependencies_need_no_metrics_no_recorder_and_no_traces(light: Light) -> None:
    quiet = Dependencies(client=light.dependencies.client, informers=light.dependencies.informers, world=light.world)
    families: list[Family] = []
    quiet.metrics.add(lambda: families)
    quiet.metrics.remove(lambda: families)
    quiet.recorder.event({}, "Reason", "note")
    with quiet.span("reconcile", {}):
        pass
    assert quiet.logger.name == "ostinato.controllers"
