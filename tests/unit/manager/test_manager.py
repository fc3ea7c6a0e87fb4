from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest
from tests.stage.election import ElectionStage, staged
from tests.stage.transport import RecordingTransport

from ostinato.api.errors import APIError, Forbidden, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of
from ostinato.cache.informers import Informers
from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, Unreachable
from ostinato.controllers import (
    Context,
    ControllerError,
    ControllerOptions,
    Dependencies,
    Sink,
    StartupSource,
    Task,
    controller,
)
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import ConfigMap, Endpoints
from ostinato.kinds.events_v1 import Event
from ostinato.manager import (
    ClientOptions,
    LeaderElection,
    LeadershipLost,
    Manager,
    Purpose,
    ReportingOptions,
    ShutdownTimedOut,
    Stopped,
)
from ostinato.server.in_process.transport import InProcessTransport

COLOUR = ContextVar("COLOUR", default="none")
QUICK = LeaderElection(name="widgets", namespace="default", trust_absence=True)


def fail(_: Request) -> None:
    raise ConnectionLost("cut off")


class Rig:
    """A manager on a stage, and what its parts did, in order."""

    def __init__(self, stage: ElectionStage, **options: Any) -> None:
        self.stage = stage
        self.log: list[str] = []
        self.wires: dict[str, RecordingTransport] = {}
        self.manager = Manager(connect=self.connect, world=stage.world, **options)
        self.serving: asyncio.Task[None] | None = None

    def connect(self, purpose: Purpose) -> Any:
        name = purpose.name or ("leader" if purpose.deadline else "everybody")
        self.wires[name] = RecordingTransport(InProcessTransport(self.stage.server, deadline=purpose.deadline))
        return self.wires[name]

    def part(self, name: str, *, leads: bool = True, error: Exception | None = None, stop_takes: float = 0) -> Task:
        async def work(dependencies: Dependencies) -> None:
            self.log.append(f"{name} starts")
            if error is not None:
                raise error
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                try:
                    await self.stage.clock.sleep(stop_takes)
                    self.log.append(f"{name} stops")
                except asyncio.CancelledError:
                    self.log.append(f"{name} is dropped")
                    raise

        return Task(name, work, needs_leader_election=leads)

    async def start(self, seconds: float = 1.0) -> None:
        self.serving = asyncio.create_task(self.manager.serve())
        await self.stage.clock.sleep(seconds)

    async def stop(self) -> None:
        assert self.serving is not None
        self.manager.stop()
        await self.serving


class Served:
    """A runnable like a webhook server: it serves a while after it has started."""

    needs_leader_election = False

    def __init__(self, rig: Rig, after: float, name: str = "webhooks") -> None:
        self.name = name
        self._rig = rig
        self._after = after
        self.serves = False

    async def run(self, dependencies: Dependencies) -> None:
        await dependencies.world.clock.sleep(self._after)
        self.serves = True
        self._rig.log.append(f"{self.name} serve")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._rig.log.append(f"{self.name} stop")

    async def check(self) -> None:
        if not self.serves:
            raise RuntimeError("not yet")


class Warm:
    """A runnable with a warm-up."""

    def __init__(self, rig: Rig, name: str, *, leads: bool = True) -> None:
        self.name = name
        self.needs_leader_election = leads
        self._rig = rig

    async def warm_up(self, dependencies: Dependencies) -> None:
        await dependencies.world.clock.sleep(3)
        self._rig.log.append(f"{self.name} is warm")

    async def run(self, dependencies: Dependencies) -> None:
        self._rig.log.append(f"{self.name} starts")


@staged
async def test_parts_start_and_stop_in_order(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.informers.of(ConfigMap)
    rig.manager.add(rig.part("leader"), rig.part("other", leads=False), Served(rig, after=2), Warm(rig, "warm"))
    await rig.start(0.5)
    assert rig.log == []
    assert not rig.manager.informers.of(ConfigMap).has_started, "webhooks must serve before the first list"
    await stage.clock.sleep(10)
    assert rig.manager.informers.of(ConfigMap).has_synced
    await rig.stop()
    assert rig.log == [
        "webhooks serve",
        "other starts",
        "warm is warm",
        "leader starts",
        "warm starts",
        "other stops",
        "leader stops",
        "webhooks stop",
    ]


@staged
async def test_warm_up_without_leadership_runs_with_the_other_runnables(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.wires.clear()
    rig.manager.add(Warm(rig, "free", leads=False), Warm(rig, "bound"))
    taken = stage.candidate("somebody", trust_absence=True)
    await taken.elector.acquire()
    await rig.start(5)
    assert rig.log == ["free is warm", "bound is warm", "free starts"] or rig.log == [
        "bound is warm",
        "free is warm",
        "free starts",
    ]
    await rig.stop()
    assert "bound starts" not in rig.log


@staged
async def test_a_warm_up_needs_leadership_by_default(stage: ElectionStage) -> None:
    class Silent(Warm):
        needs_leader_election: bool

        def __init__(self, rig: Rig) -> None:
            super().__init__(rig, "silent")
            del self.needs_leader_election

    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(Silent(rig))
    taken = stage.candidate("somebody", trust_absence=True)
    await taken.elector.acquire()
    await rig.start(5)
    assert rig.log == ["silent is warm"]
    await stage.clock.sleep(30)
    assert rig.log == ["silent is warm", "silent starts"]
    await rig.stop()


@staged
async def test_a_failed_warm_up_stops_the_manager_before_it_leads(stage: ElectionStage) -> None:
    class Broken(Warm):
        async def warm_up(self, dependencies: Dependencies) -> None:
            await super().warm_up(dependencies)
            raise OSError("no source")

    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(Broken(rig, "broken"), Warm(rig, "warm"), rig.part("leader"), rig.part("other", leads=False))
    with pytest.raises(OSError, match="no source"):
        await rig.manager.serve()
    assert [said for said in rig.log if "is warm" not in said] == ["other starts", "other stops"]
    with pytest.raises(NotFound):
        await stage.lease()


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("grace", [30.0, 5.0, 0.0])
def test_a_runnable_that_warmed_up_and_never_led_stops_with_the_manager(grace: float, *, stubborn: bool) -> None:
    class Source:
        async def run(self, sink: Sink) -> None:
            sink.ready()
            while True:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    ended.append("told to")
                    if not stubborn or over:
                        raise

    ended: list[str] = []
    over = False

    @staged
    async def play(stage: ElectionStage) -> None:
        nonlocal over
        other = stage.candidate("other", trust_absence=True)
        await other.elector.acquire()
        rig = Rig(stage, leader_election=QUICK, graceful_shutdown=grace)
        before = asyncio.all_tasks()

        @controller(sources=[Source()], warm_up=True)
        async def never(request: Any, ctx: Context) -> None: ...

        rig.manager.add(never)
        await rig.start(5)
        began = stage.clock.monotonic()
        rig.manager.stop()
        assert rig.serving is not None
        await asyncio.wait([rig.serving])
        assert ended
        assert isinstance(rig.serving.exception(), ShutdownTimedOut) == (stubborn and grace > 0)
        assert stage.clock.monotonic() - began == (grace if stubborn else 0)
        left = asyncio.all_tasks() - before
        assert len(left) == int(stubborn)
        over = True
        for task in left:
            task.cancel()

    play()


@staged
async def test_a_stop_during_a_warm_up_is_not_an_error(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(Warm(rig, "warm"), rig.part("leader"))
    await rig.start(1)
    await rig.stop()
    assert rig.log == []


@staged
async def test_all_that_serve_are_waited_for_but_not_when_the_end_has_come(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(Served(rig, after=2, name="a"), Served(rig, after=7, name="b"), rig.part("part", leads=False))
    await rig.start(6)
    assert rig.log == ["a serve"]
    await stage.clock.sleep(2)
    assert rig.log == ["a serve", "b serve", "part starts"]
    await rig.stop()
    never = Rig(stage)
    never.manager.add(Served(never, after=1e6), never.part("part", leads=False))
    await never.start(1000)
    began = stage.clock.monotonic()
    await never.stop()
    assert stage.clock.monotonic() - began < 1
    assert never.log == [], "it never served, so nothing else began"


def test_the_runnables_that_a_start_waits_for_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage)
        rig.manager.add(Served(rig, after=1e6, name="hooks"))
        await rig.start(25)
        await rig.stop()

    play()
    waits = [text for text in caplog.messages if text.startswith("waiting for the webhook server runnable=hooks")]
    assert len(waits) == 2


@staged
async def test_readiness_includes_the_webhook_servers_by_default(stage: ElectionStage) -> None:
    async def ready(rig: Rig, name: str = "") -> tuple[int, str]:
        answer = await rig.manager._answer_health(f"/readyz/{name}".rstrip("/"), {})
        assert answer is not None
        return answer.status, answer.text

    rig = Rig(stage)
    rig.manager.add(Served(rig, after=5, name="hooks"), rig.part("part"))
    await rig.start(1)
    assert await ready(rig) == (
        500,
        "[-]caches failed: reason withheld\n[-]hooks failed: reason withheld\nhealthz check failed\n",
    )
    await stage.clock.sleep(10)
    assert await ready(rig) == await ready(rig, "hooks") == (200, "ok")
    await rig.stop()
    other = Rig(stage)
    other.manager.add(Served(other, after=5, name="hooks")).add_readiness_check("hooks", lambda: None)
    await other.start(1)
    assert await ready(other, "hooks") == (200, "ok")
    await other.stop()


@staged
async def test_an_error_of_a_part_ends_the_manager_and_is_raised(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(rig.part("a"), rig.part("b", error=RuntimeError("broken")))
    with pytest.raises(RuntimeError, match="broken") as caught:
        await rig.manager.serve()
    assert "in b, which ended the manager" in caught.value.__notes__
    assert "a stops" in rig.log


@pytest.mark.parametrize("warm_up", [False, True])
def test_a_source_that_is_late_ends_the_manager_and_is_named(*, warm_up: bool) -> None:
    class Late:
        def __str__(self) -> str:
            return "a late source"

        async def run(self, sink: Sink) -> None:
            await asyncio.get_running_loop().create_future()

    @controller(sources=[Late()], sync_timeout=3, warm_up=warm_up)
    async def waits(request: Any, ctx: Context) -> None: ...

    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage)
        rig.manager.add(waits, rig.part("a", leads=False))
        with pytest.raises(ControllerError, match="controller waits: not ready after 3 s: a late source"):
            await rig.manager.serve()
        assert rig.log == ["a starts", "a stops"]

    play()


@staged
async def test_a_runnable_that_returns_is_done_and_others_continue(stage: ElectionStage) -> None:
    async def nothing(_: Dependencies) -> None: ...

    rig = Rig(stage)
    rig.manager.add(Task("short", nothing), rig.part("a"))
    await rig.start(10)
    assert rig.serving is not None
    assert not rig.serving.done()
    await rig.stop()
    assert rig.log == ["a starts", "a stops"]


@staged
async def test_a_manager_runs_once(stage: ElectionStage) -> None:
    rig = Rig(stage)
    await rig.start()
    with pytest.raises(RuntimeError, match="manager already started"):
        await rig.manager.serve()
    await rig.stop()
    with pytest.raises(RuntimeError, match="manager already started"):
        await rig.manager.serve()


@staged
async def test_runnables_added_later_start_immediately_and_none_during_shutdown(stage: ElectionStage) -> None:
    rig = Rig(stage)
    await rig.start()
    rig.manager.add(rig.part("late", stop_takes=5))
    with pytest.raises(ValueError, match="runnable 'late' exists"):
        rig.manager.add(rig.part("late"))
    more = Informers(rig.manager.client.live)
    more.of(ConfigMap)
    rig.manager.add(more)
    await stage.clock.sleep(1)
    assert rig.log == ["late starts"]
    assert more.of(ConfigMap).has_synced
    rig.manager.stop()
    await stage.clock.sleep(1)
    with pytest.raises(Stopped, match="stop procedure is already engaged"):
        rig.manager.add(rig.part("too late"))
    await rig.stop()
    assert rig.log == ["late starts", "late stops"]
    with pytest.raises(Stopped):
        rig.manager.add(rig.part("much too late"))
    await stage.clock.sleep(100)
    assert not [task for task in asyncio.all_tasks() if "reflector" in task.get_name()], "added caches are stopped too"


@staged
async def test_caches_of_other_clusters_are_filled_before_anything_runs(stage: ElectionStage) -> None:
    rig = Rig(stage)
    more = Informers(Client(RecordingTransport(InProcessTransport(stage.server)), world=stage.world))
    informer = more.of(ConfigMap)
    seen: list[bool] = []

    async def look(_: Dependencies) -> None:
        seen.append(informer.has_synced)

    rig.manager.add(more, Task("look", look, needs_leader_election=False))
    await rig.start()
    assert seen == [True]
    await rig.stop()


async def rings(each: Any, ctx: Any) -> None: ...


@staged
async def test_names_are_unique_and_only_runnables_are_accepted(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(rig.part("a"))
    with pytest.raises(ValueError, match="'a' exists"):
        rig.manager.add(rig.part("a"))
    with pytest.raises(ValueError, match=r"set another, e\.g\. @controller\(\.\.\., name='a-2'\)"):
        rig.manager.add(rig.part("a"))
    with pytest.raises(TypeError, match="is not a runnable; it needs a name and `async def run"):
        rig.manager.add(object())
    with pytest.raises(TypeError, match=r"rings is a function, not a controller; write @controller\(Kind\) above it"):
        rig.manager.add(rings)
    with pytest.raises(
        TypeError, match=r"config: the text 'prod' is not a Config; read a kubeconfig with Config\.load"
    ):
        Manager("prod")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="check 'x' is not a function; pass one that raises on failure"):
        rig.manager.add_health_check("x", "ping")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Rig is a class; pass an instance"):
        rig.manager.add(Rig)
    with pytest.raises(TypeError, match=r"a Builder is not a controller; call its complete\(reconciler\)"):
        rig.manager.add(rig.manager.build("rings"))
    await rig.start()
    with pytest.raises(ValueError, match="'a' exists"):
        rig.manager.add(rig.part("a"))
    with pytest.raises(RuntimeError, match="healthz endpoint has already been created"):
        rig.manager.add_health_check("x", lambda: None)
    await rig.stop()


@pytest.mark.parametrize(
    ("grace", "takes", "lasts", "said", "error"),
    [
        (30.0, 20.0, 20.0, "a stops", None),
        (30.0, 100.0, 30.0, "a is dropped", ShutdownTimedOut),
        (0.0, 20.0, 0.0, "a is dropped", None),
        (-1.0, 5000.0, 5000.0, "a stops", None),
    ],
)
def test_running_work_has_the_graceful_shutdown_time(
    grace: float, takes: float, lasts: float, said: str, error: type[Exception] | None
) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage, graceful_shutdown=grace)
        rig.manager.add(rig.part("a", stop_takes=takes))
        await rig.start()
        began = stage.clock.monotonic()
        if error is None:
            await rig.stop()
        else:
            with pytest.raises(error, match="within grace period of 30s: deadline exceeded") as caught:
                await rig.stop()
            assert isinstance(caught.value, TimeoutError)
        assert stage.clock.monotonic() - began == pytest.approx(lasts)
        assert rig.log == ["a starts", said]

    play()


@pytest.mark.parametrize("grace", [30.0, 0.0])
def test_a_cancelled_runnable_is_not_an_error_during_shutdown(caplog: pytest.LogCaptureFixture, grace: float) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage, graceful_shutdown=grace)
        rig.manager.add(rig.part("a"), rig.part("b", leads=False), Warm(rig, "bound"), Warm(rig, "free", leads=False))
        await rig.start(1)
        await rig.stop()

    play()
    assert not caplog.messages


@pytest.mark.parametrize("raised", [asyncio.CancelledError(), BaseExceptionGroup("x", [asyncio.CancelledError()])])
def test_a_part_that_ends_as_cancelled_though_it_was_not_to_stop_ends_the_manager(raised: BaseException) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        async def work(_: Dependencies) -> None:
            raise raised

        rig = Rig(stage)
        rig.manager.add(Task("odd", work), rig.part("a"))
        with pytest.raises(RuntimeError, match=r"it was cancelled by something it awaited|it raised") as caught:
            await rig.manager.serve()
        assert caught.value.__cause__ is raised
        assert caught.value.__notes__ == ["in odd, which ended the manager"]
        assert rig.log == ["a starts", "a stops"]

    play()


@staged
async def test_an_error_and_a_stop_that_takes_too_long_are_both_raised(stage: ElectionStage) -> None:
    rig = Rig(stage, graceful_shutdown=5.0)
    rig.manager.add(rig.part("slow", stop_takes=100), rig.part("bad", error=RuntimeError("broken")))
    with pytest.raises(ExceptionGroup) as caught:
        await rig.manager.serve()
    assert [type(each) for each in caught.value.exceptions] == [RuntimeError, ShutdownTimedOut]


def test_errors_while_stopping_are_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_: Dependencies) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            raise RuntimeError("on the way down") from None

    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage)
        rig.manager.add(Task("a", work))
        await rig.start()
        await rig.stop()

    play()
    assert caplog.messages == ["runnable failed during shutdown runnable=a error=on the way down"]


def test_a_part_that_will_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    staged(left_behind)()
    assert caplog.messages == [
        "runnable does not end after cancellation, abandoned runnable=a",
        "runnable failed during shutdown runnable=a error=nobody listens",
    ]


async def left_behind(stage: ElectionStage) -> None:
    stubborn = True

    async def work(_: Dependencies) -> None:
        while stubborn:
            try:
                await stage.clock.sleep(1000)
            except asyncio.CancelledError:
                continue
        raise RuntimeError("nobody listens")

    rig = Rig(stage, graceful_shutdown=1.0)
    rig.manager.add(Task("a", work))
    before = asyncio.all_tasks()
    await rig.start()
    with pytest.raises(ShutdownTimedOut):
        await rig.stop()
    left = asyncio.all_tasks() - before - {rig.serving}
    assert {task.get_name() for task in left} == {"a"}
    stubborn = False
    await stage.clock.sleep(2000)
    assert [task.exception() for task in left] == [None], "it is told in the log, and nowhere else"


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("who", ["source", "map function", "handler", "reconciler"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_whatever_does_not_end_the_manager_does(who: str, *, stubborn: bool, lost: bool) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        async def hang() -> None:
            while True:
                try:
                    await stage.clock.sleep(5000)
                except asyncio.CancelledError:
                    if not stubborn or over:
                        raise

        class Hanging:
            async def run(self, sink: Sink) -> None:
                sink.ready()
                sink.add("x", "test", 0, None)
                await hang()

        async def reconcile(request: Any) -> None:
            if who == "reconciler":
                await hang()

        async def mapped(_: ConfigMap) -> None:
            if who == "map function":
                await hang()

        over = False
        rig = Rig(stage, leader_election=QUICK, graceful_shutdown=5.0)
        builder = rig.manager.build("hangs").watches(ConfigMap, map_to=mapped)
        builder.watches_source(Hanging() if who == "source" else StartupSource(["x"])).complete(reconcile)
        if who == "handler":
            rig.manager.informers.of(ConfigMap).add_handler(lambda _: hang())
        await rig.start(2)
        await stage.client.create(ConfigMap(metadata=ObjectMeta(name="a")))
        await stage.clock.sleep(1)
        assert rig.serving is not None
        if lost:
            rig.wires["leader-election"].before = fail
        else:
            rig.manager.stop()
        began = stage.clock.monotonic()
        await asyncio.wait([rig.serving])
        in_time = who == "source" and not stubborn  # it is cancelled, and ends
        assert type(rig.serving.exception()) is (
            LeadershipLost if lost else type(None) if in_time else ShutdownTimedOut
        )
        assert stage.clock.monotonic() - began <= (10 if lost else 5)
        assert not rig.manager.informers.of(ConfigMap).is_running
        over = True

    play()


@staged
async def test_cancelling_stops_gracefully_and_cancelling_again_hurries(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(rig.part("a", stop_takes=20))
    await rig.start()
    assert rig.serving is not None
    began = stage.clock.monotonic()
    rig.serving.cancel()
    await stage.clock.sleep(3)
    assert not rig.serving.done()
    rig.serving.cancel()
    with pytest.raises(ShutdownTimedOut):
        await rig.serving
    assert stage.clock.monotonic() - began == pytest.approx(3)
    again = Rig(stage)
    again.manager.add(again.part("a", stop_takes=20))
    await again.start()
    assert again.serving is not None
    again.serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await again.serving
    assert again.log == ["a starts", "a stops"]


@staged
async def test_cancelling_again_while_the_lease_is_given_back_leaves_it_to_expire(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("a"))
    before = asyncio.all_tasks()
    await rig.start()
    rig.wires["leader-election"].before = lambda _: stage.clock.sleep(100)
    assert rig.serving is not None
    rig.serving.cancel()
    await stage.clock.sleep(1)
    assert rig.log == ["a starts", "a stops"]
    assert not rig.serving.done(), "the server does not answer"
    rig.serving.cancel()
    began = stage.clock.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await rig.serving
    assert stage.clock.monotonic() == began
    assert asyncio.all_tasks() - before == set()
    assert (await stage.lease()).spec.holder_identity


@staged
async def test_two_cancellations_skip_the_graceful_shutdown(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(rig.part("a", stop_takes=20))
    await rig.start()
    assert rig.serving is not None
    rig.serving.cancel()
    await asyncio.sleep(0)
    rig.serving.cancel()
    began = stage.clock.monotonic()
    with pytest.raises(ShutdownTimedOut):
        await rig.serving
    assert stage.clock.monotonic() == began
    assert rig.log == ["a starts", "a is dropped"]


@pytest.mark.parametrize("election", [None, QUICK])
def test_all_runnables_have_the_context_variables_of_the_manager(election: LeaderElection | None) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        seen: dict[str, str] = {}

        def part(name: str, *, leads: bool) -> Task:
            async def work(_: Dependencies) -> None:
                seen[name] = COLOUR.get()

            return Task(name, work, needs_leader_election=leads)

        COLOUR.set("blue")
        rig = Rig(stage, leader_election=election)
        rig.manager.add(part("leader", leads=True), part("other", leads=False))
        await rig.start()
        COLOUR.set("red")
        rig.manager.add(part("late", leads=True))
        await stage.clock.sleep(1)
        await rig.stop()
        assert seen == {"leader": "blue", "other": "blue", "late": "blue"}

    play()


@staged
async def test_a_cache_that_is_never_filled_does_not_hold_up_the_end(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.informers.of(ConfigMap)

    def cut(request: Request) -> None:
        raise ConnectionLost("cut off")

    rig.wires["everybody"].before = cut
    rig.manager.add(rig.part("a"))
    await rig.start(20)
    began = stage.clock.monotonic()
    await rig.stop()
    assert stage.clock.monotonic() - began < 1
    assert rig.log == []


@staged
async def test_the_readiness_check_of_caches_names_unsynced_kinds(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.informers.of(ConfigMap)
    rig.manager.add_readiness_check("caches", rig.manager.check_caches)
    with pytest.raises(RuntimeError, match="not been started"):
        await rig.manager.check_caches()

    def refuse(request: Request) -> None:
        if "configmaps" in request.path:
            raise Forbidden.of(kind_of(ConfigMap).gvr.group_resource, "", "nobody lets you")

    rig.wires["everybody"].before = refuse
    await rig.start(1)
    assert await rig.manager._health["readyz"].report("", {}) == (
        500,
        "[-]caches failed: reason withheld\nhealthz check failed\n",
    )
    status, text = await rig.manager._health["readyz"].report("caches", {})
    assert status == 500
    assert "not synced" in text
    assert "configmaps: configmaps is forbidden: nobody lets you" in text
    rig.wires["everybody"].before = lambda _: None
    await stage.clock.sleep(60)
    assert await rig.manager._health["readyz"].report("", {}) == (200, "ok")
    await rig.stop()


@staged
async def test_a_cache_that_is_not_filled_in_time_ends_the_manager_with_the_reason(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.informers.of(ConfigMap)

    def cut(request: Request) -> None:
        raise ConnectionLost("cut off by a test")

    rig.wires["everybody"].before = cut
    with pytest.raises(Exception, match="cut off by a test"):
        await rig.manager.serve()


def test_webhooks_are_put_among_the_webhooks() -> None:
    from ostinato.manager.groups import Serves
    from ostinato.webhook import ServiceEndpoint, Webhooks

    assert isinstance(Webhooks(endpoint=ServiceEndpoint("system", "widgets")), Serves)


# Leader election


@staged
async def test_only_the_leader_runs_runnables_that_need_leadership(stage: ElectionStage) -> None:
    first, second = Rig(stage, leader_election=QUICK), Rig(stage, leader_election=QUICK)
    for rig in (first, second):
        rig.manager.add(rig.part("leader"), rig.part("other", leads=False))
        await rig.start(1)
    assert (first.log, second.log) == (["other starts", "leader starts"], ["other starts"])
    assert (first.manager.is_leader, second.manager.is_leader) == (True, False)
    for rig in (first, second):
        asked = rig.wires["leader-election"].requests
        assert asked
        assert {each.timeout for each in asked} == {5.0}, "half of the renew deadline"
    await first.manager.elected()
    await first.stop()
    released = stage.clock.monotonic()
    await second.manager.elected()
    assert stage.clock.monotonic() - released <= 4.4, "the lease was given back"
    await stage.clock.sleep(1)
    assert second.log == ["other starts", "leader starts"]
    await second.stop()
    assert (await stage.lease()).spec.holder_identity == ""


@staged
async def test_a_lease_is_given_back_only_after_the_work_has_stopped(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader", stop_takes=20))
    await rig.start(1)
    rig.manager.stop()
    await stage.clock.sleep(19)
    lease = await stage.lease()
    assert lease.spec.holder_identity
    assert (stage.clock.now() - lease.spec.renew_time).total_seconds() < 3, "it is renewed until the end"  # type: ignore[operator]
    await rig.stop()
    assert (await stage.lease()).spec.holder_identity == ""


@staged
async def test_work_that_does_not_stop_in_time_keeps_the_lease_until_it_expires(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK, graceful_shutdown=5.0)
    rig.manager.add(rig.part("leader", stop_takes=100))
    await rig.start(1)
    with pytest.raises(ShutdownTimedOut):
        await rig.stop()
    assert (await stage.lease()).spec.holder_identity


@staged
async def test_a_manager_that_loses_leadership_cancels_its_work_and_fails(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader", stop_takes=20), rig.part("other", leads=False, stop_takes=20))
    await rig.start(1)

    def cut(request: Request) -> None:
        raise ConnectionLost("cut off")

    rig.wires["leader-election"].before = cut
    assert rig.serving is not None
    with pytest.raises(LeadershipLost, match="leader election lost"):
        await rig.serving
    assert "leader is dropped" in rig.log
    assert stage.clock.monotonic() < 15
    assert not rig.manager.is_leader
    with pytest.raises(DeadlinePassed, match="this process has lost leadership"):
        await rig.manager.client.create(ConfigMap(metadata=ObjectMeta(name="late")))


@staged
async def test_leadership_lost_while_stopping_leaves_no_more_time(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader", stop_takes=25))
    await rig.start(1)

    def cut(request: Request) -> None:
        raise ConnectionLost("cut off")

    rig.wires["leader-election"].before = cut
    began = stage.clock.monotonic()
    await rig.stop()
    assert stage.clock.monotonic() - began <= 11
    assert rig.log == ["leader starts", "leader is dropped"]


@staged
async def test_only_a_leader_writes_through_the_managers_client_and_everybody_reads(stage: ElectionStage) -> None:
    other = stage.candidate("other", trust_absence=True)
    await other.elector.acquire()
    renewing = asyncio.create_task(other.elector.renew())
    rig = Rig(stage, leader_election=QUICK)

    async def write(dependencies: Dependencies) -> None:
        await dependencies.client.create(ConfigMap(metadata=ObjectMeta(name="by-everybody")))

    rig.manager.add(Task("writes", write, needs_leader_election=False))
    await rig.start(5)
    with pytest.raises(DeadlinePassed, match="is not the leader"):
        await rig.manager.client.create(ConfigMap(metadata=ObjectMeta(name="by-leader")))
    assert (await rig.manager.client.get(ConfigMap, "by-everybody")).metadata.name == "by-everybody"
    renewing.cancel()
    await stage.clock.sleep(30)
    await rig.manager.client.create(ConfigMap(metadata=ObjectMeta(name="by-leader")))
    await rig.stop()


@staged
async def test_a_stop_before_leadership_never_starts_runnables_that_need_it(stage: ElectionStage) -> None:
    other = stage.candidate("other", trust_absence=True)
    await other.elector.acquire()
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader"), rig.part("other", leads=False, stop_takes=28))
    await rig.start(1)
    rig.manager.stop()
    await stage.clock.sleep(1)
    rig.manager._lead()  # the news of an election that was won in the last moment
    await rig.stop()
    await stage.clock.sleep(100)
    assert rig.log == ["other starts", "other stops"]
    assert (await stage.lease()).spec.holder_identity == "other", "nobody stood any more"


@pytest.mark.parametrize(
    ("managers", "own", "runs"),
    [(False, None, True), (True, None, False), (None, None, False), (False, True, False), (True, False, True)],
)
def test_needs_leader_election_defaults_to_the_managers_option(
    managers: bool | None, own: bool | None, runs: bool
) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        @controller(sources=[StartupSource(["x"])], needs_leader_election=own)
        async def writes(request: Any, ctx: Context) -> None:
            await ctx.client.create(ConfigMap(metadata=ObjectMeta(name="written", namespace="default")))

        other = stage.candidate("other", trust_absence=True)
        await other.elector.acquire()
        rig = Rig(stage, leader_election=QUICK, controllers=ControllerOptions(needs_leader_election=managers))
        rig.manager.add(writes)
        await rig.start(5)
        assert (await stage.client.get(ConfigMap, "written", missing=None) is not None) == runs
        await rig.stop()

    play()


@staged
async def test_health_fails_for_a_leader_that_does_not_end(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.check_leadership()
    await rig.start(1)
    rig.manager.check_leadership()
    assert rig.manager._election is not None
    elector = rig.manager._election._elector
    assert elector is not None
    elector._observed_at -= 34
    rig.manager.check_leadership()
    elector._observed_at -= 5
    with pytest.raises(LeadershipLost, match="failed election to renew"):
        rig.manager.check_leadership()
    await rig.stop()


@staged
async def test_an_election_that_breaks_is_lost(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader"))
    await rig.start(1)

    def broken(request: Request) -> None:
        raise ZeroDivisionError("a mistake")

    rig.wires["leader-election"].before = broken
    assert rig.serving is not None
    with pytest.raises(ZeroDivisionError):
        await rig.serving
    assert not rig.manager.is_leader
    with pytest.raises(DeadlinePassed, match="this process has lost leadership"):
        await rig.manager.client.create(ConfigMap(metadata=ObjectMeta(name="late")))


@staged
async def test_a_manager_that_was_stopped_before_it_has_started_ends_as_it_does(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=LeaderElection(name="widgets", trust_absence=True))
    rig.manager.add(rig.part("leader"))
    rig.manager.stop()
    await rig.manager.serve()
    assert rig.log == []


@staged
async def test_a_lease_that_is_not_to_be_released_is_left_to_expire(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=LeaderElection(name="widgets", release=False, trust_absence=True))
    rig.manager.add(rig.part("leader"))
    await rig.start(1)
    await rig.stop()
    assert rig.log == ["leader starts", "leader stops"]
    assert (await stage.lease()).spec.holder_identity, "it is left to expire where release is off"
    assert not rig.manager.is_leader


@staged
async def test_a_write_that_was_cut_short_keeps_the_lease_until_it_expires(stage: ElectionStage) -> None:
    async def write(dependencies: Dependencies) -> None:
        await dependencies.client.create(ConfigMap(metadata=ObjectMeta(name="cut")))

    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(Task("writes", write))
    _ = rig.manager.client
    rig.wires["leader"].before = lambda _: stage.clock.sleep(100)
    await rig.start(1)
    await rig.stop()
    assert (await stage.lease()).spec.holder_identity, "the write may still be on its way"


class _BadGateway:
    """An answer of something in between that does not know what became of the request."""

    status, headers, warnings = 504, dict[str, str](), ()

    async def read(self) -> bytes:
        return b""


@staged
async def test_a_write_that_was_never_sent_does_not_keep_the_lease(stage: ElectionStage) -> None:
    async def unplugged(_: Request) -> None:
        raise Unreachable("nobody is there")

    async def write(dependencies: Dependencies) -> None:
        with suppress(Unreachable):
            await dependencies.client.create(ConfigMap(metadata=ObjectMeta(name="unsent")))

    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(Task("writes", write))
    _ = rig.manager.client
    rig.wires["leader"].before = unplugged
    await rig.start(1)
    await rig.stop()
    assert not (await stage.lease()).spec.holder_identity


@pytest.mark.parametrize("outcome", [ConnectionLost("cut"), _BadGateway(), None])
def test_a_write_with_an_unknown_result_keeps_the_lease(outcome: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ostinato.manager")

    @staged
    async def play(stage: ElectionStage) -> None:
        async def write(dependencies: Dependencies) -> None:
            with suppress(ConnectionLost, APIError):
                await dependencies.client.create(ConfigMap(metadata=ObjectMeta(name="cut")))

        rig = Rig(stage, leader_election=QUICK)
        rig.manager.add(Task("writes", write))
        _ = rig.manager.client
        wire = rig.wires["leader"]
        inner = wire.inner

        class Lossy:
            async def request(self, request: Request) -> Any:
                answer = await inner.request(request)
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome or answer

            async def close(self) -> None:
                await inner.close()

        wire.inner = Lossy()
        await rig.start(1)
        assert await stage.client.get(ConfigMap, "cut")
        await rig.stop()
        assert bool((await stage.lease()).spec.holder_identity) == (outcome is not None)
        told = [text for text in caplog.messages if "not releasing the lease" in text]
        assert len(told) == (outcome is not None), "a hand-over that takes long is explained"

    play()


def test_a_lease_lost_during_shutdown_is_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        rig = Rig(stage, leader_election=QUICK)
        rig.manager.add(rig.part("slow", stop_takes=25))
        await rig.start(1)

        def cut(_: Request) -> None:
            raise ConnectionLost("cut")

        rig.wires["leader-election"].before = cut
        await rig.stop()
        assert rig.log == ["slow starts", "slow is dropped"]

    play()
    (record,) = [each for each in caplog.records if "runnable failed during shutdown" in each.getMessage()]
    assert "could not be renewed within 10 s" in record.getMessage()
    assert record.exc_info is None


@staged
async def test_a_manager_that_cannot_be_put_together_leaves_nothing_open(stage: ElectionStage) -> None:
    class Broken:
        name = "broken"

        @property
        def needs_leader_election(self) -> bool:
            raise LookupError("no such setting")

        async def run(self, dependencies: Dependencies) -> None: ...

    rig = Rig(stage)
    rig.manager.add(Broken())
    await rig.manager.client.get(ConfigMap, "x", missing=None)
    with pytest.raises(LookupError):
        await rig.manager.serve()
    assert all(wire.closed for wire in rig.wires.values())
    with pytest.raises(RuntimeError, match="already started"):
        await rig.manager.serve()


@staged
async def test_elections_are_reported_by_events_and_metrics(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=LeaderElection(name="widgets", identity="me", trust_absence=True))
    await rig.start(1)
    assert 'leader_election_master_status{name="widgets"} 1\n' in rig.manager.metrics.text()
    assert 'leader_election_slowpath_total{name="widgets"} 0\n' in rig.manager.metrics.text()
    await rig.stop()
    assert 'leader_election_master_status{name="widgets"} 0\n' in rig.manager.metrics.text()
    events = [event async for event in stage.client.list(Event) if event.reason == "LeaderElection"]
    assert events[0].regarding is not None
    assert (events[0].regarding.kind, events[0].regarding.name) == ("Lease", "widgets")
    assert sorted(str(event.note) for event in events) == ["me became leader", "me stopped leading"]


@staged
async def test_a_manager_without_election_leads_when_it_has_started(stage: ElectionStage) -> None:
    rig = Rig(stage)
    assert not rig.manager.is_leader
    with pytest.raises(RuntimeError, match="not been started"):
        await rig.manager.elected()
    await rig.start()
    await rig.manager.elected()
    assert rig.manager.is_leader
    await rig.stop()
    assert not rig.manager.is_leader


@staged
async def test_a_lease_that_is_deleted_does_not_end_the_leader(stage: ElectionStage) -> None:
    rig = Rig(stage, leader_election=QUICK)
    rig.manager.add(rig.part("leader"))
    await rig.start(1)
    await stage.client.delete(Lease, "widgets")
    await stage.clock.sleep(30)
    assert rig.manager.is_leader
    await rig.stop()


@staged
async def test_events_of_a_runnable_have_its_name_also_during_shutdown(stage: ElectionStage) -> None:
    async def work(dependencies: Dependencies) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            dependencies.recorder.event(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")), "Bye", "x")

    rig = Rig(stage)
    rig.manager.add(Task("parts", work))
    await rig.start()
    await rig.stop()
    [event] = [event async for event in stage.client.list(Event) if event.reason == "Bye"]
    assert event.reporting_controller == "parts"
    assert all(wire.closed for wire in rig.wires.values())
    assert [task.get_name() for task in asyncio.all_tasks() if "events" in task.get_name()] == []


@staged
async def test_a_part_logs_under_its_own_name_to_the_managers_logger(stage: ElectionStage) -> None:
    seen: list[str] = []

    @controller(sources=[StartupSource(["x"])])
    async def widgets(request: Any, ctx: Context) -> None:
        seen.append(ctx.logger.name)

    for given in ({}, {"reporting": ReportingOptions(logger=logging.getLogger("paris"))}):
        rig = Rig(stage, **given)
        rig.manager.add(widgets)
        await rig.start()
        await rig.stop()
    assert seen == ["ostinato.widgets", "paris.widgets"]


@staged
async def test_the_warning_handler_receives_warnings_of_every_client(stage: ElectionStage) -> None:
    told: list[str] = []
    rig = Rig(stage, leader_election=QUICK, client=ClientOptions(warn=told.append))
    for client in (rig.manager.client, rig.manager.client.live):
        await client.get(Endpoints, "kubernetes", namespace="default")
    deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert told == [deprecated, deprecated]
