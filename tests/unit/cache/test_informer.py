"""Informers: what handlers hear, when, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.cache.running import Recorder, key, names, simulate, state, truth, with_informer
from tests.unit.cache.scripted import ScriptedServer

from ostinato.api.errors import APIError, Expired, Forbidden, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.cache import (
    Added,
    Deleted,
    Entry,
    Event,
    FeedOptions,
    Informer,
    InformerStopped,
    ReflectorOptions,
    SyncError,
    Updated,
    by_field,
    filtered,
)
from ostinato.cache.metrics import version_number
from ostinato.client.list_watch import ERROR, RawEvent
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.kinds.core_v1 import Pod
from ostinato.world import Simulation

PODS = GroupResource("", "pods")
LISTING = FeedOptions(reflector=ReflectorOptions(streaming=False))


def status(error: APIError) -> RawEvent:
    return RawEvent(ERROR, msgspec.json.encode(error.to_dict()))


async def relist(simulation: Simulation, server: ScriptedServer) -> None:
    server.send(status(Expired.of("too old")))
    await simulation.clock.sleep(7)


# What handlers hear


def test_a_handler_receives_initial_objects_and_then_changes() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        informer = Informer([server], simulation)
        events = Recorder()
        informer.add_handler(events)
        informer.start()
        await informer.synced(timeout=1)
        server.put("b")
        server.put("a", spec={"nodeName": "node-1"})
        server.delete("b")
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["initial a", "added b", "updated a", "deleted b"]
        updated, deleted = events.items[2], events.items[3]
        assert isinstance(updated, Updated)
        assert (updated.old.resource_version, updated.new.resource_version) == ("101", "103")
        assert updated.object.read(Pod).spec.node_name == "node-1"  # type: ignore[union-attr]
        assert isinstance(deleted, Deleted)
        assert deleted.last_known.resource_version == "104"  # the final state, as the deletion left it
        assert {str(event.key) for event in events.items} == {"default/a", "default/b"}
        await informer.stop()

    simulate(scenario)


def test_the_store_decides_between_added_and_updated() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(0.1)
        events.clear()
        server.send(RawEvent("MODIFIED", b'{"metadata":{"name":"x","uid":"x","resourceVersion":"200"}}'))
        server.send(RawEvent("ADDED", b'{"metadata":{"name":"x","uid":"x","resourceVersion":"201"}}'))
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["added x", "updated x"]

    with_informer(scenario)


def test_the_deletion_of_an_unknown_object_is_reported() -> None:
    """Whoever created it may have missed its addition, and must notice that it is gone."""

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(0.1)
        events.clear()
        server.send(RawEvent("DELETED", b'{"metadata":{"name":"x","namespace":"default","resourceVersion":"200"}}'))
        server.delete("a")
        server.send(RawEvent("DELETED", b'{"metadata":{"name":"a","namespace":"default","resourceVersion":"201"}}'))
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["deleted x", "deleted a", "deleted a"]
        assert informer.resource_version == "201"

    with_informer(scenario)


def test_a_deleted_object_may_be_emitted_as_the_store_had_it() -> None:
    """For a server that sends no more of it than its identity."""

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        server.put("a", spec={"nodeName": "node-1"})
        await simulation.clock.sleep(0.1)
        events.clear()
        uid = server.objects[key("a")]["metadata"]["uid"]
        for name, identity in (("a", uid), ("b", "another"), ("x", "unknown")):
            metadata = {"name": name, "namespace": "default", "uid": identity, "resourceVersion": "200"}
            server.send(RawEvent("DELETED", msgspec.json.encode({"metadata": metadata})))
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["deleted a", "deleted b", "deleted x"]
        known, recreated, unknown = [each.last_known for each in events.items if isinstance(each, Deleted)]
        assert (known.uid, known.resource_version) == (uid, "200")
        assert known.dict()["spec"] == {"nodeName": "node-1"}
        assert [(each.uid, each.dict().get("spec")) for each in (recreated, unknown)] == [
            ("another", None),
            ("unknown", None),
        ]

    with_informer(scenario, FeedOptions(last_stored=True))


def test_a_relist_emits_deletions_first_with_the_last_known_state() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        seen: list[tuple[str, list[str]]] = []
        events = Recorder()

        def handler(event: Event) -> None:
            events(event)
            seen.append((event.key.name, names(informer)))

        informer.add_handler(handler)
        await simulation.clock.sleep(0.1)
        events.clear()
        seen.clear()
        server.dropping = True
        server.put("d")
        server.put("b", spec={"nodeName": "node-1"})
        server.delete("a")
        server.delete("c")
        await relist(simulation, server)
        assert events.summaries == ["gone a", "gone c", "updated b", "added d"]
        assert all(store == ["b", "d"] for _, store in seen)  # the store was swapped before anybody was told
        gone = events.items[0]
        assert isinstance(gone, Deleted)
        assert gone.last_known.resource_version == "101"

    with_informer(scenario, LISTING)


def test_a_recreated_object_is_a_deletion_and_an_addition() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(0.1)
        events.clear()
        server.dropping = True
        server.delete("a")
        server.put("a")
        await relist(simulation, server)
        assert events.summaries == ["gone a", "added a"]

    with_informer(scenario)


def test_a_relist_without_changes_emits_no_events() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events, resynced = Recorder(), Recorder()
        informer.add_handler(events)
        informer.add_handler(resynced, resync=3600)
        await simulation.clock.sleep(0.1)
        events.clear()
        resynced.clear()
        before = informer.store.get(key("a"))
        await relist(simulation, server)
        server.send(server.history[0][1])  # the same version again
        await simulation.clock.sleep(0.1)
        assert events.items == resynced.items == []
        assert informer.store.get(key("b")) is not None
        assert before is not None

    with_informer(scenario)


def test_a_list_that_changed_something_reaches_everyone() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events, resynced = Recorder(), Recorder()
        informer.add_handler(events)
        informer.add_handler(resynced, resync=3600)
        await simulation.clock.sleep(0.1)
        events.clear()
        resynced.clear()
        server.dropping = True
        server.put("b", spec={})
        await relist(simulation, server)
        assert events.summaries == resynced.summaries == ["updated b"]

    with_informer(scenario)


def test_handlers_decode_nothing_they_do_not_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        seen = []

        def handler(event: Event) -> None:
            entry = event.object
            seen.append((entry.key.name, entry.generation, dict(entry.labels), entry.is_being_deleted))

        monkeypatch.setattr(Entry, "read", lambda *_: pytest.fail("decoded"))
        informer.add_handler(handler)
        server.put("d", metadata={"generation": 2, "labels": {"app": "web"}})
        await simulation.clock.sleep(0.1)
        assert seen[-1] == ("d", 2, {"app": "web"}, False)

    with_informer(scenario)


def test_a_coroutine_handler_receives_one_event_at_a_time() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events: list[str] = []

        async def handler(event: Event) -> None:
            events.append(f"begin {event.key.name}")
            await simulation.clock.sleep(1)
            events.append(f"end {event.key.name}")

        informer.add_handler(handler)
        await simulation.clock.sleep(10)
        assert events == ["begin c", "end c", "begin b", "end b", "begin a", "end a"]

    with_informer(scenario)


def test_a_slow_handler_does_not_delay_others() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        async def slow(event: Event) -> None:
            await simulation.clock.sleep(1000)

        events = Recorder()
        registration = informer.add_handler(slow)
        informer.add_handler(events)
        for number in range(5000):
            server.put(f"pod-{number}")
        await simulation.clock.sleep(0.1)
        assert len(events.items) == 5003
        assert len(informer.store) == 5003
        assert registration.pending == 5002
        registration.remove()
        await simulation.clock.sleep(1000)

    with_informer(scenario)


def test_a_failing_handler_is_logged_and_receives_the_next_event(caplog: pytest.LogCaptureFixture) -> None:

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events, others = Recorder(), Recorder()

        def handler(event: Event) -> None:
            events(event)
            raise ZeroDivisionError

        registration = informer.add_handler(handler, name="divide")
        informer.add_handler(others)
        await registration.synced(timeout=1)
        assert len(events.items) == len(others.items) == 3

    with_informer(scenario)
    assert caplog.messages == [
        f"event handler failed handler=divide event=Added object=Pod default/{name}" for name in "cba"
    ]
    assert caplog.records[0].exc_info is not None


def test_a_handler_cancelled_by_its_awaitable_receives_the_next_event(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()

        async def handler(event: Event) -> None:
            events(event)
            connection = asyncio.get_running_loop().create_future()
            connection.cancel()
            await connection

        await informer.add_handler(handler, name="cancelled").synced(timeout=1)
        assert len(events.items) == 3

    with_informer(scenario)
    assert caplog.messages == [
        f"event handler failed handler=cancelled event=Added object=Pod default/{name}" for name in "cba"
    ]


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_informer_that_is_dropped_waits_for_no_handler(caplog: pytest.LogCaptureFixture, *, stubborn: bool) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        over = False

        async def handler(event: Event) -> None:
            while True:
                try:
                    await simulation.clock.sleep(100)
                    return
                except asyncio.CancelledError:
                    if not stubborn or over:
                        raise

        informer.add_handler(handler, name="slow")
        await informer.synced(timeout=1)
        await simulation.clock.sleep(1)
        began = simulation.clock.monotonic()
        await informer.abort()
        assert simulation.clock.monotonic() == began
        assert not informer.is_running
        over = True
        await informer.stop()
        assert simulation.clock.monotonic() - began == (100 if stubborn else 0)

    with_informer(scenario)
    assert len([text for text in caplog.messages if "does not end after cancellation" in text]) == int(stubborn)


def test_a_handler_can_have_a_predicate() -> None:
    def entry(name: str, wanted: bool) -> Any:
        labels = {"wanted": "yes"} if wanted else {}
        return {"metadata": {"labels": labels}}

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events, predicate=lambda entry: "wanted" in entry.labels)
        await simulation.clock.sleep(0.1)
        assert events.items == []
        for name, wanted in (("a", True), ("a", True), ("b", True), ("a", False), ("a", False), ("a", True)):
            server.put(name, **entry(name, wanted))
        server.delete("c")
        server.delete("b")
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["added a", "updated a", "added b", "deleted a", "added a", "deleted b"]
        left = events.items[3]
        assert isinstance(left, Deleted)
        assert left.last_known.labels == {"wanted": "yes"}  # as it last was among those that are wanted

    with_informer(scenario)


def test_predicates_are_evaluated_once_for_unchanged_objects() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        entry = informer.store.entries()[0]
        looks: list[Entry] = []

        def wanted(each: Entry) -> bool:
            looks.append(each)
            return True

        event = Updated(entry, entry)
        assert filtered(event, wanted) is event
        assert looks == [entry]
        assert filtered(Added(entry, initial=True), lambda _: False) is None

    with_informer(scenario)


# Handlers that come and go


def test_a_late_handler_receives_every_object_once() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.put("d")  # on its way
        events = Recorder()
        registration = informer.add_handler(events)
        assert not registration.has_synced
        server.put("e")
        await registration.synced(timeout=1)
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["initial c", "initial b", "initial a", "added d", "added e"]

    with_informer(scenario)


def test_a_handler_added_twice_receives_events_twice() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        first, second = informer.add_handler(events), informer.add_handler(events)
        assert first is not second
        await simulation.clock.sleep(0.1)
        assert len(events.items) == 6
        first.remove()
        server.put("d")
        await simulation.clock.sleep(0.1)
        assert len(events.items) == 7

    with_informer(scenario)


def test_a_removed_handler_receives_nothing_and_its_task_ends() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()

        async def handler(event: Event) -> None:
            events(event)
            await simulation.clock.sleep(1)

        before = len(asyncio.all_tasks())
        registration = informer.add_handler(handler, resync=2)
        await simulation.clock.sleep(0.5)
        server.put("d")
        registration.remove()
        registration.remove()
        await simulation.clock.sleep(10)
        assert events.summaries == ["initial c"]
        assert len(asyncio.all_tasks()) == before

    with_informer(scenario)


def test_a_handler_of_another_informer_is_not_removed() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        other = Informer([server], simulation)
        with pytest.raises(ValueError, match="was not added to the informer of pods"):
            other.remove_handler(informer.add_handler(Recorder()))

    with_informer(scenario)


def test_a_handler_can_be_removed_from_inside_a_handler() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()

        def handler(event: Event) -> None:
            events(event)
            registration.remove()

        registration = informer.add_handler(handler)
        await simulation.clock.sleep(0.1)
        assert len(events.items) == 1

    with_informer(scenario)


# Syncing


def test_an_empty_collection_is_synced_after_its_list_was_processed_not_before() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        informer = Informer([server], simulation)
        informer.start()
        assert not informer.has_synced
        await informer.synced(timeout=1)
        assert informer.has_synced
        assert len(informer.store) == 0
        await informer.stop()

    simulate(scenario)


def test_a_handler_is_synced_when_it_has_returned_from_the_last_initial_object() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.put("b")
        informer = Informer([server], simulation)

        async def slow(event: Event) -> None:
            await simulation.clock.sleep(10)

        registration = informer.add_handler(slow)
        informer.start()
        await informer.synced(timeout=1)
        assert not registration.has_synced
        with pytest.raises(SyncError, match=r"handler .*slow: not synced after 5 s, 1 events pending"):
            await registration.synced(timeout=5)
        await registration.synced(timeout=16)
        assert registration.has_synced
        assert simulation.clock.monotonic() >= 20
        await informer.stop()

    simulate(scenario)


def test_objects_added_after_the_first_list_are_not_initial() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(0.1)
        events.clear()
        server.dropping = True
        server.put("d")
        await relist(simulation, server)
        assert events.summaries == ["added d"]

    with_informer(scenario)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Forbidden.of(PODS, "", "no"), "the server rejects the list: pods: pods is forbidden: no"),
        (NotFound.of(PODS, "x"), 'the server rejects the list: pods: pods "x" not found'),
    ],
    ids=repr,
)
def test_a_rejected_list_fails_the_wait_within_seconds_and_is_retried(error: APIError, words: str) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.list_errors += [error] * 4
        informer = Informer([server], simulation, LISTING)
        informer.start()
        began = simulation.clock.monotonic()
        with pytest.raises(SyncError) as caught:
            await informer.synced()
        assert str(caught.value) == words
        assert caught.value.cause is error
        assert simulation.clock.monotonic() - began == pytest.approx(5)
        with pytest.raises(SyncError):  # known by now
            await informer.synced()
        assert simulation.clock.monotonic() - began == pytest.approx(5)
        await simulation.clock.sleep(60)
        await informer.synced()
        await informer.stop()

    simulate(scenario)


def test_a_refusal_that_passes_within_seconds_is_nothing() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.list_errors += [Forbidden.of(PODS, "", "no")] * 2
        informer = Informer([server], simulation, LISTING)
        informer.start()
        await informer.synced(timeout=10)
        await informer.stop()

    simulate(scenario)


def test_a_server_that_does_not_answer_is_waited_for_until_the_time_is_up() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.watch_errors += [ConnectionLost("connection refused by 10.0.0.1")] * 100
        informer = Informer([server], simulation)
        informer.start()
        began = simulation.clock.monotonic()
        with pytest.raises(SyncError, match=r"not synced after 60 s: pods: connection refused by 10\.0\.0\.1"):
            await informer.synced(timeout=60)
        assert simulation.clock.monotonic() - began == pytest.approx(60)
        await informer.stop()

    simulate(scenario)


def test_a_refusal_after_which_the_server_is_silent_is_not_a_refusal_any_more() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.list_errors += [Forbidden.of(PODS, "", "no"), *[ConnectionLost("refused")] * 100]
        informer = Informer([server], simulation, LISTING)
        informer.start()
        with pytest.raises(SyncError, match="not synced after 20 s"):
            await informer.synced(timeout=20)
        await informer.stop()

    simulate(scenario)


def test_waiting_for_a_stopped_informer_is_an_error() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.pause()
        informer = Informer([server], simulation)
        with pytest.raises(SyncError, match="the informer is not started: pods"):
            await informer.synced()
        informer.start()
        waiter = asyncio.ensure_future(informer.synced())
        await simulation.clock.sleep(1)
        await informer.stop()
        with pytest.raises(SyncError, match="the informer is stopped: pods"):
            await waiter

    simulate(scenario)


def test_a_failed_informer_raises_its_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        informer = Informer([server], simulation)
        informer.feeds[0].store.replace = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        informer.start()
        with pytest.raises(SyncError, match="the informer is broken"):
            await informer.synced(timeout=10)
        await informer.stop()

    simulate(scenario)
    assert "informer failed collection=pods" in caplog.text


# Resyncs


def test_a_resync_replays_all_objects_without_a_request() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events, resync=10)
        await simulation.clock.sleep(9)
        events.clear()
        asked = len(server.asked)
        await simulation.clock.sleep(2)
        assert events.summaries == ["resync c", "resync b", "resync a"]
        assert len(server.asked) == asked
        assert len(server.lists) == 0

    with_informer(scenario)


def test_each_handler_has_its_own_period() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        never, two, three = Recorder(), Recorder(), Recorder()
        for events, period in ((never, 0), (two, 2), (three, 3)):
            informer.add_handler(events, resync=period)
        await simulation.clock.sleep(0.5)
        for events in (never, two, three):
            events.clear()
        counts = []
        for _ in range(6):
            await simulation.clock.sleep(1)
            counts.append((len(never.items) // 3, len(two.items) // 3, len(three.items) // 3))
        assert counts == [(0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 2, 1), (0, 2, 1), (0, 3, 2)]

    with_informer(scenario)


def test_a_period_is_at_least_a_second() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events, resync=0.001)
        await simulation.clock.sleep(10.5)
        assert len(events.items) == 3 + 10 * 3

    with_informer(scenario)


def test_a_resync_never_overtakes_a_change() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events, resync=1)
        for number in range(200):
            server.put("a", spec={"number": number})
            await simulation.clock.sleep(0.05)
        versions = [int(event.object.resource_version) for event in events.items if event.key.name == "a"]
        assert versions == sorted(versions)
        assert any(isinstance(event, Updated) and event.is_resync for event in events.items)

    with_informer(scenario)


def test_a_handler_that_is_slower_than_its_period_is_not_buried_in_resyncs() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        async def slow(event: Event) -> None:
            await simulation.clock.sleep(10)

        registration = informer.add_handler(slow, resync=1)
        await simulation.clock.sleep(1000)
        assert registration.pending <= 7
        registration.remove()

    with_informer(scenario)


def test_resyncs_end_with_the_informer() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        informer = Informer([server], simulation)
        events = Recorder()
        informer.add_handler(events, resync=1)
        informer.start()
        await informer.synced(timeout=1)
        await informer.stop()
        await simulation.clock.sleep(10)
        assert events.items == []

    simulate(scenario)


def test_nothing_is_resynced_before_the_first_list() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.pause()
        informer = Informer([server], simulation)
        events = Recorder()
        informer.add_handler(events, resync=1)
        informer.start()
        await simulation.clock.sleep(5.5)
        server.resume()
        await simulation.clock.sleep(0.1)
        assert events.summaries == ["initial a"]
        await informer.stop()

    simulate(scenario)


# Starting and stopping


def test_starting_twice_is_starting_once() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        informer.start()
        await simulation.clock.sleep(1)
        assert len(server.watches) == 1

    with_informer(scenario)


def test_a_stopped_informer_only_serves_its_store() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        informer = Informer([server], simulation)
        informer.start()
        await informer.synced(timeout=1)
        registration = informer.add_handler(Recorder())
        await informer.stop()
        await informer.stop()
        assert informer.has_stopped
        for refused in (
            lambda: informer.add_handler(Recorder()),
            lambda: informer.add_index(by_field("spec.nodeName")),
            informer.start,
        ):
            with pytest.raises(InformerStopped, match="the informer of pods has stopped"):
                refused()
        registration.remove()
        assert names(informer) == ["a"]

    simulate(scenario)


def test_when_stop_returns_nothing_runs_any_more() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        before = asyncio.all_tasks()
        informer = Informer([server], simulation)
        events: list[str] = []

        async def slow(event: Event) -> None:
            events.append("begin")
            await simulation.clock.sleep(5)
            events.append("end")

        informer.add_handler(slow)
        informer.start()
        await informer.synced(timeout=1)
        await simulation.clock.sleep(1)
        server.put("b")
        await simulation.clock.sleep(0)
        await informer.stop()
        assert events == ["begin", "end"]  # the event that was being events was events to its end, the next was dropped
        assert asyncio.all_tasks() == before
        assert server.streams == []

    simulate(scenario)


def test_an_informer_can_be_stopped_before_it_was_started_and_from_a_handler() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        await Informer([server], simulation).stop()
        server.put("a")
        informer = Informer([server], simulation)
        done: list[bool] = []

        async def handler(event: Event) -> None:
            await informer.stop()
            done.append(True)

        informer.add_handler(handler)
        informer.start()
        await simulation.clock.sleep(1)
        assert done == [True]

    simulate(scenario)


def test_a_handler_of_an_informer_that_is_not_started_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        informer = Informer([server], simulation)
        informer.add_handler(Recorder(), name="forgotten")
        await simulation.clock.sleep(31)
        assert caplog.messages == ["informer not started, handler gets no events handler=forgotten collection=pods"]
        informer.start()
        await informer.synced(timeout=1)
        await informer.stop()
        started = Informer([server], simulation)
        started.add_handler(Recorder())
        started.start()
        await simulation.clock.sleep(60)
        await started.stop()
        assert len(caplog.messages) == 1

    simulate(scenario)


def test_informers_and_handlers_can_be_made_before_there_is_a_loop() -> None:
    simulation = Simulation(1)
    server = ScriptedServer(simulation)
    informer = Informer([server], simulation)
    events = Recorder()
    informer.add_handler(events)
    server.put("a")

    async def main() -> None:
        informer.start()
        await informer.synced(timeout=1)
        await simulation.clock.sleep(0)
        await informer.stop()

    simulation.run(main())
    assert events.summaries == ["initial a"]


# Several namespaces


def test_an_informer_of_several_namespaces_is_synced_when_all_are() -> None:
    async def scenario(simulation: Simulation, one: ScriptedServer) -> None:
        two = ScriptedServer(simulation, namespace="two")
        one.namespace = "one"
        one.put("a")
        two.put("b")
        two.pause()
        informer = Informer([one, two], simulation, FeedOptions(indexes=(by_field("metadata.name"),)))
        events = Recorder()
        registration = informer.add_handler(events)
        informer.start()
        with pytest.raises(SyncError, match="not synced after 5 s: pods in namespace two"):
            await informer.synced(timeout=5)
        assert names(informer) == ["a"]
        assert not registration.has_synced
        late = informer.add_handler(Recorder())
        two.resume()
        await informer.synced(timeout=5)
        await registration.synced(timeout=5)
        await late.synced(timeout=5)
        assert events.summaries == ["initial a", "initial b"]
        assert informer.namespaces == ("one", "two")
        assert names(informer) == ["a", "b"]
        assert [entry.key.namespace for entry in informer.store.by_index("metadata.name", "b")] == ["two"]
        one.dropping = True
        one.delete("a")
        await relist(simulation, one)
        assert names(informer) == ["b"]  # a list of one namespace says nothing of the other
        assert informer.feed_of("one") is informer.feeds[0]
        assert informer.feed_of("three") is None
        await informer.stop()

    simulate(scenario)


def test_an_informer_needs_collections_each_in_a_namespace_of_its_own() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        with pytest.raises(ValueError, match="needs at least one source"):
            Informer([], simulation)
        with pytest.raises(ValueError, match="duplicate namespace in pods"):
            Informer([server, server], simulation)
        one = ScriptedServer(simulation, namespace="default")
        with pytest.raises(ValueError, match="all namespaces and single ones"):
            Informer([server, one], simulation)

    simulate(scenario)


def test_an_index_can_be_added_while_it_runs() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        informer.add_index(by_field("spec.nodeName"))
        server.put("d", spec={"nodeName": "node-1"})
        await simulation.clock.sleep(0.1)
        assert informer.store.index_keys("spec.nodeName", "node-1") == [key("d")]
        with pytest.raises(ValueError, match="already"):
            informer.add_index(by_field("spec.nodeName"))

    with_informer(scenario)


# Metrics


class Observed:
    def __init__(self) -> None:
        self.names: set[str] = set()

    def observe(self, name: str, value: float, labels: Any) -> None:
        assert labels == {"name": "manager", "group": "", "version": "v1", "resource": "pods"}
        self.names.add(name)


def test_metrics_have_the_names_of_client_go() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        observed = Observed()
        server.version = 12345678901234567890
        server.put("a")
        informer = Informer([server], simulation, FeedOptions(metrics=observed, name="manager"))
        informer.start()
        await informer.synced(timeout=1)
        gauges = {gauge.name: gauge.value for gauge in informer.gauges()}
        assert gauges.pop("ostinato_cache_objects") == 1
        assert gauges == {"informer_queued_items": 0, "informer_store_resource_version": 678901234567891}
        assert observed.names == {"informer_processing_latency_seconds"}
        await informer.stop()

    simulate(scenario)
    assert version_number("") == 0
    assert version_number("x") == 0


# Transforms and metadata


def test_the_store_has_the_result_of_the_transform() -> None:
    calls: list[str] = []

    def slim(pod: dict[str, Any]) -> dict[str, Any]:
        calls.append(pod["metadata"]["name"])
        return {**pod, "spec": {}}

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.put("d", spec={"nodeName": "x"})
        informer.add_handler(Recorder(), resync=1)
        await simulation.clock.sleep(3)
        server.delete("d")
        await simulation.clock.sleep(0.1)
        assert all(entry.dict()["spec"] == {} for entry in informer.store.entries())
        assert calls == ["c", "b", "a", "d", "d"]  # once each time that the server tells of it, and on no resync

    with_informer(scenario, FeedOptions(transform=slim))


def test_the_cache_equals_the_server_after_all_this() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        rng = simulation.rng.fork("changes")
        for _ in range(300):
            name = rng.choice("abcdefgh")
            if key(name) in server.objects and rng.random() < 0.4:
                server.delete(name)
            else:
                server.put(name, spec={"x": rng.random()})
            if rng.random() < 0.3:
                await simulation.clock.sleep(rng.random())
        await simulation.clock.sleep(1)
        assert state(informer) == truth(server)

    with_informer(scenario)
