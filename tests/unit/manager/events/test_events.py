from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from tests.stage.election import ElectionStage, staged
from tests.unit.manager.events.published import PublishedEvents

from ostinato.api.meta import ObjectMeta
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.kinds.core_v1 import ConfigMap, Node
from ostinato.kinds.core_v1 import Event as CoreEvent
from ostinato.kinds.events_v1 import Event
from ostinato.manager.events import events
from ostinato.manager.events.correlation import MAX_REMEMBERED, SpamFilter
from ostinato.manager.events.events import Events
from ostinato.manager.events.series import SeriesCorrelator
from ostinato.world import Simulation

A = ConfigMap(metadata=ObjectMeta(name="a", namespace="default", uid="u1"))


@staged
async def test_an_event_has_reporter_action_and_object(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    node = Node(metadata=ObjectMeta(name="n", uid="u2"))
    published.recorder.event(A, "Scaled", "3 now", kind="Warning", action="Scale", related=node)
    [event] = await published.settled()
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "Scaled", "Scale", "3 now")
    assert event.regarding is not None
    assert event.related is not None
    about = event.regarding
    assert (about.kind, about.api_version, about.namespace, about.name, about.uid) == (
        "ConfigMap",
        "v1",
        "default",
        "a",
        "u1",
    )
    assert (event.related.kind, event.related.name, event.related.namespace) == ("Node", "n", None)
    assert event.reporting_controller == "widgets"
    assert str(event.reporting_instance).startswith("widgets-")
    assert event.series is None
    assert event.metadata.namespace == "default"
    assert event.metadata.name.startswith("a.")
    await published.events.stop()


@staged
async def test_events_of_objects_without_a_namespace_are_in_the_default_one(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "Slow", "x")
    [event] = await published.settled()
    assert event.metadata.namespace == "default"
    assert event.action == "Slow", "the action defaults to the reason"
    await published.events.stop()


@staged
async def test_events_of_two_processes_at_the_same_time_are_distinct(stage: ElectionStage) -> None:
    one, other = PublishedEvents(stage, Event), PublishedEvents(stage, Event)
    one.recorder.event(A, "Scaled", "x")
    other.recorder.event(A, "Refused", "y")
    assert {event.reason for event in await one.settled()} == {"Scaled", "Refused"}
    await one.events.stop()
    await other.events.stop()


@staged
async def test_the_second_makes_a_series_and_further_ones_are_only_counted(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for number in range(5):
        published.recorder.event(A, "Scaled", f"{number} now")
        await stage.clock.sleep(1)
    [event] = await published.settled()
    assert event.series is not None
    assert event.series.count == 2
    assert event.note == "0 now"
    assert stage.transport.short_calls.count("POST events") == 1
    [event] = await published.settled(720)
    assert event.series is not None
    assert event.series.count == 5, "published when the series is over"
    published.recorder.event(A, "Scaled", "again")
    assert len(await published.settled()) == 2, "a new one begins"
    await published.events.stop()


@staged
async def test_a_long_series_is_written_every_half_hour(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for _ in range(40):
        published.recorder.event(A, "Scaled", "x")
        await stage.clock.sleep(60)
    [event] = await published.settled()
    assert event.series is not None
    assert 25 <= event.series.count <= 36
    await published.events.stop()


@staged
async def test_a_series_whose_event_was_deleted_is_recreated(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event(A, "Scaled", "x")
    [event] = await published.settled()
    await stage.client.delete(event)
    published.recorder.event(A, "Scaled", "x")
    [event] = await published.settled()
    assert event.series is not None
    assert event.series.count == 2
    await published.events.stop()


@staged
async def test_spam_about_one_object_is_limited_and_others_are_recorded(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for number in range(100):
        published.recorder.event(A, f"Reason{number}", "x")
    published.recorder.event(ConfigMap(metadata=ObjectMeta(name="b", namespace="default")), "Other", "x")
    events = await published.settled()
    assert len(events) == 26
    await stage.clock.sleep(301)
    published.recorder.event(A, "Later", "x")
    assert len(await published.settled()) == 27
    await published.events.stop()


@staged
async def test_queued_events_and_series_counts_are_written_on_shutdown(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    for _ in range(3):
        published.recorder.event(A, "Scaled", "x")
    await stage.clock.sleep(1)
    published.recorder.event(A, "Scaled", "x")
    published.recorder.event(A, "Stopped", "x")
    await published.events.stop()
    counts = {event.reason: event.series.count if event.series else 1 for event in await published.settled()}
    assert counts == {"Scaled": 4, "Stopped": 1}
    published.recorder.event(A, "TooLate", "x")
    await published.events.stop()
    assert len(await published.settled()) == 2


@staged
async def test_events_recorded_before_the_start_are_not_an_error(stage: ElectionStage) -> None:
    events = Events(stage.client, stage.world)
    events.recorder("x").event(A, "Scaled", "x")
    await events.stop()


@staged
async def test_an_unreachable_server_is_retried_twelve_times(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    times: list[float] = []

    def cut(request: Request) -> None:
        times.append(stage.clock.monotonic())
        raise ConnectionLost("cut off")

    stage.transport.before = cut
    published.recorder.event(A, "Scaled", "x")
    await stage.clock.sleep(200)
    assert len(times) == 12
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(10 <= gap <= 12.5 for gap in gaps)
    stage.transport.before = lambda _: None
    published.recorder.event(A, "Scaled", "y")
    [event] = await published.settled()
    assert event.note == "y", "what was given up does not count"
    await published.events.stop()


@staged
async def test_an_event_in_flight_on_shutdown_is_written_again(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    fails = [ConnectionLost("cut off")]

    def once(request: Request) -> None:
        if fails:
            raise fails.pop()

    stage.transport.before = once
    published.recorder.event(A, "Scaled", "x")
    await stage.clock.sleep(1)
    await published.events.stop()
    [event] = await published.settled()
    assert event.series is None


@staged
async def test_a_lost_answer_makes_no_second_event(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    fails = [ConnectionLost("lost")]

    def once(request: Request) -> None:
        if fails:
            raise fails.pop()

    stage.transport.after = once
    published.recorder.event(A, "Scaled", "x")
    assert len(await published.settled(30)) == 1
    assert stage.transport.short_calls.count("POST events") == 2
    await published.events.stop()


def test_an_event_without_an_object_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        published = PublishedEvents(stage, Event)
        published.recorder.event("a", "Scaled", "x")  # type: ignore[arg-type]
        published.recorder.event(ConfigMap, "Scaled", "x")  # type: ignore[arg-type]
        published.recorder.event(A, "Scaled", "x", kind="warning")  # type: ignore[typeddict-item]
        assert await published.settled() == []
        await published.events.stop()

    play()
    assert [record.exc_info for record in caplog.records] == [None, None, None]
    assert caplog.messages[0] == "event dropped: the subject is not an object event=Scaled subject=\"the text 'a'\""
    assert (
        caplog.messages[1] == "event dropped: the subject is not an object event=Scaled subject='the class ConfigMap'"
    )
    assert caplog.messages[2].startswith("event dropped: the type must be Normal or Warning event=")


@staged
async def test_the_end_does_not_wait_for_a_slow_server(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    stage.transport.before = lambda _: stage.clock.sleep(100)
    published.recorder.event(A, "Scaled", "x")
    await stage.clock.sleep(1)
    began = stage.clock.monotonic()
    await published.events.stop()
    assert stage.clock.monotonic() - began == 5
    stage.transport.before = lambda _: None


@staged
async def test_a_rejected_event_is_dropped_and_the_next_is_written(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    published.recorder.event(ConfigMap(metadata=ObjectMeta(name="a", namespace="missing")), "Scaled", "x")
    published.recorder.event(A, "Scaled", "x")
    [event] = await published.settled(60)
    assert event.metadata.namespace == "default"
    assert stage.transport.short_calls.count("POST events") == 2, "a refusal is final"
    await published.events.stop()


def scaled(published: PublishedEvents[Event], times: int) -> None:
    for number in range(times):
        published.recorder.event(ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace="default")), "Scaled", "x")


@staged
async def test_a_burst_of_events_is_written_concurrently_without_blocking(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    stage.transport.before = lambda _: stage.clock.sleep(0.01)
    began = stage.clock.monotonic()
    scaled(published, 1500)
    assert stage.clock.monotonic() == began
    await stage.clock.sleep(2)
    assert stage.transport.short_calls.count("POST events") == 1500, "one by one they take 15 seconds"
    stage.transport.before = lambda _: None
    assert len(await published.settled()) == 1500
    await published.events.stop()


def test_too_many_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_QUEUED", 100)

    @staged
    async def play(stage: ElectionStage) -> None:
        published = PublishedEvents(stage, Event)
        scaled(published, 150)
        assert len(await published.settled(5)) == 100
        await published.events.stop()

    play()


@staged
async def test_an_event_repeated_during_its_write_is_written_after_it(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    recorder = published.events.core_recorder("widgets")
    under_way: set[str] = set()

    async def slow(request: Request) -> None:
        name = request.path.rpartition("/")[2] if request.method == "PATCH" else "new"
        assert name not in under_way
        under_way.add(name)
        await stage.clock.sleep(1)
        under_way.remove(name)

    stage.transport.before = slow
    for _ in range(5):
        recorder.event(A, "Scaled", "x")
        await stage.clock.sleep(0.3)
    stage.transport.before = lambda _: None
    await stage.clock.sleep(5)
    [event] = [event async for event in stage.client.list(CoreEvent)]
    assert event.count == 5
    assert stage.transport.short_calls.count("POST events") == 1
    await published.events.stop()


@pytest.mark.parametrize(
    "about", [None, 3, {}, {"kind": "Pod"}, {"apiVersion": "a/b/c", "kind": "X", "metadata": {"name": "a"}}]
)
def test_recording_never_raises(about: Any, caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        published = PublishedEvents(stage, Event)
        published.recorder.event(about, "Scaled", "x")
        published.recorder.event(A, "Scaled", "x", kind="Odd")
        assert await published.settled() == []
        await published.events.stop()

    play()
    assert "type=Odd" in caplog.text
    assert caplog.records[0].levelno == logging.ERROR


def test_an_event_that_cannot_be_written_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        published = PublishedEvents(stage, Event)
        published.recorder.event(A, "Output", "caf\udce9 \N{SNOWMAN}", action="\ud83d")
        broken = ConfigMap(metadata=ObjectMeta(name="\ud83d", namespace="default"))
        published.recorder.event(broken, "Broken", "x")
        published.recorder.event(A, "Fine", "x")
        assert {event.reason: event.note for event in await published.settled()} == {
            "Output": "caf? \N{SNOWMAN}",
            "Fine": "x",
        }
        published.recorder.event(A, "Later", "x")
        assert len(await published.settled()) == 3
        await published.events.stop()

    play()
    assert caplog.messages == [r"event cannot be encoded, dropped event='Broken about ConfigMap default/\ud83d'"]


def test_an_unknown_option_is_logged_and_the_event_recorded(caplog: pytest.LogCaptureFixture) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        published = PublishedEvents(stage, Event)
        published.recorder.event(A, "Refused", "no", type="Warning")  # type: ignore[call-arg]
        assert [event.type for event in await published.settled()] == ["Normal"]
        await published.events.stop()

    play()
    assert caplog.messages == ["unknown event option ignored event=Refused option=type options=kind, action, related"]


@staged
async def test_long_texts_and_odd_names_are_made_to_fit(stage: ElectionStage) -> None:
    published = PublishedEvents(stage, Event)
    recorder = published.events.recorder("my controllers/of many: things" + "x" * 100)
    recorder.event(A, "R" * 200, "é" * 2000, action="A" * 200)
    odd = {"apiVersion": "v1", "kind": "Odd", "metadata": {"name": "Not_A:Name", "namespace": "default"}}
    recorder.event(odd, "Odd", "x")
    events = {event.reason: event for event in await published.settled()}
    assert set(events) == {"R" * 125 + "...", "Odd"}
    assert len(str(events["R" * 125 + "..."].note).encode()) <= 1024
    assert len(events["Odd"].metadata.name) == 36, "a uid"
    assert events["Odd"].reporting_controller == ("my-controllers-of-many--things" + "x" * 100)[:63]
    assert published.events.recorder(":")._controller == "ostinato"
    await published.events.stop()


def test_the_memory_of_the_recorder_is_bounded() -> None:
    world = Simulation(1)
    book, spam = SeriesCorrelator(world.clock), SpamFilter(world.clock)
    for number in range(MAX_REMEMBERED + 10):
        spam.admits(number)
        book.note(Event(event_time=world.clock.now(), reporting_controller=str(number)))  # type: ignore[arg-type]
    assert len(book) == MAX_REMEMBERED
    assert len(spam._buckets) == MAX_REMEMBERED
