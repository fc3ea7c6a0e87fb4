"""Watches: start, events, end."""

from __future__ import annotations

import asyncio

import pytest
from tests.stage.api import Api, asking
from tests.unit.server.verbs.watching import CONFIG_MAPS, config_map, refused, told, version, watch

from ostinato.server.store import hub, index


@asking
async def test_a_watch_from_a_version_sees_each_later_change_in_order(api: Api) -> None:
    start = version(await config_map(api, "old"))
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
    await config_map(api, "a", data={"k": "1"})
    changed = await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}})
    await api.delete(f"{CONFIG_MAPS}/a")
    events = await live.take(3)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert events[1]["object"] == changed.body
    assert events[2]["object"]["data"] == {"k": "2"}  # its last state
    assert [version(event["object"]) for event in events] == [start + 1, start + 2, start + 3]
    replayed = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
    assert await replayed.take(3) == events


@asking
async def test_a_watch_without_resource_version_begins_with_the_current_state(api: Api) -> None:
    await config_map(api, "b")
    await config_map(api, "a")
    for start in ("", "&resourceVersion=0", "&resourceVersion=00"):
        live = await watch(api, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=9{start}")
        assert told(await live.rest()) == [("ADDED", "a"), ("ADDED", "b")]


@asking
async def test_many_initial_events_are_sent_in_several_chunks(api: Api) -> None:
    for number in range(5):
        await config_map(api, f"large-{number}", data={"k": "x" * 500_000})
    live = await watch(api, f"{CONFIG_MAPS}?watch=1")
    first = await live.chunk()
    assert first is not None
    assert first.count(b"\n") == 3
    await config_map(api, "late")
    assert told(await live.take(3)) == [("ADDED", "large-3"), ("ADDED", "large-4"), ("ADDED", "late")]


@asking
async def test_an_object_that_enters_a_selector_is_added_and_one_that_leaves_is_deleted_as_it_was(api: Api) -> None:
    start = version(await config_map(api, "a", metadata={"labels": {"x": "1"}}, data={"k": "1"}))
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}&labelSelector=x%3D1")
    left = await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"x": "2"}}, "data": {"k": "2"}})
    await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "3"}})
    await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"x": "1"}}})
    await config_map(api, "other")
    await api.delete(f"{CONFIG_MAPS}/other")
    await api.delete(f"{CONFIG_MAPS}/a")
    events = await live.take(3)
    assert told(events) == [("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a")]
    assert events[0]["object"]["data"] == {"k": "1"}
    assert version(events[0]["object"]) == version(left.body)


@asking
async def test_a_watch_of_a_namespace_an_object_or_a_field_has_only_its_events(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    start = api.server.index.version
    since = f"watch=1&resourceVersion={start}"
    watches = [
        await watch(api, f"{CONFIG_MAPS}?{since}"),
        await watch(api, f"{CONFIG_MAPS}?{since}&fieldSelector=metadata.name%3Da"),
        await watch(api, f"/api/v1/configmaps?{since}&fieldSelector=metadata.namespace%3Dother"),
        await watch(api, f"/api/v1/configmaps?{since}&fieldSelector=metadata.name%3Da"),
        await watch(api, f"/api/v1/configmaps?{since}&fieldSelector=metadata.namespace%3Dother,metadata.name%3Da"),
        await watch(api, f"/api/v1/watch/namespaces/other/configmaps/b?resourceVersion={start}"),
        await watch(api, f"/api/v1/watch/configmaps?resourceVersion={start}"),
    ]
    for namespace, name in (("default", "a"), ("default", "b"), ("other", "a"), ("other", "b")):
        await config_map(api, name, namespace=namespace)
    await config_map(api, "end")
    await config_map(api, "end", namespace="other")
    seen = []
    for live in watches:
        reading = asyncio.create_task(live.rest())
        await api.server.world.clock.sleep(1)
        reading.cancel()
        seen.append([(e["object"]["metadata"]["namespace"], e["object"]["metadata"]["name"]) for e in live._read])
    assert seen == [
        [("default", "a"), ("default", "b"), ("default", "end")],
        [("default", "a")],
        [("other", "a"), ("other", "b"), ("other", "end")],
        [("default", "a"), ("other", "a")],
        [("other", "a")],
        [("other", "b")],
        [("default", "a"), ("default", "b"), ("other", "a"), ("other", "b"), ("default", "end"), ("other", "end")],
    ]


@asking
async def test_a_watch_by_a_field_of_the_kind_sees_it_enter_and_leave(api: Api) -> None:
    path = "/api/v1/namespaces?watch=1&timeoutSeconds=9&fieldSelector="
    active = await watch(api, f"{path}status.phase%3DActive,metadata.name%3Dx")
    ending = await watch(api, f"{path}status.phase!%3DActive")
    await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    await api.delete("/api/v1/namespaces/x")
    assert told(await active.rest()) == [("ADDED", "x"), ("DELETED", "x")]
    assert told(await ending.rest()) == [("ADDED", "x")]
    answer = await refused(api, f"{CONFIG_MAPS}?watch=1&fieldSelector=data.k%3Dv")
    assert answer.code == 400
    assert answer.message == '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'


@asking
async def test_a_cluster_scoped_object_is_watched_by_its_name(api: Api) -> None:
    live = await watch(api, "/api/v1/watch/namespaces/default?timeoutSeconds=5")
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    await api.merge("/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}})
    assert told(await live.rest()) == [("ADDED", "default"), ("MODIFIED", "default")]


@asking
async def test_a_name_in_the_path_and_another_in_the_selector_are_refused(api: Api) -> None:
    path = "/api/v1/watch/namespaces/default/configmaps/a"
    answer = await refused(api, f"{path}?fieldSelector=metadata.name%3Db")
    assert (answer.code, answer.message) == (400, "fieldSelector metadata.name doesn't match requested name")
    live = await watch(api, f"{path}?fieldSelector=metadata.name%3Da&timeoutSeconds=1")
    assert await live.rest() == []


@asking
async def test_a_terminating_object_is_modified_before_it_is_deleted(api: Api) -> None:
    start = version(await config_map(api, "a", metadata={"finalizers": ["example.com/f"]}))
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
    await api.delete(f"{CONFIG_MAPS}/a")
    await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}, "data": {"k": "last"}})
    dying, gone = await live.take(2)
    assert (dying["type"], gone["type"]) == ("MODIFIED", "DELETED")
    assert "data" not in gone["object"]  # its state before the last write
    assert gone["object"]["metadata"]["finalizers"] == ["example.com/f"]
    assert version(gone["object"]) == version(dying["object"]) + 1


@asking
async def test_writes_that_change_nothing_and_dry_runs_emit_no_event(api: Api) -> None:
    start = version(await config_map(api, "a", data={"k": "1"}))
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
    await api.put(f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    await api.merge(f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"k": "2"}})
    await api.delete(f"{CONFIG_MAPS}/a?dryRun=All")
    await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "3"}})
    (event,) = await live.take(1)
    assert event["object"]["data"] == {"k": "3"}


@asking
async def test_a_watch_from_a_future_resource_version_is_silent_until_then(api: Api) -> None:
    start = version(await config_map(api, "a")) + 2
    live = await watch(
        api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=300"
    )
    await api.server.world.clock.sleep(130)  # no bookmark either
    for number in range(4):
        await config_map(api, f"new-{number}")
    assert told(await live.take(2)) == [("ADDED", "new-2"), ("ADDED", "new-3")]


@asking
async def test_a_watch_from_a_compacted_resource_version_ends_with_an_error_event(api: Api) -> None:
    oldest = api.server.index.compacted
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={oldest - 1}")
    (event,) = await live.rest()
    assert event == {
        "type": "ERROR",
        "object": {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"too old resource version: {oldest - 1} ({oldest})",
            "reason": "Expired",
            "code": 410,
        },
    }
    assert len(api.server.index.collections["configmaps"].hub) == 0


def test_a_watch_cannot_begin_before_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "HISTORY_EVENTS", 2)

    @asking
    async def run(api: Api) -> None:
        start = version(await config_map(api, "a"))
        for name in ("b", "c", "d"):
            await config_map(api, name)
        gone = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
        assert [event["object"]["code"] for event in await gone.rest()] == [410]
        kept = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start + 1}")
        assert told(await kept.take(2)) == [("ADDED", "c"), ("ADDED", "d")]

    run()


@asking
async def test_a_watch_with_bad_options_does_not_begin(api: Api) -> None:
    wrong = 'resourceVersion: Invalid value: "{0}": strconv.ParseUint: parsing "{0}": '
    large = "9" * 5000
    for query, code, message in (
        ("resourceVersion=abc", 500, wrong.format("abc") + "invalid syntax"),
        ("resourceVersion=-1", 500, wrong.format("-1") + "invalid syntax"),
        (f"resourceVersion={large}", 500, wrong.format(large) + "value out of range"),
        ("timeoutSeconds=soon", 400, 'strconv.ParseInt: parsing "soon": invalid syntax'),
        ("sendInitialEvents=true", 422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ("continue=abc", 422, "resourceVersionMatch is forbidden when continue is provided"),
        ("resourceVersion=5&resourceVersionMatch=NotOlderThan", 422, "forbidden for watch unless sendInitialEvents"),
    ):
        answer = await refused(api, f"{CONFIG_MAPS}?watch=1&{query}")
        assert (answer.code, message in answer.message) == (code, True), answer.message


@asking
async def test_a_watch_ends_when_its_time_is_up(api: Api) -> None:
    clock = api.server.world.clock
    began = clock.monotonic()
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=7")
    assert await live.rest() == []
    assert clock.monotonic() - began == 7.0
    assert await (await watch(api, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=-1")).rest() == []
    assert clock.monotonic() - began == 7.0
    for zero in ("", "&timeoutSeconds=0"):
        began = clock.monotonic()
        await (await watch(api, f"{CONFIG_MAPS}?watch=1{zero}")).rest()
        assert 1800 <= clock.monotonic() - began <= 3600


@asking
async def test_a_watch_ends_with_its_server_and_with_its_kind(api: Api) -> None:
    secrets = await watch(api, "/api/v1/secrets?watch=1")
    reading = asyncio.create_task(secrets.rest())
    await api.server.world.clock.sleep(1)
    api.server.index.collections["secrets"].hub.close()
    assert await reading == []
    live = await watch(api, f"{CONFIG_MAPS}?watch=1")
    reading = asyncio.create_task(live.rest())
    await api.server.world.clock.sleep(1)
    await config_map(api, "a")
    await api.server.close()
    assert told(await reading) == [("ADDED", "a")]


def test_a_watcher_that_cannot_keep_up_is_ended_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BACKLOG_EVENTS", 3)

    @asking
    async def run(api: Api) -> None:
        live = await watch(api, f"{CONFIG_MAPS}?watch=1")
        await config_map(api, "0")
        await live.take(1)
        for number in range(1, 7):
            await config_map(api, str(number))
        events = await live.rest()
        assert told(events) == [("ADDED", "1"), ("ADDED", "2"), ("ADDED", "3")]
        again = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={version(events[-1]['object'])}")
        assert told(await again.take(3)) == [("ADDED", "4"), ("ADDED", "5"), ("ADDED", "6")]

    run()


@asking
async def test_an_event_is_encoded_once_for_all_watchers_of_one_form(api: Api) -> None:
    start = api.server.index.version
    await config_map(api, "a")
    event = api.server.index.collections["configmaps"].history[-1]
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    for forms, accept in enumerate(("application/json", partial, "application/vnd.kubernetes.protobuf", table), 1):
        for path in (CONFIG_MAPS, "/api/v1/configmaps"):
            live = await watch(api, f"{path}?watch=1&resourceVersion={start}", accept=accept)
            assert await live.chunk() in event.encoded.values()
        assert len(event.encoded) == forms


@asking
async def test_a_watch_that_is_not_read_is_ended_by_closing_it(api: Api) -> None:
    hub_of_watch = api.server.index.collections["configmaps"].hub
    live = await watch(api, f"{CONFIG_MAPS}?watch=1")
    assert len(hub_of_watch) == 1
    await live.close()
    assert len(hub_of_watch) == 0


@asking
async def test_a_watch_on_the_path_of_an_object_is_a_plain_get(api: Api) -> None:
    await config_map(api, "a")
    assert (await api.get(f"{CONFIG_MAPS}/a?watch=1")).body["metadata"]["name"] == "a"


@asking
async def test_old_watch_paths_are_only_read(api: Api) -> None:
    answer = await api.post("/api/v1/watch/namespaces/default/configmaps", {})
    assert answer.code == 405


@asking
async def test_a_watch_with_an_interval_gets_the_events_of_that_time_in_one_piece(api: Api) -> None:
    start = version(await config_map(api, "old"))
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={start}"
    live = await watch(api, path, **{"ostinato-watch-interval": "0.2"})
    clock = api.server.world.clock

    async def writes() -> None:
        for name in ("a", "b", "c"):
            await config_map(api, name)
            await clock.sleep(0.15)

    writing = asyncio.create_task(writes())
    chunk = await live.chunk()
    assert chunk is not None
    assert chunk.count(b"\n") == 2
    await writing
    assert told(await live.take(1)) == [("ADDED", "c")]
    await live.close()


@asking
async def test_many_events_of_an_interval_are_merged_by_object(api: Api) -> None:
    changed = await config_map(api, "changed")
    deleted = await config_map(api, "deleted")
    start = version(deleted)
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={start}"
    few = await watch(api, path, **{"ostinato-watch-interval": "0.1; merge=9"})
    many = await watch(api, path, **{"ostinato-watch-interval": "0.1; merge=5"})
    for text in ("1", "2"):
        await api.put(f"{CONFIG_MAPS}/changed", {**changed, "metadata": {"name": "changed"}, "data": {"text": text}})
    created = await config_map(api, "created")
    await api.put(f"{CONFIG_MAPS}/created", {**created, "data": {"text": "3"}})
    await api.delete(f"{CONFIG_MAPS}/deleted")
    await config_map(api, "short")
    await api.delete(f"{CONFIG_MAPS}/short")
    await config_map(api, "deleted")
    every = [
        ("MODIFIED", "changed"),
        ("MODIFIED", "changed"),
        ("ADDED", "created"),
        ("MODIFIED", "created"),
        ("DELETED", "deleted"),
        ("ADDED", "short"),
        ("DELETED", "short"),
        ("ADDED", "deleted"),
    ]
    assert told(await few.take(8)) == every
    events = await many.take(5)
    assert told(events) == [
        ("MODIFIED", "changed"),
        ("ADDED", "created"),
        ("DELETED", "deleted"),
        ("DELETED", "short"),
        ("ADDED", "deleted"),
    ]
    assert [each["object"].get("data", {}).get("text") for each in events[:2]] == ["2", "3"]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    assert versions == sorted(versions)
    await few.close()
    await many.close()


@asking
async def test_a_watch_of_an_interval_may_ask_for_the_identity_of_deleted_objects_alone(api: Api) -> None:
    created = await config_map(api, "a")
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version(created)}"
    brief = await watch(api, path, **{"ostinato-watch-interval": "0.1; deleted=identity"})
    merged = await watch(api, path, **{"ostinato-watch-interval": "0.1; merge=1; deleted=identity"})
    whole = await watch(api, path)
    await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}, "metadata": {"labels": {"x": "1"}}})
    await config_map(api, "b")
    await api.delete(f"{CONFIG_MAPS}/a")
    every = await whole.take(3)
    assert told(every) == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    last = every[-1]["object"]
    assert last["data"] == {"k": "2"}
    identity = {name: last["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
    deleted = {"type": "DELETED", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": identity}}
    assert await brief.take(3) == [*every[:2], deleted]
    assert await merged.take(2) == [every[1], deleted]
    for each in (brief, merged, whole):
        await each.close()


@asking
async def test_the_interval_of_a_watch_is_checked(api: Api) -> None:
    for text in ("2", "-1", "nan", "soon", "1e-1", "0.5; merge=", "0.5; merge=-1", "0.5; deleted=no", "0.5; other=1"):
        answer = await refused(api, f"{CONFIG_MAPS}?watch=1", **{"ostinato-watch-interval": text})
        assert answer.code == 400
        assert "Ostinato-Watch-Interval" in answer.body["message"]


@asking
async def test_the_last_state_of_a_deleted_object_differs_in_its_resource_version_alone(api: Api) -> None:
    texts = {f"k{number}": f'"resourceVersion":"{number}"' for number in range(9)}
    metadata = {"labels": {"resourceVersion": "1"}, "annotations": texts}
    stored = await config_map(api, "a", metadata=metadata, data=texts)
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={version(stored)}")
    await api.delete(f"{CONFIG_MAPS}/a")
    [event] = await live.take(1)
    stored["metadata"]["resourceVersion"] = str(version(stored) + 1)
    assert (event["type"], event["object"]) == ("DELETED", stored)


@asking
async def test_many_events_are_sent_in_several_pieces(api: Api) -> None:
    start = version(await config_map(api, "old"))
    live = await watch(api, f"{CONFIG_MAPS}?watch=1&resourceVersion={start}")
    for number in range(5):
        await config_map(api, f"large-{number}", data={"k": "x" * 40_000})
    first = await live.chunk()
    assert first is not None
    assert first.count(b"\n") == 2
    assert told(await live.take(3)) == [("ADDED", f"large-{number}") for number in (2, 3, 4)]
