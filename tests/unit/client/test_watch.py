"""Watches that go on: over ends, cuts, silence, restarts and overload, each event once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import Widget, config_map
from tests.stage.transport import Answer, RecordingTransport, Script, Streamed, in_turn, scripted

from ostinato.api.errors import APIError, Expired, Forbidden, Gone, InternalError, ServiceUnavailable, TooManyRequests
from ostinato.api.gvk import GroupResource
from ostinato.client import Client, MetadataOf, NoSuchKind, TransportError, Unstructured
from ostinato.client.list_watch import STALL_TIMEOUT
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, RequestTimedOut
from ostinato.client.watch import MIN_WATCH_SECONDS
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.world import Simulation


def _line(kind: str, version: int, name: str = "a") -> bytes:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(version)}}
    return msgspec.json.encode({"type": kind, "object": body}) + b"\n"


def _error(error: APIError) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": error.to_dict()}) + b"\n"


def _versions(transport: Any) -> list[str]:
    """From which versions it was watched."""
    return [dict(request.query)["resourceVersion"] for request in transport.requests if request.stream]


def _events(script: Script, count: int, *, since: str | None = "1") -> tuple[list[tuple[str, str]], Any, Simulation]:
    """The first events of a watch on a server that answers so."""
    world = Simulation(1)
    client, transport = scripted(world, script)

    async def main() -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        async with client.watch(ConfigMap, since=since) as events:
            async for event in events:
                found.append((event.type, event.object.metadata.resource_version))
                if len(found) == count:
                    break
        return found

    return world.run(main()), transport, world


# With a server


@staged
async def test_a_watch_delivers_existing_objects_then_changes(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    told = []
    async with stage.client.watch(ConfigMap, namespace="default") as events:
        async for event in events:
            told.append((event.type, event.object.metadata.name))
            if told[-1] == ("ADDED", "a"):
                await stage.client.create(config_map("b"))
            if told[-1] == ("ADDED", "b"):
                event.object.data["x"] = "y"
                await stage.client.update(event.object)
            if told[-1] == ("MODIFIED", "b"):
                await stage.client.delete(ConfigMap, "a")
            if told[-1] == ("DELETED", "a"):
                break
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


@staged
async def test_a_watch_with_since_delivers_later_changes(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    items = await stage.client.list(ConfigMap, namespace="default")
    await stage.client.create(config_map("b"))
    async with stage.client.watch(ConfigMap, since=items.resource_version) as events:
        first = await anext(events)
        assert (first.type, first.object.metadata.name) == ("ADDED", "b")
        assert events.resource_version == first.object.metadata.resource_version


@staged
async def test_existing_objects_are_read_in_pages(stage: Stage) -> None:
    for number in range(1203):
        await stage.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number:04}"}})
    async with stage.client.watch(MetadataOf(ConfigMap), namespace="default") as events:
        names = [(await anext(events)).object.metadata.name for _ in range(1203)]
    assert names == [f"c{number:04}" for number in range(1203)]


@staged
async def test_an_idle_watch_lasts_for_hours_without_a_list(stage: Stage) -> None:
    async with stage.client.watch(ConfigMap, namespace="default") as events:
        waiting = asyncio.ensure_future(anext(events))
        for _ in range(24):
            await stage.world.clock.sleep(600)
            await stage.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}})
            if waiting.done():
                assert waiting.result().type == "ADDED"
                waiting = asyncio.ensure_future(anext(events))
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
    reads = [request for request in stage.transport.requests if request.method == "GET"]
    assert sum(not request.stream for request in reads) == 1
    watches = [request for request in reads if request.stream]
    assert 24 <= len(watches) <= 49, "each lasts between five and ten minutes"


@staged
async def test_bookmarks_move_a_watch_on_so_that_it_can_resume(stage: Stage) -> None:
    async with stage.client.watch(ConfigMap, namespace="default") as events:
        waiting = asyncio.ensure_future(anext(events))
        await stage.world.clock.sleep(1)
        before = events.resource_version
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        await stage.world.clock.sleep(61)
        assert int(events.resource_version) > int(before)
        events.close()
        with pytest.raises(StopAsyncIteration):
            await waiting


@staged
async def test_a_compacted_resource_version_raises_expired(stage: Stage) -> None:
    with pytest.raises(Expired, match="too old resource version: 1"):
        await anext(stage.client.watch(ConfigMap, since="1"))


@staged
async def test_a_missing_kind_is_an_error(stage: Stage) -> None:
    for kind in (Widget, Unstructured.of("example.dev/v1", "Widget")):
        for since in (None, "5"):
            with pytest.raises(NoSuchKind):
                await anext(stage.client.watch(kind, since=since))  # type: ignore[arg-type]


@staged
async def test_two_watches_of_one_client_do_not_disturb_each_other(stage: Stage) -> None:
    async with stage.client.watch(ConfigMap) as first, stage.client.watch(ConfigMap) as second:
        waiting = [asyncio.ensure_future(anext(each)) for each in (first, second)]
        await stage.world.clock.sleep(1)
        await stage.client.create(config_map("a"))
        assert [(await each).object.metadata.name for each in waiting] == ["a", "a"]


@staged
async def test_a_server_that_stops_for_seventy_seconds_without_a_word_is_noticed(stage: Stage) -> None:
    pausing = Pausing(stage.transport)
    client = Client(pausing, world=stage.world, namespace="default")
    async with client.watch(ConfigMap, since=(await client.list(ConfigMap)).resource_version) as events:
        waiting = asyncio.ensure_future(anext(events))
        await stage.world.clock.sleep(5)
        pausing.paused = True  # what is under way hears nothing any more, without an end
        await stage.client.create(config_map("a"))
        await stage.world.clock.sleep(30)
        pausing.paused = False  # new connections work, the old one stays dead
        begun = stage.world.clock.monotonic()
        assert (await waiting).object.metadata.name == "a"
        assert stage.world.clock.monotonic() - begun < STALL_TIMEOUT
    assert pausing.streams == 2


class Pausing(RecordingTransport):
    """A network that can swallow what is sent on the streams that are open."""

    paused = False
    streams = 0

    async def request(self, request: Request) -> Any:
        answer = await super().request(request)
        if request.stream:
            self.streams += 1
            chunks = answer.chunks()

            async def lossy() -> AsyncIterator[bytes]:
                async for chunk in chunks:
                    if self.paused:
                        await asyncio.get_running_loop().create_future()
                    yield chunk

            answer.chunks = lossy
        return answer


# Cuts

STREAM = _line("ADDED", 2) + _line("MODIFIED", 3) + _line("BOOKMARK", 7) + _line("DELETED", 9, "\u00e9")
HISTORY = [("ADDED", "2"), ("MODIFIED", "3"), ("DELETED", "9")]


def _cut_once(cut: int, end: Exception | None) -> Script:
    """A server with these events, whose first stream ends after so many bytes."""
    streams = 0

    def script(request: Request) -> Answer:
        nonlocal streams
        streams += 1
        if streams == 1:
            return Streamed(STREAM[:cut], end=end)
        since = int(dict(request.query)["resourceVersion"])
        left = [line for line in STREAM.splitlines(keepends=True) if _version(line) > since]
        return Streamed(*left, hangs=True)

    return script


def _version(line: bytes) -> int:
    return int(msgspec.json.decode(line)["object"]["metadata"]["resourceVersion"])


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_connection_cut_at_any_byte_loses_nothing_and_repeats_nothing(cut: int) -> None:
    found, transport, _ = _events(_cut_once(cut, ConnectionLost("cut")), 3)
    assert found == HISTORY
    assert len(transport.requests) <= 2


@pytest.mark.parametrize("cut", range(0, len(STREAM), 7))
def test_a_stream_that_ends_well_in_the_middle_of_an_event_is_taken_no_better(cut: int) -> None:
    found, _, _ = _events(_cut_once(cut, None), 3)
    assert found == HISTORY


# What passes, and what does not


def test_a_watch_that_the_server_ends_is_resumed_immediately() -> None:
    found, transport, world = _events(
        in_turn(Streamed(_line("ADDED", 2)), Streamed(_line("BOOKMARK", 5)), Streamed(_line("ADDED", 6))), 2
    )
    assert found == [("ADDED", "2"), ("ADDED", "6")]
    assert _versions(transport) == ["1", "2", "5"]
    assert world.clock.monotonic() == 0


def test_a_watch_that_ends_immediately_without_events_is_reopened_with_backoff() -> None:
    answers = [Streamed()] * 5 + [Streamed(_line("ADDED", 2))]
    found, _, world = _events(in_turn(*answers), 1)
    assert found == [("ADDED", "2")]
    assert 0.8 * (1 + 2 + 4 + 8 + 16) <= world.clock.monotonic() <= 2 * 0.8 * (1 + 2 + 4 + 8 + 16)


@pytest.mark.parametrize(
    "trouble",
    [
        ConnectionLost("reset"),
        RequestTimedOut("slow"),
        Answer(429, TooManyRequests.of("busy", 0).to_dict()),
        Answer(500, InternalError.of("oops").to_dict()),
        Answer(503, b"<html>"),
        Streamed(_error(TooManyRequests.of("busy", 0))),
        Streamed(_error(InternalError.of("oops"))),
        Streamed(_error(ServiceUnavailable.of("restarting"))),
        Streamed(b"<html>\n"),
        Streamed(hangs=True),
    ],
)
def test_transient_errors_are_retried(trouble: Answer | Exception, caplog: pytest.LogCaptureFixture) -> None:
    found, transport, world = _events(in_turn(trouble, Streamed(_line("ADDED", 2))), 1)
    assert found == [("ADDED", "2")]
    assert _versions(transport) == ["1", "1"]
    assert 0.8 <= world.clock.monotonic() <= STALL_TIMEOUT + 1.6
    assert "collection=configmaps" in caplog.text
    assert "watch interrupted, retrying collection=" in caplog.text


def test_retry_after_sets_the_delay() -> None:
    _, _, world = _events(
        in_turn(Answer(429, TooManyRequests.of("busy", 20).to_dict()), Streamed(_line("ADDED", 2))), 1
    )
    assert world.clock.monotonic() == pytest.approx(20)


def test_the_backoff_grows_to_a_minute_and_is_reset_by_an_event() -> None:
    answers = [ConnectionLost("gone")] * 12 + [Streamed(_line("ADDED", 2), end=ConnectionLost("gone"))]
    _, _, world = _events(in_turn(*answers), 1)
    spent = world.clock.monotonic()
    assert 150 < spent < 12 * 60
    answers += [Streamed(_line("ADDED", 3))]
    _, _, world = _events(in_turn(*answers), 2)
    assert world.clock.monotonic() - spent < 2


@pytest.mark.parametrize("error", [Expired.of("too old resource version: 1 (5)"), Gone.of("gone")])
@pytest.mark.parametrize("told", ["by the status", "by an event"])
def test_both_forms_of_410_end_the_watch_with_expired(error: APIError, told: str) -> None:
    world = Simulation(1)
    answer = Answer(410, error.to_dict()) if told == "by the status" else Streamed(_error(error))
    client, transport = scripted(world, in_turn(answer))

    async def main() -> None:
        events = client.watch(ConfigMap, since="1")
        with pytest.raises(type(error)):
            await anext(events)
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    world.run(main())
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        Forbidden.of(GroupResource("", "configmaps"), "", "no"),
        DeadlinePassed("not the leader"),
        TransportError("the transport is closed"),
    ],
)
def test_permanent_errors_are_raised(error: Exception) -> None:
    answer = Answer(403, error.to_dict()) if isinstance(error, Forbidden) else error
    for since in ("1", None):
        with pytest.raises(type(error)):
            _events(in_turn(answer), 1, since=since)


def _page(*names: str, token: str = "") -> Answer:
    items = [{"metadata": {"name": name, "resourceVersion": name}} for name in names]
    metadata = {"resourceVersion": "9" if token else "99", "continue": token}
    return Answer(body={"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})


def test_a_failed_page_is_requested_again() -> None:
    found, transport, _ = _events(
        in_turn(
            ConnectionLost("reset"),
            _page("2", "3", token="t"),
            Answer(503, b""),
            _page("4"),
            Streamed(_line("ADDED", 10)),
        ),
        4,
        since=None,
    )
    assert found == [("ADDED", "2"), ("ADDED", "3"), ("ADDED", "4"), ("ADDED", "10")]
    assert _versions(transport) == ["9"], "the version of the first page: later ones may be of another state"


def test_an_expired_continue_token_is_raised() -> None:
    with pytest.raises(Expired):
        _events(in_turn(_page("2", token="t"), Answer(410, Expired.of("too old").to_dict())), 2, since=None)


def test_a_watch_requests_bookmarks_and_a_timeout_below_ten_minutes() -> None:
    _, transport, _ = _events(in_turn(Streamed(_line("ADDED", 2))), 1)
    query = dict(transport.requests[0].query)
    assert query["allowWatchBookmarks"] == "true"
    assert MIN_WATCH_SECONDS <= int(query["timeoutSeconds"]) <= 2 * MIN_WATCH_SECONDS
    assert transport.requests[0].timeout == STALL_TIMEOUT


def test_unknown_kinds_of_events_are_passed_over_but_count() -> None:
    found, transport, _ = _events(in_turn(Streamed(_line("PONDERED", 4)), Streamed(_line("ADDED", 5))), 1)
    assert found == [("ADDED", "5")]
    assert _versions(transport) == ["1", "4"]


def test_a_watch_closed_while_it_opens_closes_its_response() -> None:
    world = Simulation(1)
    stream = Streamed(hangs=True)

    async def slow() -> Answer:
        await world.clock.sleep(5)
        return stream

    client, _ = scripted(world, lambda _: slow())

    async def main() -> None:
        events = client.watch(ConfigMap, since="1")
        waiting = asyncio.ensure_future(anext(events))
        await world.clock.sleep(1)
        events.close()
        with pytest.raises(StopAsyncIteration):
            await waiting

    world.run(main())
    assert stream.closed


def test_leaving_a_watch_closes_its_stream() -> None:
    world = Simulation(1)
    stream = Streamed(_line("ADDED", 2), hangs=True)
    client, _ = scripted(world, in_turn(stream))

    async def main() -> None:
        async with client.watch(ConfigMap, since="1") as events:
            await anext(events)

    world.run(main())
    assert stream.closed
