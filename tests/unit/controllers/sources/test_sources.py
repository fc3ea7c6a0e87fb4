"""Sources and handlers: which keys, with which priority, for which reason."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Hashable
from functools import partial
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, WidgetSpec, config_map, definition, widget

from ostinato.api.meta import ObjectMeta, OwnerReference
from ostinato.api.object import CustomResource
from ostinato.api.owners import reference_to
from ostinato.cache import Added, Deleted, Event, Informers, InformerSettings, Updated
from ostinato.client import Unstructured
from ostinato.controllers import (
    Builder,
    Channel,
    ChannelSource,
    Context,
    CronSource,
    Dependencies,
    ForEvent,
    ForObject,
    ForOwner,
    KindOptions,
    KindSource,
    MapTo,
    Request,
    Result,
    StartupSource,
    current_reconcile,
    generation_changed,
    having_labels,
)
from ostinato.controllers.reasons import Cause
from ostinato.controllers.sources.sources import Sink
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.queue import LOW_PRIORITY
from ostinato.world import Simulation, World


class RecordedSink:
    """A sink that records the enqueued keys."""

    def __init__(self, stage: ControllerStage | ServerlessStage) -> None:
        self.keys: list[Hashable] = []
        self.entries: list[tuple[Hashable, str, int]] = []
        self.causes: list[Cause | None] = []
        self.is_ready = False
        self.sink = Sink(
            controller="test",
            dependencies=stage.dependencies,
            logger=stage.logger,
            sync_timeout=10,
            add=self._add,
            ready=self._ready,
        )

    def _add(self, key: Hashable, reason: str, priority: int, cause: Cause | None) -> None:
        self.keys.append(key)
        self.entries.append((key, reason, priority))
        self.causes.append(cause)

    def _ready(self) -> None:
        self.is_ready = True

    def take(self) -> list[tuple[Hashable, str, int]]:
        taken, self.entries = self.entries, []
        self.keys.clear()
        return taken


async def start_source(
    stage: ControllerStage | ServerlessStage, source: Any
) -> tuple[RecordedSink, asyncio.Task[None]]:
    sink = RecordedSink(stage)
    task = asyncio.create_task(source.run(sink.sink))
    await stage.settle()
    return sink, task


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


A = Request("default", "a")
B = Request("default", "b")


# Objects of a kind


@staged
async def test_initial_and_unchanged_objects_have_low_priority(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    source = KindSource(Widget, ForObject(), KindOptions(resync=60))
    sink, task = await start_source(stage, source)
    assert sink.take() == [(A, "Widget found", LOW_PRIORITY)]
    assert sink.is_ready
    created = await stage.user.create(widget("b"))
    created.spec.size = 2
    await stage.user.update(created)
    await stage.user.delete(Widget, "b")
    await stage.settle()
    assert sink.take() == [(B, "Widget added", 0), (B, "Widget updated", 0), (B, "Widget deleted", 0)]
    await stage.settle(60)
    assert sink.take() == [(A, "Widget resynced", LOW_PRIORITY)]
    deleted = sink.causes[-2]
    assert deleted is not None
    assert (deleted.gvk.kind, deleted.key) == ("Widget", B)
    assert sink.causes[-1] is None, "nothing has happened to it"
    await stop(task)


@staged
async def test_events_of_another_cluster_have_no_cause_in_this_one(stage: ControllerStage) -> None:
    there = Informers(stage.user)
    sink, task = await start_source(stage, KindSource(Widget, ForObject(), KindOptions(informers=there)))
    await stage.user.create(widget("a"))
    await stage.settle()
    assert sink.take() == [(A, "Widget added", 0)]
    assert sink.causes == [None]
    assert stage.informers.all() == []
    await stop(task)
    await there.stop()


@staged
async def test_a_stopped_source_receives_no_events(stage: ControllerStage) -> None:
    sink, task = await start_source(stage, KindSource(Widget, ForObject()))
    await stop(task)
    await stage.user.create(widget("a"))
    await stage.settle()
    assert sink.entries == []


@staged
async def test_an_event_function_can_encode_the_event_in_the_key(stage: ControllerStage) -> None:
    def keys(event: Event) -> list[str]:
        match event:
            case Added(object=entry):
                return [f"added {entry.key.name}"]
            case Updated(new=entry):
                return [f"updated {entry.key.name}"]
            case Deleted(last_known=entry):
                return [f"deleted {entry.key.name}"]

    sink, task = await start_source(stage, KindSource(Widget, ForEvent(keys)))
    await stage.user.create(widget("a"))
    await stage.user.delete(Widget, "a")
    await stage.settle()
    assert sink.keys == ["added a", "deleted a"]
    await stop(task)


@staged
async def test_predicates_of_one_watch_do_not_affect_another(stage: ControllerStage) -> None:
    only = KindSource(Widget, ForObject(), KindOptions(predicates=(having_labels("app=web"),)))
    everything = KindSource(Widget, ForObject())
    first, one = await start_source(stage, only)
    second, other = await start_source(stage, everything)
    await stage.user.create(widget("a"))
    await stage.settle()
    assert (first.keys, second.keys) == ([], [A])
    await stop(one)
    await stop(other)


@staged
async def test_predicates_are_evaluated_in_order_until_one_fails(stage: ControllerStage) -> None:
    asked: list[str] = []

    def no(event: Event) -> bool:
        asked.append("no")
        return False

    def never(event: Event) -> bool:
        asked.append("never")
        return True

    source = KindSource(Widget, ForObject(), KindOptions(predicates=(never,))).with_filters([no])
    sink, task = await start_source(stage, source)
    await stage.user.create(widget("a"))
    await stage.settle()
    assert (asked, sink.keys) == (["no"], [])
    await stop(task)


@staged
async def test_a_predicate_that_raises_is_reported_and_taken_for_a_yes(stage: ControllerStage) -> None:
    def broken(event: Event) -> bool:
        raise KeyError("x")

    source = KindSource(Widget, ForObject(), KindOptions(predicates=(broken,)))
    sink, task = await start_source(stage, source)
    await stage.user.create(widget("a"))
    await stage.settle()
    assert sink.keys == [A]
    assert "broken object='Widget default/a' error=KeyError: 'x'" in stage.log.texts()[0]
    await stop(task)


@staged
async def test_a_failing_handler_is_logged_with_the_object_and_continues(stage: ControllerStage) -> None:
    def broken(each: Widget) -> list[Request]:
        if each.metadata.name == "a":
            raise ValueError("no idea")
        return [B]

    def broken_event(event: Event) -> list[Request]:
        raise ValueError("no idea")

    sink, task = await start_source(stage, KindSource(Widget, MapTo(broken)))
    other, second = await start_source(stage, KindSource(Widget, ForEvent(broken_event)))
    await stage.user.create(widget("a"))
    await stage.user.create(widget("b"))
    await stage.settle()
    assert sink.keys == [B]
    assert other.keys == []
    (text, *_) = [text for text in stage.log.texts() if "Widget default/a" in text]
    assert (
        "event handler failed; object not enqueued controller=test object='Widget default/a' error=ValueError: no idea"
        in text
    )
    await stop(task)
    await stop(second)


@staged
async def test_one_source_can_have_its_own_cache_settings(stage: ControllerStage) -> None:
    source = KindSource(Widget, ForObject(), KindOptions(settings=InformerSettings(labels="app=web")))
    sink, task = await start_source(stage, source)
    await stage.user.create(widget("a"))
    labelled = widget("b")
    labelled.metadata.labels = {"app": "web"}
    await stage.user.create(labelled)
    await stage.settle()
    assert sink.keys == [B]
    await stop(task)


# Owners


def owned(name: str, *owners: OwnerReference) -> ConfigMap:
    made = config_map(name)
    made.metadata.owner_references = list(owners)
    return made


def reference(name: str, kind: str = "Widget", api_version: str = "example.dev/v1", **given: Any) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{kind}-{name}", **given)


OWNERS: list[tuple[list[OwnerReference], dict[str, bool], list[str]]] = [
    ([reference("a", controller=True)], {}, ["a"]),
    ([reference("a")], {}, []),
    ([reference("a"), reference("b")], {"every_owner": True}, ["a", "b"]),
    ([reference("a"), reference("b", controller=True)], {}, ["b"]),
    ([reference("a", controller=True), reference("b", controller=True)], {}, ["a"]),
    ([reference("a"), reference("x", kind="Gadget", controller=True)], {}, []),
    ([reference("a"), reference("x", kind="Gadget"), reference("b")], {"every_owner": True}, ["a", "b"]),
    ([reference("a", api_version="example.dev/v2", controller=True)], {}, ["a"]),
    ([reference("a", api_version="other.dev/v1", controller=True)], {}, []),
    ([reference("a", kind="Gadget", controller=True)], {}, []),
    ([reference("a", api_version="a/b/c", controller=True)], {}, []),
    ([], {}, []),
]


@pytest.mark.parametrize(("references", "options", "names"), OWNERS)
def test_owners_count_by_group_and_kind(
    references: list[OwnerReference], options: dict[str, bool], names: list[str]
) -> None:
    from ostinato.api.codec import to_json
    from ostinato.api.object import kind_of
    from ostinato.cache.store.entry import CollectionInfo
    from ostinato.cache.store.entry_decoder import EntryDecoder

    entry = EntryDecoder(CollectionInfo(kind_of(ConfigMap))).decode(to_json(owned("x", *references)))
    handler = ForOwner(Widget, **options)
    assert [each.name for each in handler.keys(Added(entry))] == names  # type: ignore[attr-defined]


@staged
async def test_an_object_that_moves_is_of_interest_to_both_owners(stage: ControllerStage) -> None:
    sink, task = await start_source(stage, KindSource(ConfigMap, ForOwner(Widget)))
    first = await stage.user.create(widget("a"))
    second = await stage.user.create(widget("b"))
    one, other = reference_to(first), reference_to(second)
    one.controller = other.controller = True
    made = await stage.user.create(owned("x", one))
    await stage.settle()
    sink.take()
    made.metadata.owner_references = [other]
    await stage.user.update(made)
    await stage.settle()
    assert [key for key, _, _ in sink.take()] == [B, A]
    await stop(task)


@staged
async def test_an_owner_that_is_in_no_namespace_has_a_request_without_one(stage: ControllerStage) -> None:
    class Planet(CustomResource, group="example.dev", version="v1", namespaced=False):
        spec: WidgetSpec | None = None

    await stage.user.create(definition("Planet", "planets", "Cluster"))
    await stage.settle()
    planet = await stage.user.create(Planet(metadata=ObjectMeta(name="mars")))
    owner = reference_to(planet)
    owner.controller = True
    for kind in (Planet, Unstructured.of("example.dev/v1", "Planet")):
        sink, task = await start_source(stage, KindSource(ConfigMap, ForOwner(kind)))
        await stage.user.create(owned(f"x-{len(str(kind))}", owner))
        await stage.settle()
        assert set(sink.keys) == {Request("", "mars")}
        await stop(task)


# Map functions


@staged
async def test_a_map_function_returns_none_one_or_many_keys_for_old_and_new_state(stage: ControllerStage) -> None:
    def keys(each: Widget) -> Any:
        return {"": None, "one": A, "many": [A, B, A]}.get(each.spec.text, Request("", each.spec.text))

    sink, task = await start_source(stage, KindSource(Widget, MapTo(keys)))
    for name, text in (("n", ""), ("o", "one"), ("m", "many")):
        await stage.user.create(widget(name, text=text))
    await stage.settle()
    assert [key for key, _, _ in sink.take()] == [A, A, B]
    changed = await stage.user.get(Widget, "m")
    changed.spec.text = "else"
    await stage.user.update(changed)
    await stage.settle()
    assert [key for key, _, _ in sink.take()] == [Request("", "else"), A, B]
    await stop(task)


@staged
async def test_a_map_function_may_be_async_and_use_the_client(stage: ControllerStage) -> None:
    async def keys(each: ConfigMap, dependencies: Dependencies) -> list[Request]:
        found = await dependencies.client.list(Widget, namespace=each.metadata.namespace)
        return [Request("default", other.metadata.name) for other in found]

    await stage.user.create(widget("a"))
    await stage.user.create(widget("b"))
    sink, task = await start_source(stage, KindSource(ConfigMap, MapTo(keys)))
    sink.take()
    await stage.user.create(config_map("x"))
    await stage.settle()
    assert sorted(sink.keys) == [A, B]  # type: ignore[type-var]
    await stop(task)


@staged
async def test_a_map_function_that_returns_a_bare_name_is_rejected(stage: ControllerStage) -> None:
    def keys(each: Widget) -> str:
        return each.metadata.name

    sink, task = await start_source(stage, KindSource(Widget, MapTo(keys)))
    await stage.user.create(widget("a"))
    await stage.settle()
    assert sink.keys == []
    assert "returned the string 'a'; return NamespacedName(namespace, name)" in stage.log.texts()[0]
    await stop(task)


def test_a_map_function_takes_one_or_two_arguments() -> None:
    with pytest.raises(TypeError, match="a map function must take the object, and may take the dependencies"):
        MapTo(lambda: None)


# Channels


@without_server
async def test_keys_put_into_a_channel_before_the_start_are_enqueued(stage: ServerlessStage) -> None:
    channel = Channel()
    channel.put(A, 3)
    channel.put(A)
    sink, task = await start_source(stage, ChannelSource(channel))
    channel.put(B)
    await stage.settle()
    assert sink.take() == [(A, "channel", 3), (B, "channel", 0)]
    await stop(task)


@without_server
async def test_every_controller_of_a_channel_receives_all_keys(stage: ServerlessStage) -> None:
    channel = Channel()
    first, one = await start_source(stage, ChannelSource(channel))
    second, other = await start_source(stage, ChannelSource(channel))
    channel.put(A)
    await stage.settle()
    assert (first.keys, second.keys) == ([A], [A])
    await stop(one)
    await stop(other)


@without_server
async def test_a_closed_channel_is_drained(stage: ServerlessStage) -> None:
    channel = Channel()
    channel.put(A)
    channel.close()
    sink, task = await start_source(stage, ChannelSource(channel))
    assert sink.keys == [A]
    assert task.done()
    with pytest.raises(RuntimeError, match="closed"):
        channel.put(B)
    listening, other = await start_source(stage, ChannelSource(open_channel := Channel()))
    open_channel.close()
    await stage.settle()
    assert other.done()
    assert listening.keys == []


def test_keys_put_by_another_thread_are_enqueued_immediately() -> None:
    async def main() -> None:
        channel, clock, enqueued = Channel(), World.real().clock, asyncio.Event()
        sink = Sink(
            controller="test",
            dependencies=ServerlessStage(Simulation(1)).dependencies,
            logger=logging.getLogger(),
            sync_timeout=1,
            add=lambda *_: enqueued.set(),
            ready=lambda: None,
        )
        task = asyncio.create_task(ChannelSource(channel).run(sink))
        await clock.sleep(0)
        for call, wanted in ((lambda: channel.put("a"), enqueued.wait()), (channel.close, asyncio.wait([task]))):
            other = threading.Timer(0.1, call)
            other.start()
            async with clock.timeout(5):  # which would wake the loop, and is too late
                await wanted
            other.join()

    asyncio.run(main())


@without_server
async def test_keys_put_during_the_start_of_a_source_are_enqueued(stage: ServerlessStage) -> None:
    channel = Channel()

    class Slow:
        """A key of which much is thought, so that others come in between."""

        def __hash__(self) -> int:
            if listening:
                listening.clear()
                channel.put("b")
            return 1

    listening: list[bool] = []
    channel.put(slow := Slow())
    listening.append(True)
    sink, task = await start_source(stage, ChannelSource(channel))
    assert set(sink.keys) == {slow, "b"}
    await stop(task)


def test_keys_put_by_another_thread_before_close_are_enqueued() -> None:
    channel = Channel()

    def put_and_close() -> None:
        channel.put(B)
        channel.close()

    def wanted(thing: Hashable) -> bool:
        if thing == A:  # the source is at work
            other = threading.Thread(target=put_and_close)
            other.start()
            other.join()
        return True

    channel.put(A)
    sink = RecordedSink(ServerlessStage(Simulation(1)))
    asyncio.run(ChannelSource(channel, wanted=wanted).run(sink.sink))
    assert sink.keys == [A, B]


@without_server
async def test_items_of_a_channel_can_be_filtered_and_mapped(stage: ServerlessStage) -> None:
    channel = Channel()

    def keys(thing: Hashable) -> list[Hashable]:
        if thing == "bad":
            raise ValueError("no idea")
        return [f"{thing}1", f"{thing}2"]

    sink, task = await start_source(stage, ChannelSource(channel, keys=keys, wanted=lambda thing: thing != "no"))
    for thing in ("no", "bad", "x"):
        channel.put(thing)
    await stage.settle()
    assert sink.keys == ["x1", "x2"]
    assert "mapping a channel value failed; not enqueued controller=test value='bad'" in stage.log.texts()[0]
    await stop(task)


def test_a_channel_is_needed_and_things_are_hashable() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match=r"ChannelSource\(\) needs a Channel"):
        ChannelSource(nothing)
    unhashable: Any = []
    with pytest.raises(TypeError, match="unhashable"):
        Channel().put(unhashable)


# Time


@without_server
async def test_a_schedule_enqueues_its_keys_at_its_times(stage: ServerlessStage) -> None:
    sink, task = await start_source(stage, CronSource("*/30 * * * *", [A]))
    assert sink.is_ready
    await stage.settle(1799.4)
    assert sink.keys == []
    await stage.settle(0.2)
    assert sink.take() == [(A, "schedule", 0)]
    await stage.settle(3600)
    assert sink.keys == [A, A]
    await stop(task)


@without_server
async def test_the_keys_of_a_schedule_may_come_from_a_function(stage: ServerlessStage) -> None:
    days: list[str] = []

    def keys() -> list[Hashable]:
        days.append(stage.world.clock.now().strftime("%H:%M"))
        return [A]

    _, task = await start_source(stage, CronSource("0 6 * * *", keys, time_zone="Europe/Paris"))
    await stage.settle(20_000)
    assert days == ["05:00"]
    await stop(task)


@without_server
async def test_a_failing_key_function_of_a_schedule_is_called_again_the_next_time(stage: ServerlessStage) -> None:
    answers: list[Any] = [OSError("the provider is down"), "a name", A, [A, B], None]

    def keys() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sink, task = await start_source(stage, CronSource("* * * * *", keys))
    await stage.settle(300)
    assert (sink.keys, answers, task.done()) == ([A, A, B], [], False)
    assert (
        stage.log.texts()
        == ["key function failed; nothing enqueued controller=test source=\"schedule '* * * * *'\""] * 2
    )
    await stop(task)


def test_an_async_function_for_the_keys_of_a_schedule_or_startup_is_refused_where_it_is_written() -> None:
    async def found() -> list[Hashable]:
        return [A]

    wrong: Any = found
    for make in (StartupSource, partial(CronSource, "* * * * *")):
        with pytest.raises(TypeError, match="the async def found; make it a plain def"):
            make(wrong)


@without_server
async def test_a_schedule_enqueues_the_keys_that_the_list_has_when_it_fires(
    stage: ServerlessStage,
) -> None:
    keys: list[Hashable] = [A]
    sink, task = await start_source(stage, CronSource("* * * * *", keys))
    await stage.settle(60)
    keys.append(B)
    await stage.settle(60)
    assert sink.keys == [A, A, B]
    await stop(task)


@without_server
async def test_the_keys_of_a_schedule_may_be_one_or_come_from_a_generator(stage: ServerlessStage) -> None:
    one, first = await start_source(stage, CronSource("* * * * *", A))
    several, second = await start_source(stage, CronSource("* * * * *", (each for each in (A, B))))
    await stage.settle(130)
    assert (one.keys, several.keys) == ([A, A], [A, B, A, B])
    await stop(first)
    await stop(second)
    with pytest.raises(TypeError, match="schedule '@daily' has the string 'report'; return NamespacedName"):
        CronSource("@daily", "report")


@without_server
async def test_a_schedule_without_a_next_time_is_logged_and_ends(stage: ServerlessStage) -> None:
    source = CronSource("0 0 30 2 *", [A])
    sink, task = await start_source(stage, source)
    assert task.done()
    assert sink.is_ready
    assert stage.log.texts() == ["schedule has no next time controller=test source=\"schedule '0 0 30 2 *'\""]


def test_a_date_that_is_set_back_is_waited_for_again() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        world = simulation.machine("slow", wall_rate=0.5)
        stage = ServerlessStage(simulation)
        sink = RecordedSink(stage)
        slow = Sink(
            controller="test",
            dependencies=Dependencies(
                client=sink.sink.dependencies.client, informers=sink.sink.dependencies.informers, world=world
            ),
            logger=stage.logger,
            sync_timeout=1,
            add=sink._add,
            ready=sink._ready,
        )
        task = asyncio.create_task(CronSource("* * * * *", [A]).run(slow))
        await simulation.clock.sleep(119)
        assert sink.keys == []
        await simulation.clock.sleep(2)
        assert sink.keys == [A]
        await stop(task)

    simulation.run(main())


@without_server
async def test_a_startup_source_enqueues_its_keys_once(stage: ServerlessStage) -> None:
    sink, task = await start_source(stage, StartupSource([A, B]))
    assert sink.take() == [(A, "startup", 0), (B, "startup", 0)]
    await stage.settle(3600)
    assert sink.keys == []
    await stop(task)


def test_sources_have_a_repr() -> None:
    assert str(KindSource(Widget, ForObject())) == "Widget of example.dev/v1"
    assert str(ChannelSource(Channel())) == "a channel"
    assert str(CronSource("@daily", [])) == "schedule '@daily'"
    assert str(StartupSource([])) == "startup"


# Why


@staged
async def test_a_reconcile_knows_all_the_reasons_it_runs_for_each_once(stage: ControllerStage) -> None:
    whys: list[tuple[str, ...]] = []
    gate = asyncio.Event()

    async def reconcile(request: Request) -> None:
        found = current_reconcile()
        assert found is not None
        whys.append(found.why.reasons)
        await gate.wait()

    built = (
        Builder("why")
        .watch_for(Widget)
        .watches(ConfigMap, map_to=lambda _: A, predicates=[generation_changed])
        .complete(reconcile)
    )
    async with stage.running(built):
        await stage.settle()
        await stage.user.create(widget("a"))
        await stage.settle()
        found = await stage.user.get(Widget, "a")
        for size in range(2, 30):
            found.spec.size = size
            found = await stage.user.update(found)
        await stage.user.create(config_map("x"))
        await stage.settle()
        gate.set()
        await stage.settle()
        assert whys == [("Widget added",), ("Widget updated", "ConfigMap added")]
        assert built.statistics is not None
        assert built.statistics.reasons["Widget updated"] == 1


@without_server
async def test_a_requeue_during_a_run_and_the_next_run_both_have_their_trigger(
    stage: ServerlessStage,
) -> None:
    whys: list[str] = []

    async def reconcile(request: str, ctx: Context) -> Result | None:
        whys.append(str(ctx.reconcile.why))
        await ctx.world.clock.sleep(0.5)
        return Result(requeue_after=10) if len(whys) < 3 else None

    async with stage.running(stage.controller(reconcile)):
        stage.channel.put("a")
        await stage.settle(10.3)
        stage.channel.put("a")
        await stage.settle(100)
    assert whys == ["channel", "channel", "requeue after", "requeue after"]
