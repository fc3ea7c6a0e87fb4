"""Lists whose items responses share until an object in scope changes."""

from __future__ import annotations

import gc
import gzip
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.stage.api import Api, asking

from ostinato.api import protobuf
from ostinato.server.request import Request, Response, list_encoding
from ostinato.server.request.list_body import ListBody, ListCache
from ostinato.server.store.collection import Selected

MAPS = "/api/v1/namespaces/default/configmaps"
OTHERS = "/api/v1/namespaces/kube-system/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Counts:
    joined = 0  # objects joined to bodies
    encoded = 0  # objects encoded as protobuf


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """Count at the seams where objects become parts of a body."""
    found = Counts()
    join, encode = list_encoding._joined, protobuf.encode_item

    async def joined(context: Any, parts: list[bytes], between: bytes) -> list[bytes]:
        found.joined += len(parts)
        return await join(context, parts, between)

    def encoded(message: str, obj: Any) -> bytes:
        found.encoded += 1
        return encode(message, obj)

    monkeypatch.setattr(list_encoding, "_joined", joined)
    monkeypatch.setattr(protobuf, "encode_item", encoded)
    return found


async def respond(api: Api, path: str, accept: str = "application/json") -> Response:
    path, _, query = path.partition("?")
    headers = {"authorization": "Bearer admin", "user-agent": "test/1", "accept": accept}
    answer = await api.server.handle(Request("GET", path, query, headers))
    assert isinstance(answer, Response)
    assert answer.status == 200
    return answer


async def names(api: Api, path: str, accept: str = "application/json") -> list[str]:
    body = (await respond(api, path, accept)).body
    whole = protobuf.decode(body) if accept == PROTOBUF else msgspec.json.decode(body)
    return [item["metadata"]["name"] for item in whole["items"] or ()]


@pytest.mark.parametrize("accept", ["application/json", PROTOBUF])
@pytest.mark.parametrize("query", ["", "?limit=2", "?labelSelector=x%3D1", "?resourceVersion=0"])
def test_a_list_shows_every_write_that_was_acknowledged(accept: str, query: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        path = MAPS + query
        assert await names(api, path, accept) == []
        await api.post(MAPS, {"metadata": {"name": "b", "labels": {"x": "1"}}})
        assert await names(api, path, accept) == ["b"]
        await api.post(MAPS, {"metadata": {"name": "a", "labels": {"x": "1"}}})
        assert await names(api, path, accept) == ["a", "b"]
        await api.post(OTHERS, {"metadata": {"name": "c"}})
        assert await names(api, path, accept) == ["a", "b"]
        await api.merge(f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"changed": "yes"}})
        body = (await respond(api, path, accept)).body
        assert b"changed" in body
        await api.delete(f"{MAPS}/a")
        assert await names(api, path, accept) == ["b"]

    talk()


def test_an_unchanged_list_is_joined_once(counts: Counts) -> None:
    @asking
    async def talk(api: Api) -> None:
        for name in "abc":
            await api.post(MAPS, {"metadata": {"name": name}})
        for _ in range(5):
            assert len(await names(api, MAPS)) == 3
        assert counts.joined == 3
        await api.post(OTHERS, {"metadata": {"name": "d"}})  # another scope
        await names(api, MAPS)
        assert counts.joined == 3
        await api.delete(f"{MAPS}/a")
        await names(api, MAPS)
        assert counts.joined == 5

    talk()


def test_after_a_write_only_the_changed_object_is_encoded_again(counts: Counts) -> None:
    @asking
    async def talk(api: Api) -> None:
        for number in range(20):
            await api.post(MAPS, {"metadata": {"name": f"m-{number:02}"}})
        for _ in range(3):
            assert len(await names(api, MAPS, PROTOBUF)) == 20
        assert counts.encoded == 20
        await api.merge(f"{MAPS}/m-07", {"data": {"a": "b"}})
        await names(api, MAPS, PROTOBUF)
        assert counts.encoded == 21

    talk()


@asking
async def test_the_resource_version_and_the_continue_token_are_those_of_the_request(api: Api) -> None:
    for name in "abc":
        await api.post(MAPS, {"metadata": {"name": name}})
    first = (await api.get(f"{MAPS}?limit=1")).body["metadata"]
    made = (await api.post(OTHERS, {"metadata": {"name": "d"}})).body
    second = (await api.get(f"{MAPS}?limit=1")).body["metadata"]
    assert int(second["resourceVersion"]) == int(made["metadata"]["resourceVersion"]) > int(first["resourceVersion"])
    assert second["remainingItemCount"] == 2
    assert second["continue"] != first["continue"]
    rest = (await api.get(f"{MAPS}?continue={second['continue']}")).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c"]


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}?limit=1", "/api/v1/nodes", "/apis/apps/v1/deployments"])
def test_a_list_in_protobuf_equals_the_encoded_list_in_json(path: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        for name in "abc":
            await api.post(MAPS, {"metadata": {"name": name, "labels": {"x": "y"}}, "data": {"k": "v"}})
        await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        whole = (await api.get(path)).body
        assert (await respond(api, path, PROTOBUF)).body == protobuf.encode(whole)

    talk()


@asking
async def test_a_large_list_is_sent_in_pieces_and_compressed_once(api: Api) -> None:
    for number in range(40):
        await api.post(MAPS, {"metadata": {"name": f"m-{number}"}, "data": {"filler": "x" * 9000}})
    calls: list[int] = []

    async def run(function: Any, pieces: list[bytes]) -> Any:
        calls.append(len(pieces))
        return function(pieces)

    for _ in range(3):
        answer = await respond(api, MAPS)
        assert answer.shared is not None
        assert len(answer.parts) > 4
        assert b"".join(answer.pieces(1)) == answer.body
        whole = await answer.shared.gzip(answer.parts[0], answer.parts[-1], run)
        assert gzip.decompress(whole) == answer.body
    assert calls == [len(answer.parts) - 2]


def test_bodies_are_dropped_with_their_selection_and_beyond_the_limit() -> None:
    cache, kept = ListCache(most=100_000), [Selected() for _ in range(12)]
    for number, selected in enumerate(kept):
        cache.keep(number, selected, ListBody([b"x" * 10_000]))
        cache.find(0, kept[0])
        assert cache.size <= 100_000
    assert cache.find(0, kept[0]) is not None  # used all the time
    assert cache.find(1, kept[1]) is None
    assert cache.find(0, Selected()) is None
    kept.clear()
    del selected
    gc.collect()
    assert cache.size == 0


def test_a_body_that_is_too_large_is_not_kept() -> None:
    cache, selected = ListCache(most=10_000), Selected()
    cache.keep("a", selected, ListBody([b"x" * 20_000]))
    assert cache.size == 0
    assert cache.find("a", selected) is None
