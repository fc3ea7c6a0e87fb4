"""Watches: bookmarks, and the forms of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stage.api import TABLE, Api, asking
from tests.unit.server.verbs.watching import CONFIG_MAPS, config_map, refused, told, version, watch

from ostinato.api import protobuf
from ostinato.server.core import Server
from ostinato.server.request.negotiate import Form
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.verbs.watch_writer import WatchWriter
from ostinato.world import Simulation

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
FIRST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
END = {"k8s.io/initial-events-end": "true"}
EMPTY = json.loads((Path(__file__).resolve().parents[3] / "data/server/empty_objects.json").read_text())


@asking
async def test_a_streaming_list_ends_with_an_annotated_bookmark_and_continues(api: Api) -> None:
    await config_map(api, "b")
    await config_map(api, "a")
    now = api.server.index.version
    for start in ("", "&resourceVersion=0", f"&resourceVersion={now}", "&resourceVersion=1"):
        live = await watch(api, f"{CONFIG_MAPS}?{FIRST}&allowWatchBookmarks=true{start}")
        events = await live.take(3)
        assert told(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
        assert events[2]["object"] == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(now), "annotations": END},
        }
        await live.close()
    live = await watch(api, f"{CONFIG_MAPS}?{FIRST}&allowWatchBookmarks=true")
    await config_map(api, "c")
    assert told(await live.take(4))[3] == ("ADDED", "c")


@asking
async def test_the_initial_events_annotation_needs_initial_events_and_bookmarks(api: Api) -> None:
    await config_map(api, "a")
    begins = "&resourceVersion=0"
    for query, expected in (
        (f"{FIRST}&timeoutSeconds=1", ["ADDED"]),
        ("watch=1&allowWatchBookmarks=true&timeoutSeconds=1" + begins, ["ADDED", "BOOKMARK"]),
        ("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1" + begins, []),
    ):
        live = await watch(api, f"{CONFIG_MAPS}?{query}")
        assert [event["type"] for event in await live.rest()] == expected
    old = await watch(api, "/api/v1/watch/namespaces/default/configmaps?allowWatchBookmarks=true&timeoutSeconds=1")
    assert [event["type"] for event in await old.rest()] == ["ADDED"]


@asking
async def test_a_streaming_list_from_the_future_times_out_with_an_error_event(api: Api) -> None:
    clock, now = api.server.world.clock, api.server.index.version
    began = clock.monotonic()
    live = await watch(api, f"{CONFIG_MAPS}?{FIRST}&resourceVersion=999999")
    (event,) = await live.rest()
    assert clock.monotonic() - began == 3.0
    assert event["type"] == "ERROR"
    assert event["object"]["message"] == f"Timeout: Too large resource version: 999999, current: {now}"
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@asking
async def test_requested_bookmarks_are_sent_every_minute_and_before_the_end(api: Api) -> None:
    clock = api.server.world.clock
    began, start = clock.monotonic(), version(await config_map(api, "a"))
    live = await watch(
        api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=150"
    )
    silent = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}&timeoutSeconds=150")
    seen = []
    while events := await live.take(1):
        seen.append((clock.monotonic() - began, events[0]["type"], version(events[0]["object"]) - start))
        if len(seen) == 1:
            await api.post("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    later = api.server.index.version - start
    assert seen == [(60.0, "BOOKMARK", 0), (120.0, "BOOKMARK", later), (148.0, "BOOKMARK", later)]
    assert later > 0
    assert clock.monotonic() - began == 150.0
    assert await silent.rest() == []


@asking
async def test_a_short_watch_has_no_bookmark_before_its_end(api: Api) -> None:
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion=99999&allowWatchBookmarks=true&timeoutSeconds=2")
    assert await live.rest() == []


@asking
async def test_a_watch_of_tables_names_the_columns_in_its_first_event_alone(api: Api) -> None:
    await config_map(api, "a", data={"k": "1"})
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true", accept=TABLE)
    await api.merge(f"{CONFIG_MAPS}/a", {"data": {"j": "2"}})
    await api.delete(f"{CONFIG_MAPS}/a")
    events = await live.take(4)
    tables = [event["object"] for event in events]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "MODIFIED", "DELETED"]
    assert [column["name"] for column in tables[0]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [table["columnDefinitions"] for table in tables[1:]] == [None, None, None]
    assert [table["rows"][0]["cells"][:2] for table in tables] == [["a", 1], ["", 0], ["a", 2], ["a", 2]]
    assert [table["rows"][0]["object"]["kind"] for table in tables] == ["PartialObjectMetadata"] * 4
    assert tables[1]["rows"][0]["object"]["metadata"]["annotations"] == END
    assert [version(table) for table in tables] == [version(table["rows"][0]["object"]) for table in tables]


@pytest.mark.parametrize(
    ("include", "kinds"), [("None", [None, "PartialObjectMetadata"]), ("Object", ["ConfigMap"] * 2)]
)
def test_a_table_includes_the_requested_part_of_its_objects(include: str, kinds: list[str | None]) -> None:
    @asking
    async def run(api: Api) -> None:
        await config_map(api, "a")
        query = f"watch=1&allowWatchBookmarks=true&includeObject={include}"
        live = await watch(api, f"{CONFIG_MAPS}?{query}", accept=TABLE)
        rows = [event["object"]["rows"][0] for event in await live.take(2)]
        assert [row["object"] and row["object"]["kind"] for row in rows] == kinds

    run()


@asking
async def test_a_watch_of_metadata_has_only_metadata(api: Api) -> None:
    await config_map(api, "a", data={"k": "1"})
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true", accept=PARTIAL)
    await api.delete(f"{CONFIG_MAPS}/a")
    events = await live.take(3)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "DELETED"]
    for event in events:
        assert set(event["object"]) == {"kind", "apiVersion", "metadata"}
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert event["object"]["apiVersion"] == "meta.k8s.io/v1"
    assert events[1]["object"]["metadata"]["annotations"] == END


@asking
async def test_a_watch_of_lists_of_metadata_ends_with_its_first_event(api: Api) -> None:
    await config_map(api, "a")
    live = await watch(api, f"{CONFIG_MAPS}?watch=1", accept=PARTIAL.replace("Metadata", "MetadataList"))
    assert await live.rest() == []


@asking
async def test_a_client_that_accepts_only_protobuf_gets_frames(api: Api) -> None:
    await config_map(api, "a", data={"k": "1"})
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true", accept=PROTOBUF)
    assert live.content_type == f"{PROTOBUF};stream=watch"
    await api.delete(f"{CONFIG_MAPS}/a")
    events: list[Any] = []
    while len(events) < 3:
        frames, rest = protobuf.unframe(await live.chunk() or b"")
        assert rest == b""
        events += [protobuf.decode_watch_event(frame) for frame in frames]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "DELETED"]
    assert events[0]["object"]["kind"] == "ConfigMap"
    assert events[0]["object"]["data"] == {"k": "1"}
    assert events[1]["object"]["metadata"]["annotations"] == END
    gone = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion=1", accept=PROTOBUF)
    ((frame,), _) = protobuf.unframe(await gone.chunk() or b"")
    assert protobuf.decode_watch_event(frame)["object"]["code"] == 410


@asking
async def test_protobuf_beside_json_is_answered_in_json(api: Api) -> None:
    live = await watch(api, f"{CONFIG_MAPS}?watch=1", accept=f"{PROTOBUF},application/json")
    assert live.content_type == "application/json"


@asking
async def test_yaml_cannot_be_streamed(api: Api) -> None:
    for accept in ("application/yaml", "application/yaml, application/json"):
        answer = await refused(api, f"{CONFIG_MAPS}?watch=1", accept=accept)
        assert answer.code == 406
        assert answer.message == (
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch"
        )


def test_the_bookmark_of_every_built_in_kind_is_its_empty_object_as_go_writes_it() -> None:
    server = Server(Simulation(seed=1), MemoryLog())
    different = []
    for name, empty in EMPTY.items():
        group, api_version, plural = name.split("/")
        resource = server.registry.get(group, api_version, plural)
        assert resource is not None, name
        event = json.loads(WatchWriter(resource, Form()).bookmark(7))
        expected = {
            "kind": resource.gvk.kind,
            "apiVersion": resource.gvk.api_version,
            **empty,
            "metadata": {**empty["metadata"], "resourceVersion": "7"},
        }
        if event != {"type": "BOOKMARK", "object": expected}:
            different.append((name, event["object"], expected))
    assert different == []
