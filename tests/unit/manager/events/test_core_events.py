"""Events of the core group, as kube-controller-manager and kubelets write them; each group seen through the other."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.stage.election import ElectionStage, staged
from tests.stage.server import started_server
from tests.unit.manager.events.published import PublishedEvents

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Unstructured
from ostinato.kinds import events_v1
from ostinato.kinds.core_v1 import ConfigMap, Event, Namespace, Node, ObjectReference
from ostinato.manager.events.correlation import MAX_REMEMBERED
from ostinato.manager.events.counts import CountCorrelator
from ostinato.manager.events.events import Events
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation, World

A = ConfigMap(metadata=ObjectMeta(name="a", namespace="default", uid="u1", resource_version="7"))


@staged
async def test_an_event_has_all_that_describe_shows(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event(A, "ScalingReplicaSet", "Scaled up replica set a-1 from 0 to 3", kind="Warning")
    [event] = await published.settled()
    about = event.involved_object
    assert (about.api_version, about.kind, about.namespace, about.name, about.uid, about.resource_version) == (
        "v1",
        "ConfigMap",
        "default",
        "a",
        "u1",
        "7",
    )
    assert (event.type, event.reason, event.count) == ("Warning", "ScalingReplicaSet", 1)
    assert event.message == "Scaled up replica set a-1 from 0 to 3"
    assert event.source is not None
    assert (event.source.component, event.source.host) == ("deployment-controller", None)
    assert (event.reporting_component, event.reporting_instance) == ("deployment-controller", "")
    assert event.first_timestamp == event.last_timestamp
    assert (event.event_time, event.action, event.series) == (None, None, None)
    assert event.metadata.name.startswith("a.")
    await published.events.stop()


@staged
async def test_different_words_are_different_events_and_the_same_words_are_counted(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for message in ("from 0 to 1", "from 1 to 2", "from 0 to 1", "from 0 to 1"):
        published.recorder.event(A, "ScalingReplicaSet", message)
        await stage.clock.sleep(10)
    events = {str(event.message): event for event in await published.settled()}
    assert {message: event.count for message, event in events.items()} == {"from 0 to 1": 3, "from 1 to 2": 1}
    again = events["from 0 to 1"]
    assert again.first_timestamp is not None
    assert again.last_timestamp is not None
    assert (again.last_timestamp - again.first_timestamp).total_seconds() == 30
    assert [each for each in stage.transport.short_calls if each.startswith("POST")] == ["POST events"] * 2
    await published.events.stop()


@staged
async def test_from_the_tenth_message_of_one_reason_on_they_are_combined(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for number in range(14):
        published.recorder.event(A, "Failed", f"attempt {number}")
    published.recorder.event(A, "Failed", "attempt 3")
    published.recorder.event(A, "Other", "x")
    counts = {event.message: event.count for event in await published.settled()}
    assert counts.pop("(combined from similar events): attempt 13") == 5
    assert counts.pop("x") == 1
    assert counts == {f"attempt {number}": 2 if number == 3 else 1 for number in range(9)}
    await stage.clock.sleep(601)
    published.recorder.event(A, "Failed", "attempt 99")
    assert "attempt 99" in [event.message for event in await published.settled()], (
        "the limit is reset after ten minutes"
    )
    await published.events.stop()


@staged
async def test_spam_is_not_written_but_counted(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for _ in range(40):
        published.recorder.event(A, "Failed", "x")
        await stage.clock.sleep(0.1)
    published.recorder.event(A, "Failed", "x", kind="Warning")
    events = {event.type: event for event in await published.settled()}
    assert events["Normal"].count == 25
    assert events["Warning"].count == 1, "warnings have a limit of their own"
    await stage.clock.sleep(301)
    published.recorder.event(A, "Failed", "x")
    assert {event.type: event.count for event in await published.settled()}["Normal"] == 41
    await published.events.stop()


@staged
async def test_an_event_that_is_gone_is_made_again_with_its_count(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event(A, "Failed", "x")
    [event] = await published.settled()
    await stage.client.delete(event)
    published.recorder.event(A, "Failed", "x")
    [event] = await published.settled()
    assert event.count == 2
    await published.events.stop()


@staged
async def test_a_reference_may_name_a_part_of_an_object_and_a_host(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    kubelet = published.events.core_recorder("kubelet", host="node-1")
    part = ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name="p", field_path="spec.containers{main}"
    )
    kubelet.event(part, "Started", "Container started", related=Node(metadata=ObjectMeta(name="node-1")))
    kubelet.event(part, "Started", "x", kind="Odd")
    [event] = await published.settled()
    assert event.involved_object.field_path == "spec.containers{main}"
    assert event.source is not None
    assert (event.source.component, event.source.host, event.reporting_instance) == ("kubelet", "node-1", "node-1")
    assert event.related is not None
    assert event.related.name == "node-1"
    await published.events.stop()


@staged
async def test_events_of_both_groups_are_seen_through_the_other(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event(A, "Old", "old words")
    for _ in range(2):
        published.events.recorder("scheduler").event(A, "New", "new words", action="Binding", kind="Warning")
    core = {event.reason: event for event in await published.settled()}
    new = {event.reason: event async for event in stage.client.list(events_v1.Event)}
    seen = core["New"]
    assert (seen.involved_object.name, seen.message, seen.reporting_component) == ("a", "new words", "scheduler")
    assert (seen.type, seen.action) == ("Warning", "Binding")
    assert seen.series is not None
    assert seen.series.count == 2
    old = new["Old"]
    assert old.regarding is not None
    assert old.deprecated_source is not None
    assert (old.regarding.name, old.note, old.deprecated_count) == ("a", "old words", 1)
    assert (old.deprecated_source.component, old.reporting_controller) == ("deployment-controller",) * 2
    for source, reason in (("deployment-controller", "Old"), ("scheduler", "New")):
        found = [event.reason async for event in stage.client.list(Event, fields={"source": source})]
        assert found == [reason], "kubectl get events --field-selector"
    uid = [event.reason async for event in stage.client.list(Event, fields={"involvedObject.uid": "u1"})]
    assert sorted(map(str, uid)) == ["New", "Old"], "as kubectl describe asks"
    await published.events.stop()


def test_events_in_a_terminating_namespace_are_dropped_silently(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        await stage.client.create(Namespace(metadata=ObjectMeta(name="going")))
        await stage.client.delete(Namespace, "going")
        published = PublishedEvents(stage, Event)
        lost = ConfigMap(metadata=ObjectMeta(name="a", namespace="going"))
        published.recorder.event(lost, "Killing", "x")
        published.events.recorder("widgets").event(lost, "Killing", "x")
        assert [event for event in await published.settled() if event.metadata.namespace == "going"] == []
        missing = ConfigMap(metadata=ObjectMeta(name="a", namespace="missing"))
        published.recorder.event(missing, "Killing", "x")
        await published.settled()
        await published.events.stop()

    with caplog.at_level(logging.DEBUG, "ostinato.manager"):
        play()
    rejected = [record for record in caplog.records if "server rejected event" in record.getMessage()]
    assert [(record.levelno, "missing" in record.getMessage()) for record in rejected] == [
        (logging.DEBUG, False),
        (logging.DEBUG, False),
        (logging.ERROR, True),
    ]


@staged
async def test_spam_is_counted_and_does_not_delay_other_events(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    stage.transport.before = lambda _: stage.clock.sleep(0.1)  # a slow server
    published.recorder.event(A, "First", "x")
    await stage.clock.sleep(0.01)
    for _ in range(10):
        for _ in range(200):
            published.recorder.event(A, "Failed", "again and again")
        await stage.clock.sleep(0.15)
    published.recorder.event(Node(metadata=ObjectMeta(name="n")), "Other", "x")
    stage.transport.before = lambda _: None
    counts = {event.reason: event.count for event in await published.settled()}
    assert counts == {"First": 1, "Failed": 200, "Other": 1}, "the rest was too much, and kept nobody else away"
    written = [asked for asked in stage.transport.short_calls if not asked.startswith("GET")]
    assert len(written) <= 4, "24 within the limit took no 24 requests"
    await published.events.stop()


def test_events_may_come_from_threads(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        world = World.real()
        async with started_server(world) as server:
            client = Client(InProcessTransport(server), world=world, namespace="default")
            events = Events(client, world)
            events.start()
            recorder = events.core_recorder("worker")
            async with client, asyncio.timeout(10):
                watching = client.watch(Event, namespace="default")
                await world.executor.run(lambda: recorder.event(A, "Worked", "in a thread"))
                async for event in watching:
                    if event.object.reason == "Worked":
                        break
            await events.stop()
        world.executor.close()

    asyncio.run(play(), debug=True)
    assert "dropped" not in caplog.text


def test_the_memory_of_the_recorder_is_bounded() -> None:
    world = Simulation(1)
    book = CountCorrelator(world.clock)
    for number in range(MAX_REMEMBERED + 10):
        book.note(Event(involved_object=ObjectReference(name=str(number)), count=1))
    assert len(book) == MAX_REMEMBERED
    assert len(book._similar) == MAX_REMEMBERED


@staged
async def test_the_group_of_events_is_an_option_of_the_manager(stage: ElectionStage) -> None:
    from ostinato.controllers import Dependencies, Task
    from ostinato.manager import Manager, Purpose, ReportingOptions

    def connect(purpose: Purpose) -> Any:
        return InProcessTransport(stage.server, deadline=purpose.deadline)

    async def work(dependencies: Dependencies) -> None:
        dependencies.recorder.event(A, "Worked", "x")

    core = ReportingOptions(core_events=True)
    manager = Manager(connect=connect, world=stage.world, reporting=core).add(Task("worker", work))
    manager.recorder("one").event(A, "One", "x")
    manager.recorder("two", core=False).event(A, "Two", "x")

    serving = asyncio.create_task(manager.serve())
    await stage.clock.sleep(1)
    manager.stop()
    await serving
    assert [task.get_name() for task in asyncio.all_tasks() if "events" in task.get_name()] == []
    raw = Unstructured.of("v1", "Event")
    found = {event["reason"]: event async for event in stage.client.list(raw)}
    assert {reason: event["source"].get("component") for reason, event in found.items()} == {
        "Worked": "worker",
        "One": "one",
        "Two": None,
    }
