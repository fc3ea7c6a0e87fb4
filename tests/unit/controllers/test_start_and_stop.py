"""How controllers start, warm up and stop; workers, and one key at a time."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, widget

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


@without_server
async def test_no_reconcile_runs_before_all_sources_are_ready(stage: ServerlessStage) -> None:
    first, second, noting = Gate(KEY), Gate(), RecordingReconciler()
    async with stage.running(stage.controller(noting, first, second)):
        await stage.settle()
        first.open.set()
        await stage.settle()
        assert noting.requests == []
        second.open.set()
        await stage.settle()
        assert noting.requests == [KEY]


@staged
async def test_no_reconcile_runs_before_the_handler_has_every_initial_object(stage: ControllerStage) -> None:
    for number in range(20):
        await stage.user.create(widget(f"w{number}"))
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


@without_server
async def test_a_controller_runs_once(stage: ServerlessStage) -> None:
    made = stage.controller(RecordingReconciler())
    async with stage.running(made):
        await stage.settle()
        with pytest.raises(ControllerError, match="can be started only once; was it added twice"):
            await made.run(stage.dependencies)


@without_server
async def test_a_controller_that_watches_nothing_is_refused(stage: ServerlessStage) -> None:
    with pytest.raises(ControllerError, match="has no sources"):
        await Controller("idle", RecordingReconciler()).run(stage.dependencies)


@without_server
async def test_cancelling_while_sources_start_is_not_an_error(stage: ServerlessStage) -> None:
    gate = Gate()
    async with stage.running(stage.controller(RecordingReconciler(), gate)) as task:
        await stage.settle()
    assert task.cancelled()
    assert gate.ended


@without_server
async def test_a_source_that_never_gets_ready_is_an_error_that_names_it(stage: ServerlessStage) -> None:
    made = stage.controller(RecordingReconciler(), Gate(), sync_timeout=3)
    with pytest.raises(
        ControllerError, match=r"controller test: not ready after 3 s: a gate; a source must call sink\.ready"
    ):
        await made.run(stage.dependencies)


@without_server
async def test_a_source_that_fails_ends_the_controller(stage: ServerlessStage) -> None:
    class Broken:
        def __str__(self) -> str:
            return "a broken source"

        async def run(self, sink: Sink) -> None:
            sink.ready()
            await stage.settle(1)
            raise OSError("gone")

    made = stage.controller(RecordingReconciler(), Broken())
    with pytest.raises(OSError, match="gone"):
        await made.run(stage.dependencies)


@without_server
async def test_a_source_that_ends_as_cancelled_though_it_was_not_to_ends_the_controller(stage: ServerlessStage) -> None:
    class Broken:
        def __str__(self) -> str:
            return "a broken source"

        async def run(self, sink: Sink) -> None:
            sink.ready()
            connection = asyncio.get_running_loop().create_future()
            connection.cancel()
            await connection

    with pytest.raises(ControllerError, match="controller test: a broken source was cancelled by something"):
        await stage.controller(RecordingReconciler(), Broken()).run(stage.dependencies)


@without_server
async def test_a_source_that_fails_before_it_is_ready_ends_the_controller(stage: ServerlessStage) -> None:
    class Broken:
        async def run(self, sink: Sink) -> None:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await stage.controller(RecordingReconciler(), Broken(), Gate()).run(stage.dependencies)


@without_server
async def test_a_source_that_returns_counts_as_synced(stage: ServerlessStage) -> None:
    class Short:
        async def run(self, sink: Sink) -> None:
            sink.add(KEY, "short", 0, None)

    noting = RecordingReconciler()
    async with stage.running(stage.controller(noting, Short())):
        await stage.settle()
    assert noting.requests == [KEY]


@without_server
async def test_a_source_may_be_added_to_a_controller_that_runs(stage: ServerlessStage) -> None:
    noting = RecordingReconciler()
    made = stage.controller(noting)
    async with stage.running(made):
        await stage.settle()
        made.watch(StartupSource([KEY]))
        await stage.settle()
        assert noting.requests == [KEY]
        assert len(made.sources) == 2


@without_server
async def test_a_source_that_a_reconcile_adds_does_not_belong_to_it(stage: ServerlessStage) -> None:
    class Looking:
        async def run(self, sink: Sink) -> None:
            seen.append(current_reconcile())

    seen: list[object] = []

    async def reconcile(request: Request) -> None:
        assert current_reconcile() is not None
        made.watch(Looking())

    made = stage.controller(reconcile, StartupSource([KEY]))
    async with stage.running(made):
        await stage.settle()
    assert seen == [None]


@without_server
async def test_a_source_may_be_added_to_a_controller_that_is_warm(stage: ServerlessStage) -> None:
    gate, noting = Gate(), RecordingReconciler()
    made = stage.controller(noting, warm_up=True)
    await made.warm_up(stage.dependencies)
    made.watch(gate)
    await stage.settle()
    assert gate.starts == 1, "it starts at once"
    async with stage.running(made):
        made._loop._add(KEY, "test", 0, None)  # type: ignore[union-attr]
        await stage.settle()
        assert noting.requests == [], "it is waited for before the first reconcile"
        gate.open.set()
        await stage.settle()
        assert (gate.starts, noting.requests) == (1, [KEY])


# Warming up


@without_server
async def test_a_warm_up_starts_the_sources_once_and_no_workers(stage: ServerlessStage) -> None:
    gate, noting = Gate(KEY), RecordingReconciler()
    made = stage.controller(noting, gate, warm_up=True)
    warming = asyncio.create_task(made.warm_up(stage.dependencies))
    async with stage.running(made):
        await stage.settle()
        assert (gate.starts, warming.done()) == (1, False)
        assert noting.requests == [], "who comes second waits as well"
        gate.open.set()
        await warming
        await stage.settle()
        assert (gate.starts, noting.requests) == (1, [KEY])


@pytest.mark.parametrize("options", [{}, {"warm_up": False}, {"warm_up": True, "needs_leader_election": False}])
def test_a_warm_up_that_is_disabled_or_not_needed_does_nothing(options: dict[str, Any]) -> None:
    @without_server
    async def play(stage: ServerlessStage) -> None:
        gate = Gate()
        await stage.controller(RecordingReconciler(), gate, **options).warm_up(stage.dependencies)
        assert gate.starts == 0

    play()


@without_server
async def test_an_error_while_warming_up_is_raised(stage: ServerlessStage) -> None:
    class Broken:
        async def run(self, sink: Sink) -> None:
            raise OSError("gone")

    gate = Gate()
    made = stage.controller(RecordingReconciler(), Broken(), gate, warm_up=True)
    with pytest.raises(OSError, match="gone"):
        await made.warm_up(stage.dependencies)
    assert gate.ended


@without_server
async def test_a_warmed_up_controller_that_never_led_is_torn_down(stage: ServerlessStage) -> None:
    gate = Gate()
    gate.open.set()

    @controller(sources=[gate], warm_up=True)
    async def never(request: Request, ctx: Context) -> None: ...

    await never.tear_down(stage.dependencies)
    await never.warm_up(stage.dependencies)
    assert (gate.starts, gate.ended) == (1, False)
    await never.tear_down(stage.dependencies)
    assert gate.ended
    await never.tear_down(stage.dependencies)


@without_server
async def test_a_warm_up_that_is_cancelled_leaves_nothing_behind(stage: ServerlessStage) -> None:
    gate = Gate()
    made = stage.controller(RecordingReconciler(), gate, warm_up=True)
    task = asyncio.create_task(made.warm_up(stage.dependencies))
    await stage.settle()
    task.cancel()
    await asyncio.wait([task])
    assert gate.ended


@without_server
async def test_the_managers_options_are_taken_where_the_controller_has_none(stage: ServerlessStage) -> None:
    manager = ControllerOptions(max_concurrent=3, warm_up=True, concurrency_of={"Widget.example.dev": 9})
    dependencies = ServerlessStage(stage.world, controllers=manager).dependencies
    made = stage.controller(RecordingReconciler(), StartupSource([]))
    await made.warm_up(dependencies)
    assert made.statistics is not None
    families = {each.name: each for each in made.statistics.families()}
    assert families["controller_runtime_max_concurrent_reconciles"].samples[0].value == 3
    task = asyncio.create_task(made.run(dependencies))
    await stage.settle()
    task.cancel()
    await asyncio.wait([task])


# Workers


@without_server
async def test_a_key_has_one_worker_and_other_keys_run_concurrently(stage: ServerlessStage) -> None:
    under_way: dict[Request, int] = {}
    most = {"same": 0, "all": 0}

    async def reconcile(request: Request) -> None:
        under_way[request] = under_way.get(request, 0) + 1
        most["same"] = max(most["same"], under_way[request])
        most["all"] = max(most["all"], sum(under_way.values()))
        await stage.settle(1)
        under_way[request] -= 1

    async with stage.running(stage.controller(reconcile, max_concurrent=4)):
        for _ in range(10):
            for name in "abcdefgh":
                stage.channel.put(Request("default", name))
            await stage.settle(0.3)
        assert stage.count("controller_runtime_active_workers") == 4
        await stage.settle(10)
        assert most == {"same": 1, "all": 4}


@without_server
async def test_a_key_enqueued_while_it_is_reconciled_runs_again(stage: ServerlessStage) -> None:
    runs: list[Request] = []

    async def reconcile(request: Request) -> None:
        runs.append(request)
        await stage.settle(1)

    async with stage.running(stage.controller(reconcile, max_concurrent=2)):
        stage.channel.put(KEY)
        await stage.settle(0.5)
        stage.channel.put(KEY)
        stage.channel.put(KEY)
        await stage.settle(5)
    assert runs == [KEY, KEY]


# Stopping


@without_server
async def test_on_shutdown_running_reconciles_finish_and_queued_keys_are_dropped(stage: ServerlessStage) -> None:
    done: list[str] = []

    async def reconcile(request: Request) -> None:
        await stage.settle(5)
        done.append(request.name)

    made = stage.controller(reconcile)
    task = asyncio.create_task(made.run(stage.dependencies))
    stage.channel.put(Request("", "first"))
    stage.channel.put(Request("", "second"))
    await stage.settle(1)
    task.cancel()
    began = stage.world.clock.monotonic()
    await asyncio.wait([task])
    assert task.cancelled()
    assert done == ["first"]
    assert stage.world.clock.monotonic() - began == pytest.approx(4)
    assert stage.metrics.sources == []


@without_server
async def test_a_second_cancellation_cancels_running_reconciles(stage: ServerlessStage) -> None:
    ended: list[str] = []

    async def reconcile(request: Request) -> None:
        try:
            await stage.settle(3600)
        finally:
            ended.append("dropped")

    made = stage.controller(reconcile)
    task = asyncio.create_task(made.run(stage.dependencies))
    stage.channel.put(KEY)
    await stage.settle(1)
    task.cancel()
    await stage.settle(10)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert ended == ["dropped"]
    assert task.cancelled()


@without_server
async def test_a_reconciler_that_cancels_its_worker_ends_the_controller_with_an_error(stage: ServerlessStage) -> None:
    async def reconcile(request: Request, ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await ctx.world.clock.sleep(1)

    task = asyncio.get_running_loop().create_task(stage.controller(reconcile).run(stage.dependencies))
    stage.channel.put("a")
    with pytest.raises(ControllerError, match=r"controller test: the reconciler cancelled the worker task"):
        await task


@without_server
async def test_a_key_that_waits_for_its_writes_keeps_its_highest_priority(
    stage: ServerlessStage,
) -> None:
    unseen = Expectation("test", Written(NamespacedName("", "x"), "5"))
    gate, ran = asyncio.Event(), list[Any]()

    async def reconcile(request: Any, ctx: Context) -> None:
        ran.append(request)
        writes = current_own_writes()
        if ran == ["a"] and writes is not None:
            writes.add(unseen, ctx.world.clock)
        if request == "busy":
            await gate.wait()

    async with stage.running(stage.controller(reconcile)):
        for key, priority in (("a", 0), ("a", -100), ("a", 5), ("busy", 0)):
            stage.channel.put(key, priority)
            await stage.settle()
        stage.channel.put("b", 0)
        unseen.satisfy()
        await stage.settle()
        gate.set()
        await stage.settle()
    assert ran == ["a", "busy", "a", "b"]


@without_server
async def test_writes_that_were_seen_are_forgotten_though_their_keys_do_not_run_again(stage: ServerlessStage) -> None:
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

    async with stage.running(stage.controller(reconcile)):
        for number in range(2_500):
            stage.channel.put(str(number))
            await stage.settle(0.001)
        await stage.settle()
        assert 400 < len(made) <= 1_100


@without_server
async def test_nothing_is_added_once_a_controller_stops(stage: ServerlessStage) -> None:
    noting = RecordingReconciler()
    made = stage.controller(noting)
    async with stage.running(made):
        await stage.settle()
    assert made._loop is not None
    made._loop._add(KEY, "late", 0, None)
    assert len(made._loop._queue) == 0


@without_server
async def test_a_controller_that_is_not_started_does_nothing_in_the_background(stage: ServerlessStage) -> None:
    gate = Gate()
    made = Controller("idle", RecordingReconciler(), sources=[StartupSource([KEY])])
    made.watch(gate)
    await made.warm_up(stage.dependencies)
    await stage.settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (made.statistics, gate.starts, stage.metrics.sources) == (None, 0, [])
    assert repr(made) == "<controller idle>"


# The missing kind


@staged
async def test_a_missing_kind_is_logged_within_seconds_and_fails_at_the_timeout(stage: ControllerStage) -> None:
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
async def test_the_error_of_a_missing_foreign_kind_names_its_program(stage: ControllerStage) -> None:
    @marked(Foreign())
    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    @controller(Gadget)
    async def gadgets(gadget: Gadget, ctx: Context) -> None: ...

    task = asyncio.create_task(gadgets.run(stage.dependencies))
    await stage.settle(10)
    assert stage.log.texts()[0].endswith("installed? It is installed with the program that defines the kind")
    task.cancel()


def test_the_error_of_a_forbidden_watch_names_the_missing_permission() -> None:
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
async def test_a_kind_that_is_defined_in_time_is_watched(stage: ControllerStage) -> None:
    from tests.stage.kinds import definition

    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    seen: list[str] = []

    @controller(Gadget)
    async def gadgets(gadget: Gadget, ctx: Context) -> None:
        seen.append(gadget.metadata.name)

    async with stage.running(gadgets):
        await stage.settle(10)
        await stage.user.create(definition("Gadget", "gadgets"))
        await stage.settle(40)
        await stage.user.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
    assert seen == ["g"]


@staged
async def test_a_missing_kind_added_to_a_running_controller_is_watched_once_it_exists(
    stage: ControllerStage,
) -> None:
    from tests.stage.kinds import definition

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
        await stage.user.create(widget("a"))
        await stage.user.create(definition("Gadget", "gadgets"))
        await stage.settle(60)
        await stage.user.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
    assert noting.requests == [Request("default", "a"), Request("default", "g")]


@staged
async def test_an_optional_kind_does_not_delay_the_start_and_is_watched_later(stage: ControllerStage) -> None:
    from tests.stage.kinds import definition

    class Gadget(Widget, group="example.dev", version="v1", kind="Gadget"):
        pass

    noting = RecordingReconciler()
    built = (
        Builder("both")
        .watch_for(Widget)
        .watches(Gadget, map_to=lambda gadget: Request("default", f"for-{gadget.metadata.name}"), optional=True)
        .complete(noting)
    )
    await stage.user.create(widget("a"))
    async with stage.running(built):
        await stage.settle(10)
        assert noting.requests == [Request("default", "a")]
        assert any("optional kind does not exist" in text for text in stage.log.texts())
        await stage.user.create(definition("Gadget", "gadgets"))
        await stage.settle(60)
        await stage.user.create(Gadget(metadata=widget("g").metadata))
        await stage.settle()
        assert noting.requests[1:] == [Request("default", "for-g")]


# Runnables


@without_server
async def test_a_function_is_a_runnable(stage: ServerlessStage) -> None:
    ran: list[Dependencies] = []

    async def sweep(dependencies: Dependencies) -> None:
        ran.append(dependencies)

    task = Task("janitor", sweep, needs_leader_election=False)
    await task.run(stage.dependencies)
    assert ran == [stage.dependencies]
    assert (task.name, task.needs_leader_election) == ("janitor", False)
    assert not isinstance(task, WarmupRunnable)
    assert isinstance(stage.controller(RecordingReconciler()), WarmupRunnable)


@without_server
async def test_dependencies_need_no_metrics_no_recorder_and_no_traces(stage: ServerlessStage) -> None:
    quiet = Dependencies(client=stage.dependencies.client, informers=stage.dependencies.informers, world=stage.world)
    families: list[Family] = []
    quiet.metrics.add(lambda: families)
    quiet.metrics.remove(lambda: families)
    quiet.recorder.event({}, "Reason", "note")
    with quiet.span("reconcile", {}):
        pass
    assert quiet.logger.name == "ostinato.controllers"
