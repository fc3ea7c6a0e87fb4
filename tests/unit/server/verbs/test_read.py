"""get and list: resourceVersions, pages, continue tokens, selections."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
import pytest
from tests.stage.api import Api, asking

from ostinato.api.errors import BadRequest
from ostinato.server.store import index
from ostinato.server.verbs.continue_token import ContinueToken

MAPS = "/api/v1/namespaces/default/configmaps"


async def some(api: Api, names: str = "abcd") -> list[str]:
    versions = []
    for name in names:
        made = await api.post(MAPS, {"metadata": {"name": name, "labels": {"l": name}}})
        versions.append(made.body["metadata"]["resourceVersion"])
    return versions


def names(answer: Any) -> str:
    return "".join(item["metadata"]["name"] for item in answer.body["items"])


@asking
async def test_pages_show_the_list_as_it_was_when_the_first_was_read(api: Api) -> None:
    await some(api)
    first = await api.get(f"{MAPS}?limit=2")
    assert (names(first), first.body["metadata"]["remainingItemCount"]) == ("ab", 2)
    await api.delete(f"{MAPS}/c")
    await api.post(MAPS, {"metadata": {"name": "bb"}})
    second = await api.get(f"{MAPS}?limit=2&continue={first.body['metadata']['continue']}")
    assert names(second) == "cd"
    assert second.body["metadata"] == {"resourceVersion": first.body["metadata"]["resourceVersion"]}


@asking
async def test_an_expired_page_returns_a_token_for_the_current_state(api: Api) -> None:
    await some(api)
    token = (await api.get(f"{MAPS}?limit=2")).body["metadata"]["continue"]
    await api.post(MAPS, {"metadata": {"name": "e"}})
    await api.server.world.clock.sleep(index.HISTORY_SECONDS + 1)
    await api.post(MAPS, {"metadata": {"name": "f"}})
    expired = await api.get(f"{MAPS}?limit=2&continue={token}")
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    rest = await api.get(f"{MAPS}?continue={expired.body['metadata']['continue']}")
    assert names(rest) == "cdef"


@asking
async def test_a_version_that_is_too_old_cannot_be_listed_exactly(api: Api) -> None:
    versions = await some(api)
    await api.server.world.clock.sleep(index.HISTORY_SECONDS + 1)
    await api.post(MAPS, {"metadata": {"name": "e"}})
    expired = await api.get(f"{MAPS}?resourceVersion={versions[0]}&resourceVersionMatch=Exact")
    assert (expired.code, expired.body["reason"]) == (410, "Expired")


@asking
async def test_versions_of_lists(api: Api) -> None:
    versions = await some(api)
    assert names(await api.get(f"{MAPS}?resourceVersion={versions[1]}&resourceVersionMatch=Exact")) == "ab"
    assert names(await api.get(f"{MAPS}?resourceVersion={versions[1]}&limit=1")) == "a"
    assert names(await api.get(f"{MAPS}?resourceVersion={versions[1]}")) == "abcd"
    assert names(await api.get(f"{MAPS}?resourceVersion={versions[1]}&resourceVersionMatch=NotOlderThan")) == "abcd"
    assert names(await api.get(f"{MAPS}?resourceVersion=0&limit=1")) == "abcd"


@asking
async def test_a_read_waits_briefly_for_a_future_resource_version(api: Api) -> None:
    await some(api, "a")
    wanted = api.server.index.version + 1
    waiting = asyncio.ensure_future(api.get(f"{MAPS}/a?resourceVersion={wanted}"))
    await api.server.world.clock.sleep(1)
    assert not waiting.done()
    await api.post(MAPS, {"metadata": {"name": "b"}})
    assert (await waiting).code == 200
    late = await api.get(f"{MAPS}?resourceVersion={wanted + 5}")
    assert (late.code, late.body["reason"]) == (504, "Timeout")
    assert late.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/a?resourceVersion=abc", 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint'),
        ("/a?export=1", 400, "the export parameter, deprecated since v1.14, is no longer supported"),
        ("?resourceVersion=abc", 400, 'invalid resource version: resourceVersion: Invalid value: "abc"'),
        ("/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ("/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        ("/none", 404, 'configmaps "none" not found'),
    ],
)
def test_an_unreadable_request_is_rejected(path: str, code: int, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await some(api, "a")
        refused = await api.get(MAPS + path)
        assert refused.code == code
        assert refused.message.startswith(message)

    talk()


@asking
async def test_a_token_does_not_lead_out_of_its_namespace(api: Api) -> None:
    await some(api)
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    await api.post("/api/v1/namespaces/other/configmaps", {"metadata": {"name": "z"}})
    token = (await api.get(f"{MAPS}?limit=1")).body["metadata"]["continue"]
    assert names(await api.get(f"/api/v1/namespaces/other/configmaps?continue={token}")) == "z"


def token(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()


GOOD = {"v": "meta.k8s.io/v1", "rv": 5, "start": "a/b"}


def test_a_token_reads_back() -> None:
    assert ContinueToken.decode(ContinueToken(5, "ns/name").encode()) == ContinueToken(5, "ns/name")
    assert ContinueToken.decode(token({**GOOD, "start": "/a"})) == ContinueToken(5, "a")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a b", "illegal base64 data at input byte 1"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("abc", "invalid character 'i' looking for beginning of value"),
        (token([]), "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (
            token({**GOOD, "rv": "5"}),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (token({**GOOD, "v": "x"}), "server does not recognize this encoded version x"),
        (token({**GOOD, "rv": 0}), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (token({**GOOD, "start": ""}), "encoded start key empty (version meta.k8s.io/v1)"),
        (token({**GOOD, "start": "../x"}), "../x"),
    ],
)
def test_an_invalid_continue_token_is_rejected_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(BadRequest) as refused:
        ContinueToken.decode(text)
    assert refused.value.message == f"invalid continue token: continue key is not valid: {why}"
