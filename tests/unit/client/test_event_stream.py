"""The events of one watch: cut out of the bytes, however these are cut into chunks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stage.client import Stage, staged
from tests.stage.kinds import config_map
from tests.stage.transport import Streamed

from ostinato.api.errors import Expired, Gone, InternalError
from ostinato.client import event_stream
from ostinato.client.event_stream import ResponseEvents, parse_event
from ostinato.client.list_watch import (
    BOOKMARK,
    ERROR,
    INITIAL_EVENTS_END,
    RawEvent,
    WatchOptions,
    WatchStalled,
    error_of,
)
from ostinato.client.transport.protocol import ConnectionLost, ResponseTooLarge
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.world import Simulation

LINES = (
    b'{"type":"ADDED","object":{"a":"\xc3\xa9"}}\n'
    b'{"type":"MODIFIED","object":{"b":{"c":"}\\n"}}}\n'
    b'{"type":"BOOKMARK","object":{}}\n'
    b'{"type":"DELETED","object":{"d":[1,2]}}\n'
)
EVENTS = [
    RawEvent("ADDED", b'{"a":"\xc3\xa9"}'),
    RawEvent("MODIFIED", b'{"b":{"c":"}\\n"}}'),
    RawEvent("BOOKMARK", b"{}"),
    RawEvent("DELETED", b'{"d":[1,2]}'),
]


@pytest.mark.parametrize(
    ("line", "kind", "body"),
    [
        (b'{"type":"ADDED","object":{"a":1}}', "ADDED", b'{"a":1}'),
        (b'{"type":"ADDED","object":{"a":1}} ', "ADDED", b'{"a":1}'),
        (b'{"type":"ADDED","object":{"a":1}}\r', "ADDED", b'{"a":1}'),
        (b'{ "type": "ADDED", "object": {"a":1} }', "ADDED", b'{"a":1}'),
        (b'{"object":{"a":1},"type":"DELETED"}', "DELETED", b'{"a":1}'),
        (b'{"type":"INVENTED","object":{}}', "INVENTED", b"{}"),
        (b'{"type":"ADDED","more":1,"object":{}}', "ADDED", b"{}"),
        (b'{"type":"A\\u0044DED","object":{}}', "ADDED", b"{}"),
    ],
)
def test_an_event_in_any_form_that_json_has(line: bytes, kind: str, body: bytes) -> None:
    assert parse_event(line) == RawEvent(kind, body)


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"{}",
        b"[]",
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{',
        b'{"type":"ADDED","object"',
        b"\xff\xfe",
        b'{"type":"' + b"A" * 100,
        b'{"object":' + b"[" * 100_000,
    ],
)
def test_a_line_that_is_not_an_event_is_a_lost_connection(line: bytes) -> None:
    with pytest.raises(ConnectionLost, match="not a watch event"):
        parse_event(line)


async def _collect(response: Any, clock: Any, stall_timeout: float | None = 70.0) -> list[RawEvent]:
    async with ResponseEvents(response, clock, stall_timeout, "watch of pods") as events:
        return [event async for event in events]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(LINES)), max_size=12))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(LINES)]
    chunks = [LINES[start:end] for start, end in itertools.pairwise(bounds)]
    world = Simulation(1)
    assert world.run(_collect(Streamed(*chunks), world.clock)) == EVENTS


@pytest.mark.parametrize("end", range(len(LINES) + 1))
def test_only_complete_events_of_a_truncated_stream_are_delivered(end: int) -> None:
    world = Simulation(1)
    found = world.run(_collect(Streamed(LINES[:end]), world.clock))
    assert found == EVENTS[: LINES[:end].count(b"\n")]


def test_empty_lines_mean_nothing() -> None:
    world = Simulation(1)
    assert world.run(_collect(Streamed(b"\n\r\n" + LINES), world.clock)) == EVENTS


def test_an_unterminated_line_is_rejected_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_LINE", 100)
    world = Simulation(1)
    with pytest.raises(ResponseTooLarge, match="watch of pods: event larger than 100 bytes"):
        world.run(_collect(Streamed(*[b"x" * 30] * 4), world.clock))


def test_a_broken_stream_raises_after_its_events() -> None:
    world = Simulation(1)
    found: list[RawEvent] = []

    async def main() -> None:
        response = Streamed(LINES[:-5], end=ConnectionLost("reset"))
        async for event in ResponseEvents(response, world.clock, 70.0, ""):  # type: ignore[arg-type]
            found.append(event)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ConnectionLost, match="reset"):
        world.run(main())
    assert found == EVENTS[:3]


def test_a_silent_stream_is_noticed_and_closed() -> None:
    world = Simulation(1)
    response = Streamed(LINES, hangs=True)

    async def main() -> None:
        events = ResponseEvents(response, world.clock, 70.0, "watch of pods")  # type: ignore[arg-type]
        for _ in EVENTS:
            await anext(events)
        with pytest.raises(WatchStalled, match="watch of pods: stalled: no data, not even a bookmark, for 70 seconds"):
            await anext(events)
        assert world.clock.monotonic() == pytest.approx(70)

    world.run(main())
    assert response.closed


def test_a_stream_with_occasional_data_is_not_stalled() -> None:
    world = Simulation(1)

    class Slow(Streamed):
        async def chunks(self) -> AsyncIterator[bytes]:
            for _ in range(10):
                await world.clock.sleep(50)
                yield LINES
            await world.clock.sleep(1000)

    async def main() -> None:
        events = ResponseEvents(Slow(), world.clock, 70.0, "watch of pods")  # type: ignore[arg-type]
        for _ in range(10 * len(EVENTS)):
            await anext(events)
        await world.clock.sleep(100)  # nobody waits for it
        with pytest.raises(WatchStalled):
            await anext(events)
        assert world.clock.monotonic() == pytest.approx(500 + 100 + 70)

    world.run(main())


def test_a_reader_cancelled_during_a_stall_is_cancelled() -> None:
    world = Simulation(1)
    response = Streamed(hangs=True)

    async def main() -> None:
        events = ResponseEvents(response, world.clock, 70.0, "watch of pods")  # type: ignore[arg-type]
        with pytest.raises(TimeoutError):
            async with world.clock.timeout(5):
                await anext(events)
        with pytest.raises(StopAsyncIteration):  # the generator was cancelled
            await anext(events)

    world.run(main())


def test_without_a_stall_timeout_a_stream_is_never_stalled() -> None:
    world = Simulation(1)
    reading = _collect(Streamed(LINES, hangs=True), world.clock, stall_timeout=None)
    assert world.run(reading, until=80_000) is None


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b'{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}', Expired, "too old"),
        (b'{"kind":"Status","apiVersion":"v1","code":410,"reason":"Gone","message":"gone"}', Gone, "gone"),
        (b'{"kind":"Status","apiVersion":"v1","reason":"Expired"}', Expired, ""),
        (b'{"kind":"Pod"}', InternalError, "an error on the server"),
        (b"nonsense", InternalError, "nonsense"),
    ],
)
def test_an_error_event_is_decoded_to_its_error(body: bytes, error: type[Exception], words: str) -> None:
    found = error_of(RawEvent(ERROR, body))
    assert type(found) is error
    assert words in str(found)


@staged
async def test_one_watch_delivers_events_and_bookmarks_until_its_timeout(stage: Stage) -> None:
    source = stage.client.list_watch(ConfigMap, namespace="default")
    begun = stage.world.clock.monotonic()
    start = (await source.list()).metadata.resource_version
    async with await source.watch(WatchOptions(resource_version=start, timeout_seconds=100)) as events:
        await stage.client.create(config_map("a"))
        found = [event.type async for event in events]
    assert found == ["ADDED", "BOOKMARK", "BOOKMARK"]
    assert stage.world.clock.monotonic() - begun == pytest.approx(100)


@staged
async def test_a_streaming_list_is_marked_where_it_is_complete(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    source = stage.client.list_watch(ConfigMap, namespace="default")
    options = WatchOptions(send_initial_events=True, resource_version_match="NotOlderThan")
    async with await source.watch(options) as events:
        first, mark = [await anext(events), await anext(events)]
    assert first.type == "ADDED"
    assert mark.type == BOOKMARK
    assert INITIAL_EVENTS_END.encode() in mark.object


@staged
async def test_a_watch_can_do_without_bookmarks_and_initial_events(stage: Stage) -> None:
    source = stage.client.list_watch(ConfigMap, namespace="default")
    options = WatchOptions(
        bookmarks=False, send_initial_events=False, resource_version_match="NotOlderThan", stall_timeout=None
    )
    await stage.client.create(config_map("a"))
    async with await source.watch(options) as events:
        await stage.client.create(config_map("b"))
        assert b'"b"' in (await anext(events)).object
    assert "allowWatchBookmarks" not in stage.transport.calls[-2]


@staged
async def test_closing_a_stream_ends_a_pending_read(stage: Stage) -> None:
    source = stage.client.list_watch(ConfigMap, namespace="default")
    start = (await source.list()).metadata.resource_version
    events = await source.watch(WatchOptions(resource_version=start))

    async def wait() -> None:
        async for _ in events:
            pass

    waiting = asyncio.ensure_future(wait())
    await stage.world.clock.sleep(1)
    events.close()
    with pytest.raises(ConnectionLost):
        await waiting
