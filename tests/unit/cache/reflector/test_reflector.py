"""What the reflector asks of a server, and what it makes of the answers."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.unit.cache.running import Recorder, names, simulate, state, truth, with_informer
from tests.unit.cache.scripted import ScriptedServer

from ostinato.api.errors import (
    APIError,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from ostinato.api.gvk import GroupKind, GroupResource
from ostinato.cache import FeedOptions, Informer, ReflectorOptions
from ostinato.cache.reflector.failures import is_too_large
from ostinato.client.list_watch import BOOKMARK, ERROR, ListOptions, RawEvent, WatchOptions
from ostinato.client.transport.backoff import Backoff
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut
from ostinato.world import Simulation

LISTING = FeedOptions(reflector=ReflectorOptions(streaming=False))
PODS = GroupResource("", "pods")
INVALID = Invalid.of(GroupKind("", "ListOptions"), "", [])


def status(error: APIError) -> RawEvent:
    return RawEvent(ERROR, msgspec.json.encode(error.to_dict()))


async def started(simulation: Simulation, server: ScriptedServer, options: FeedOptions = LISTING) -> Informer:
    informer = Informer([server], simulation, options)
    informer.start()
    await informer.synced(timeout=1)
    return informer


# The list


def test_the_first_list_requests_any_resource_version_in_pages_of_500() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        assert server.lists == [ListOptions(limit=500, resource_version="0")]

    with_informer(scenario, LISTING)


def test_a_relist_requests_a_state_not_older_than_the_last_one() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        seen = str(server.version)
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(5)
        assert server.lists[1:] == [ListOptions(limit=0, resource_version=seen)]

    with_informer(scenario, LISTING)


def test_a_server_that_paginates_lists_gets_paginated_requests_from_then_on() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.pages_always = True
        for number in range(501):
            server.put(f"pod-{number:03}")
        informer = await started(simulation, server)
        assert len(server.lists) == 2
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(5)
        assert server.lists[2].limit == 500
        assert len(informer.store) == 501
        await informer.stop()

    simulate(scenario)


def test_an_explicit_page_size_is_always_sent() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(5)
        assert [each.limit for each in server.lists] == [7, 7]

    with_informer(scenario, FeedOptions(reflector=ReflectorOptions(streaming=False, page_size=7)))


@pytest.mark.parametrize(
    "error", [Expired.of("too old"), Gone.of("too old"), Timeout.resource_version_too_large(9, 3)], ids=str
)
def test_a_state_that_the_server_does_not_have_is_not_insisted_on(error: APIError) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.list_errors.append(error)
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(5)
        assert [each.resource_version for each in server.lists] == ["0", "103", ""]
        assert server.lists[2].limit == 500
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(5)
        assert server.lists[3].resource_version == "103"  # the list that succeeded made it available again (7)

    with_informer(scenario, LISTING)


def test_a_list_that_fails_in_the_latest_state_too_is_an_error() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.list_errors += [Expired.of("too old"), Expired.of("too old still")]
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(1.7)
        assert [each.resource_version for each in server.lists] == ["0", "103", ""]
        await simulation.clock.sleep(5)
        assert server.lists[3].resource_version == ""

    with_informer(scenario, LISTING)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Timeout.resource_version_too_large(9, 3), True),
        (Timeout.of("Too large resource version: 9, current: 3", 1), True),
        (Timeout.of("something else", 1), False),
        (InternalError.of("Too large resource version"), False),
        (ConnectionLost("Too large resource version"), False),
    ],
)
def test_too_large_versions_are_known_by_their_cause_and_from_old_servers_by_their_words(
    error: Exception, answer: bool
) -> None:
    assert is_too_large(error) is answer


def test_pages_after_the_first_carry_the_token_and_no_version() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.pages_always = True
        for number in range(25):
            server.put(f"pod-{number:02}")
        options = FeedOptions(reflector=ReflectorOptions(streaming=False, page_size=10))
        informer = await started(simulation, server, options)
        assert server.lists == [
            ListOptions(limit=10, resource_version="0"),
            ListOptions(limit=10, continue_token="10:125"),
            ListOptions(limit=10, continue_token="20:125"),
        ]
        assert len(informer.store) == 25
        assert informer.resource_version == "125"  # that of the first page
        await informer.stop()

    simulate(scenario)


def test_a_token_that_expires_means_one_list_of_everything() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.pages_always = True
        server.tokens_expire = True
        for number in range(25):
            server.put(f"pod-{number:02}")
        options = FeedOptions(reflector=ReflectorOptions(streaming=False, page_size=10))
        informer = await started(simulation, server, options)
        assert server.lists[-1] == ListOptions(limit=0, resource_version="0")
        assert len(server.lists) == 3
        assert len(informer.store) == 25
        await informer.stop()

    simulate(scenario)


def test_the_version_is_published_after_the_state_is_on_its_way_to_the_store() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        informer = Informer([server], simulation)
        assert informer.resource_version == ""
        informer.start()
        await informer.synced(timeout=1)
        assert informer.resource_version == "101"
        assert informer.feeds[0].store.resource_version == "101"
        await informer.stop()

    simulate(scenario)


def test_a_table_instead_of_objects_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        listed = server.list

        async def table(options: ListOptions) -> Any:
            return msgspec.structs.replace(await listed(options), kind="Table")

        monkeypatch.setattr(server, "list", table)
        informer = Informer([server], simulation, LISTING)
        informer.start()
        with pytest.raises(Exception, match="the server sent a Table"):
            await informer.synced(timeout=3)
        await informer.stop()

    simulate(scenario)


def test_an_object_of_a_list_that_cannot_be_read_is_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.put("b", metadata={"name": 7})
        informer = await started(simulation, server)
        assert names(informer) == ["a"]
        await informer.stop()

    simulate(scenario)
    assert "cannot decode object, skipped collection=pods" in caplog.text


def test_cancelling_a_list_ends_it_without_an_error() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.pause()
        informer = Informer([server], simulation, LISTING)
        informer.start()
        await simulation.clock.sleep(1)
        await informer.stop()
        assert informer.feeds[0].last_error is None

    simulate(scenario)


# The watch


def test_a_watch_begins_at_the_lists_resource_version_with_bookmarks() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        for _ in range(50):
            server.bookmark()
            server.end_watches()
            await simulation.clock.sleep(0.01)
        assert {each.resource_version for each in server.watches} == {"103"}
        assert all(each.bookmarks for each in server.watches)
        seconds = [each.timeout_seconds or 0 for each in server.watches]
        assert min(seconds) >= 300
        assert max(seconds) <= 600
        assert len(set(seconds)) > 10

    with_informer(scenario, LISTING)


@pytest.mark.parametrize(("asked", "low", "high"), [(1, 300, 600), (1000, 1000, 2000)])
def test_the_length_of_watches_can_be_raised_but_not_lowered(asked: int, low: int, high: int) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        assert low <= (server.watches[-1].timeout_seconds or 0) <= high

    with_informer(scenario, FeedOptions(reflector=ReflectorOptions(watch_timeout=asked)))


@pytest.mark.parametrize("error", [TooManyRequests.of("slow down", 0), ConnectionLost("refused")], ids=str)
def test_a_watch_that_cannot_be_opened_now_is_tried_again_without_a_list(error: Exception) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.watch_errors += [error] * 3
        server.bookmark()
        server.end_watches()
        server.put("d")
        await simulation.clock.sleep(20)
        assert state(informer) == truth(server)
        assert len(server.lists) == 0
        assert [each.send_initial_events for each in server.watches] == [True, None, None, None, None]

    with_informer(scenario)


def test_retry_after_delays_the_next_request() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.watch_errors.append(TooManyRequests.of("slow down", 25))
        server.bookmark()
        server.end_watches()
        await simulation.clock.sleep(24)
        assert len(server.watches) == 2
        await simulation.clock.sleep(2)
        assert len(server.watches) == 3

    with_informer(scenario)


def test_a_rejected_watch_is_logged_and_followed_by_a_relist() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.watch_errors.append(Forbidden.of(PODS, "", "no watching"))
        server.bookmark()
        server.end_watches()
        await simulation.clock.sleep(0.1)
        assert str(informer.feeds[0].last_error) == "pods is forbidden: no watching"
        await simulation.clock.sleep(2)
        assert len(server.lists) == 2
        assert informer.feeds[0].last_error is None

    with_informer(scenario, LISTING)


def test_a_watch_that_ends_is_resumed_immediately() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.put("d")
        await simulation.clock.sleep(0.1)
        began = simulation.clock.monotonic()
        server.end_watches()
        await simulation.clock.sleep(0)
        server.put("e")
        while len(informer.store) < 5:
            await simulation.clock.sleep(0)
        assert simulation.clock.monotonic() == began
        assert server.watches[-1].resource_version == "104"
        assert server.lists == []

    with_informer(scenario)


def test_a_watch_that_lasted_for_a_second_is_opened_again_though_nothing_happened() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        await simulation.clock.sleep(1)
        server.end_watches()
        await simulation.clock.sleep(0.01)
        assert len(server.watches) == 2
        assert server.lists == []

    with_informer(scenario)


def test_a_very_short_watch_without_events_is_a_failure() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.end_watches()
        await simulation.clock.sleep(0.7)
        assert len(server.lists) == 1
        assert "very short watch" in str(informer.feeds[0].last_error)
        await simulation.clock.sleep(1)
        assert len(server.lists) == 2

    with_informer(scenario, LISTING)


def test_a_bookmark_makes_a_short_watch_a_good_one() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.bookmark()
        server.end_watches()
        await simulation.clock.sleep(0.01)
        assert len(server.watches) == 2
        assert len(server.lists) == 1

    with_informer(scenario, LISTING)


@pytest.mark.parametrize("error", [Expired.of("too old"), Gone.of("too old")], ids=repr)
def test_an_expired_event_in_a_watch_causes_a_relist(error: APIError) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.dropping = True
        server.put("d")
        server.delete("a")
        server.send(status(error))
        await simulation.clock.sleep(2)
        assert server.lists[-1].resource_version == "103"
        assert state(informer) == truth(server)

    with_informer(scenario, LISTING)


def test_a_version_that_has_expired_when_the_watch_is_opened_is_followed_by_a_list() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.bookmark()
        await simulation.clock.sleep(0.1)
        server.end_watches()
        server.put("d")
        server.delete("a")
        server.expire()
        await simulation.clock.sleep(2)
        assert state(informer) == truth(server)
        assert len(server.lists) == 2

    with_informer(scenario, LISTING)


def test_too_many_requests_inside_a_watch_mean_a_pause_and_another_watch() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(status(TooManyRequests.of("slow down", 0)))
        await simulation.clock.sleep(0.7)
        assert len(server.watches) == 1
        await simulation.clock.sleep(1)
        assert len(server.watches) == 2
        assert server.lists == []

    with_informer(scenario)


@pytest.mark.parametrize("error", [InternalError.of("oops"), ServiceUnavailable.of("no")], ids=repr)
def test_other_errors_inside_a_watch_are_followed_by_a_list(error: APIError) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(status(error))
        await simulation.clock.sleep(2)
        assert len(server.lists) == 2

    with_informer(scenario, LISTING)


@pytest.mark.parametrize(
    "event",
    [
        b'{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","resourceVersion":"900"}}',
        b'{"apiVersion":"v2","kind":"Pod","metadata":{"name":"x","resourceVersion":"900"}}',
        b'{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"900"}}',
        b'{"apiVersion":"v1","kind":"Pod"}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"900"}}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":[]}',
        b'"text"',
    ],
)
def test_an_event_with_something_else_than_the_kind_is_passed_over(
    event: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(RawEvent("ADDED", event))
        await simulation.clock.sleep(0.1)
        assert informer.resource_version == "103"
        assert names(informer) == ["a", "b", "c"]
        server.put("d")
        await simulation.clock.sleep(0.1)
        assert names(informer) == ["a", "b", "c", "d"]

    with_informer(scenario)
    assert "cannot decode event, skipped" in caplog.text


def test_an_event_of_an_unknown_type_is_passed_over_but_moves_the_version(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(RawEvent("RENAMED", b'{"metadata":{"name":"x","resourceVersion":"900"}}'))
        await simulation.clock.sleep(0.1)
        assert informer.resource_version == "900"
        assert names(informer) == ["a", "b", "c"]

    with_informer(scenario)
    assert "unknown event type, skipped collection=pods type='RENAMED'" in caplog.text


def test_a_transform_that_fails_leaves_the_object_out_and_the_watch_going(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def transform(pod: dict[str, Any]) -> dict[str, Any]:
        if pod["metadata"]["name"] == "d":
            raise ZeroDivisionError
        return pod

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.put("d")
        server.put("e")
        await simulation.clock.sleep(0.1)
        assert names(informer) == ["a", "b", "c", "e"]
        assert len(server.watches) == 1

    with_informer(scenario, FeedOptions(transform=transform))
    assert "Pod default/d: transform failed: ZeroDivisionError()" in caplog.text


def test_a_bookmark_moves_the_version_of_reflector_and_store_and_changes_nothing_else() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        events = Recorder()
        informer.add_handler(events)
        await simulation.clock.sleep(0.1)
        events.clear()
        server.bookmark(version=500)
        await simulation.clock.sleep(0.1)
        assert informer.resource_version == "500"
        assert informer.feeds[0].store.resource_version == "500"
        assert events.items == []
        server.end_watches()
        await simulation.clock.sleep(0.1)
        assert server.watches[-1].resource_version == "500"

    with_informer(scenario)


def test_a_bookmark_that_is_none_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(RawEvent(BOOKMARK, b'{"metadata":7}'))
        await simulation.clock.sleep(0.1)
        assert informer.resource_version == "103"

    with_informer(scenario)
    assert "cannot decode event, skipped collection=pods error=bookmark" in caplog.text


def test_a_watch_from_no_version_publishes_none_before_something_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        listed = server.list

        async def without_version(options: ListOptions) -> Any:
            answer = await listed(options)
            answer.metadata.resource_version = ""
            return answer

        monkeypatch.setattr(server, "list", without_version)
        for name in "abc":
            server.put(name)
        informer = await started(simulation, server)
        await simulation.clock.sleep(0.1)
        assert server.watches[0].resource_version == ""
        assert informer.resource_version == ""  # the watch told of c, b and a, in that order
        server.put("b", spec={})
        await simulation.clock.sleep(0.1)
        assert informer.resource_version == "104"
        await informer.stop()

    simulate(scenario)


def test_every_watch_is_closed_when_it_is_left() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        opened = []
        watch = server.watch

        async def watched(options: WatchOptions) -> Any:
            opened.append(await watch(options))
            return opened[-1]

        server.watch = watched  # type: ignore[method-assign, assignment]
        informer = await started(simulation, server, FeedOptions())
        for happens in (server.end_watches, server.cut, lambda: server.send(status(InternalError.of("oops")))):
            server.bookmark()
            await simulation.clock.sleep(0.1)
            happens()
            await simulation.clock.sleep(10)
        await informer.stop()
        assert len(opened) == 4
        assert all(stream.closed for stream in opened)

    simulate(scenario)


def test_failures_are_logged_and_expiry_only_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "ostinato.cache")

    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(3)
        server.send(status(InternalError.of("oops")))
        await simulation.clock.sleep(3)
        await simulation.clock.sleep(2)
        server.cut()
        await simulation.clock.sleep(3)

    with_informer(scenario, LISTING)
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    assert levels["list or watch failed collection=pods error=Expired: too old"] == "DEBUG"
    internal = "list or watch failed collection=pods error=InternalError: Internal error occurred: oops"
    assert levels[internal] == "WARNING"
    assert levels["watch interrupted, resuming collection=pods error=the connection broke"] == "DEBUG"


# Pauses


def test_the_backoff_grows_while_a_server_is_down_for_an_hour() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        times: list[float] = []

        async def refused(options: ListOptions) -> Any:
            times.append(simulation.clock.monotonic())
            raise ConnectionLost("refused")

        server.list = refused  # type: ignore[method-assign, assignment]
        informer = Informer([server], simulation, LISTING)
        begun = simulation.clock.monotonic()
        informer.start()
        await simulation.clock.sleep(3600)
        await informer.stop()
        assert times[0] == begun  # the first round starts at once
        waits = [after - before for before, after in pairwise(times)]
        for number, wait in enumerate(waits):
            shortest = min(0.8 * 2**number, 30)
            assert shortest <= wait <= 2 * shortest

    simulate(scenario)


def test_two_good_minutes_make_the_next_failure_the_first() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.list_errors += [InternalError.of("oops")] * 4
        server.send(status(Expired.of("too old")))
        for _ in range(3):
            await simulation.clock.sleep(60)
            server.bookmark()
        server.send(status(Expired.of("too old")))
        before = len(server.lists)
        await simulation.clock.sleep(1.7)
        assert len(server.lists) == before + 1

    with_informer(scenario, LISTING)


def test_a_failure_within_two_minutes_continues_the_backoff() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.list_errors += [InternalError.of("oops")] * 4
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(60)
        server.send(status(Expired.of("too old")))
        before = len(server.lists)
        await simulation.clock.sleep(12)
        assert len(server.lists) == before

    with_informer(scenario, LISTING)


def test_the_pauses_can_be_chosen() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.list_errors += [InternalError.of("oops")] * 10
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(1.05)
        assert len(server.lists) == 11

    options = ReflectorOptions(streaming=False, backoff=Backoff(duration=0.1, steps=100))
    with_informer(scenario, FeedOptions(reflector=options))


# Streaming lists


def test_a_streaming_list_continues_as_the_watch() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.put("d")
        await simulation.clock.sleep(0.1)
        assert state(informer) == truth(server)
        [asked] = server.asked
        assert isinstance(asked, WatchOptions)
        assert asked.send_initial_events is True
        assert asked.resource_version_match == "NotOlderThan"
        assert asked.bookmarks is True
        assert asked.resource_version == ""
        assert asked.timeout_seconds is not None

    with_informer(scenario)


def test_changes_during_a_streaming_list_are_merged_into_it() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.streaming = "ignored"  # so that this test says when the end is
        for name in "abc":
            server.put(name)
        informer = Informer([server], simulation)
        events = Recorder()
        informer.add_handler(events)
        informer.start()
        await simulation.clock.sleep(0.1)
        server.put("b", spec={})
        server.delete("c")
        server.send(RawEvent("RENAMED", b'{"metadata":{"name":"x"}}'))
        server.send(RawEvent("ADDED", b"[]"))
        await simulation.clock.sleep(0.1)
        assert not informer.has_synced
        server.bookmark(end=True)
        await simulation.clock.sleep(0.1)
        assert informer.has_synced
        assert state(informer) == truth(server)
        assert events.summaries == ["initial b", "initial a"]
        await informer.stop()

    simulate(scenario)


def test_a_plain_bookmark_in_a_streaming_list_reveals_an_old_server() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.streaming = "ignored"
        server.put("a")
        informer = Informer([server], simulation)
        informer.start()
        await simulation.clock.sleep(0.1)
        assert server.lists == []
        server.bookmark()
        await informer.synced(timeout=1)
        assert server.lists == [ListOptions(limit=500, resource_version="0")]
        assert names(informer) == ["a"]
        await informer.stop()

    simulate(scenario)


@pytest.mark.parametrize("error", [TooManyRequests.of("slow down", 0), ConnectionLost("refused")], ids=str)
def test_a_streaming_list_that_cannot_be_had_now_is_tried_again(error: Exception) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.watch_errors += [error, error]
        informer = Informer([server], simulation)
        informer.start()
        await informer.synced(timeout=10)
        assert len(server.watches) == 3
        assert server.lists == []
        await informer.stop()

    simulate(scenario)


@pytest.mark.parametrize("error", [Expired.of("too old"), Timeout.resource_version_too_large(9, 3)], ids=repr)
def test_a_streaming_list_of_an_unavailable_state_requests_the_latest(
    error: APIError,
) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.watch_errors.append(error)
        server.send(status(Expired.of("too old")))
        await simulation.clock.sleep(2)
        assert [each.resource_version for each in server.watches] == ["", "103", ""]
        assert server.lists == []

    with_informer(scenario)


@pytest.mark.parametrize("error", [INVALID, Forbidden.of(PODS, "", "no"), InternalError.of("oops")], ids=repr)
def test_a_server_that_refuses_a_streaming_list_is_listed_in_the_same_round(error: APIError) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.watch_errors.append(error)
        informer = Informer([server], simulation)
        informer.start()
        await informer.synced(timeout=0.1)
        assert server.lists == [ListOptions(limit=500, resource_version="0")]
        await simulation.clock.sleep(0.1)
        assert server.watches[1].send_initial_events is None
        assert server.watches[1].resource_version == "101"
        await informer.stop()

    simulate(scenario)


def test_expired_for_the_latest_state_causes_an_ordinary_list() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.watch_errors += [Expired.of("too old"), Expired.of("too old")]
        informer = Informer([server], simulation)
        informer.start()
        await informer.synced(timeout=0.1)
        assert len(server.lists) == 1
        await informer.stop()

    simulate(scenario)


@pytest.mark.parametrize("how", ["end_watches", "cut"])
def test_an_interrupted_streaming_list_is_restarted_and_its_events_discarded(how: str) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.streaming = "ignored"
        server.put("a")
        informer = Informer([server], simulation)
        informer.start()
        await simulation.clock.sleep(0.1)
        getattr(server, how)()
        server.delete("a")
        server.put("b")
        server.streaming = True
        await informer.synced(timeout=5)
        assert names(informer) == ["b"]
        assert [each.send_initial_events for each in server.watches] == [True, True]
        assert server.lists == []
        await informer.stop()

    simulate(scenario)


def test_a_stream_that_ends_after_it_was_complete_is_followed_by_an_ordinary_watch() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        await simulation.clock.sleep(2)
        server.end_watches()
        await simulation.clock.sleep(0.1)
        assert [each.send_initial_events for each in server.watches] == [True, None]
        assert server.watches[1].resource_version == "103"

    with_informer(scenario)


def test_an_error_inside_a_streaming_list_is_as_one_before_it() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.streaming = "ignored"
        server.put("a")
        informer = Informer([server], simulation)
        informer.start()
        await simulation.clock.sleep(0.1)
        server.send(status(Forbidden.of(PODS, "", "no")))
        await informer.synced(timeout=0.1)
        assert len(server.lists) == 1
        await informer.stop()

    simulate(scenario)


def test_a_streaming_list_that_takes_long_is_remarked_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.streaming = "ignored"
        server.put("a")
        informer = Informer([server], simulation)
        informer.start()
        await simulation.clock.sleep(25)
        await informer.stop()

    simulate(scenario)
    assert caplog.messages == ["initial state incomplete, still streaming collection=pods objects=1"] * 2


# Kinds, and going back


def test_a_missing_kind_is_retried_until_it_exists() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer) -> None:
        server.put("a")
        server.info_errors += [NotFound.of(PODS, "")] * 2
        informer = Informer([server], simulation)
        informer.start()
        await informer.synced(timeout=20)
        assert informer.info == server.kind
        await informer.stop()

    simulate(scenario)


def test_a_server_that_went_back_to_an_earlier_state_is_listed() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.version = 50
        server.objects.clear()
        server.dropping = True  # a watch from version 103 is told nothing of what comes before it
        server.put("restored")
        server.bookmark()
        await simulation.clock.sleep(2)
        assert state(informer) == truth(server)
        assert informer.resource_version == "51"

    with_informer(scenario)


def test_a_restored_server_is_detected_after_two_watches_without_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        whole = server.list

        async def listed(options: ListOptions) -> Any:
            if options.resource_version not in ("", "0"):  # "to come again", until there is no time left for it
                raise RequestTimedOut("no answer in time")
            return await whole(options)

        monkeypatch.setattr(server, "list", listed)
        server.cut()
        server.version = 50
        server.history.clear()
        server.objects.clear()
        server.dropping = True  # a watch from version 103 is told nothing of what comes before it
        server.put("restored")
        await simulation.clock.sleep(100)
        assert state(informer) != truth(server)
        await simulation.clock.sleep(60)
        assert state(informer) == truth(server)
        assert informer.resource_version == "51"

    with_informer(scenario)


def test_an_idle_server_is_probed_with_one_object_and_not_relisted() -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        await simulation.clock.sleep(500)
        asked = [each for each in server.lists if each.limit != 500]
        assert len(asked) == 3
        assert set(asked) == {ListOptions(limit=1)}, (
            "of a version that it has not a server says to come again, 10 times"
        )
        assert state(informer) == truth(server)

    with_informer(scenario)


@pytest.mark.parametrize("error", [Forbidden.of(PODS, "", "no list"), INVALID, ServiceUnavailable.of("later")])
def test_a_server_that_rejects_the_probe_is_watched_as_before(error: APIError) -> None:
    async def scenario(simulation: Simulation, server: ScriptedServer, informer: Informer) -> None:
        server.asked.clear()
        for _ in range(3):
            server.list_errors.append(error)
            await simulation.clock.sleep(150)
        assert {each.limit for each in server.lists} == {1}, "and not listed"
        assert all(each.send_initial_events is None for each in server.watches), "nor streamed"
        assert not server.list_errors
        server.put("later")
        await simulation.clock.sleep(1)
        assert state(informer) == truth(server)

    with_informer(scenario)
