"""update: resourceVersions, no-ops, immutable fields, and removal with the last finalizer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stage.api import Api, asking

from ostinato.server.admission.chain import AdmissionChain, Plugin
from ostinato.server.request import Request

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def made(api: Api, **metadata: Any) -> dict[str, Any]:
    answer = await api.post(MAPS, {"metadata": {"name": "a", **metadata}, "data": {"k": "v"}})
    assert answer.code == 201
    return answer.body


@asking
async def test_an_update_of_an_old_version_is_refused(api: Api) -> None:
    old = await made(api)
    new = await api.put(f"{MAPS}/a", {**old, "data": {"k": "w"}})
    assert new.code == 200
    refused = await api.put(f"{MAPS}/a", {**old, "data": {"k": "x"}})
    assert refused.code == 409
    assert "the object has been modified" in refused.message


@asking
async def test_an_update_that_changes_nothing_is_not_stored(api: Api) -> None:
    old = await made(api)
    before = api.server.index.version
    new = await api.put(f"{MAPS}/a", old)
    assert new.body == old
    assert api.server.index.version == before


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ("", 200, ""),
        ("0", 200, ""),
        ("abc", 500, 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ("9" * 30, 500, f'strconv.ParseUint: parsing "{"9" * 30}": value out of range'),
        ("1", 409, ""),
    ],
)
def test_the_version_of_an_update_is_that_of_the_object_or_none(version: str, code: int, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await made(api)
        answer = await api.put(f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": version}})
        assert answer.code == code
        assert answer.message.startswith(message)

    talk()


@asking
async def test_some_kinds_must_name_a_version(api: Api) -> None:
    await api.post(LEASES, {"metadata": {"name": "a"}})
    refused = await api.put(f"{LEASES}/a", {"metadata": {"name": "a"}})
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["message"] == "Invalid value: 0: must be specified for an update"


@asking
async def test_an_update_makes_the_object_where_its_kind_allows_it(api: Api) -> None:
    assert (await api.put(f"{LEASES}/a", {"metadata": {"name": "a", "resourceVersion": "7"}})).code == 201
    assert (await api.put(f"{LEASES}/b", {"metadata": {"name": "b", "uid": "u"}})).code == 409
    assert (await api.put(f"{MAPS}/a", {"metadata": {"name": "a"}})).code == 404


@asking
async def test_a_uid_in_the_body_is_a_condition(api: Api) -> None:
    await made(api)
    refused = await api.put(f"{MAPS}/a", {"metadata": {"name": "a", "uid": "other"}})
    assert refused.code == 409
    assert "Key: /registry/configmaps/default/a" in refused.message


@asking
async def test_name_and_namespace_are_those_of_the_path(api: Api) -> None:
    await made(api)
    assert "was undeterminable" in (await api.put(f"{MAPS}/a", {})).message
    assert "does not match the name on the URL" in (await api.put(f"{MAPS}/a", {"metadata": {"name": "b"}})).message
    moved = await api.put(f"{MAPS}/a", {"metadata": {"name": "a", "namespace": "b"}})
    assert "does not match the namespace sent on the request" in moved.message


@asking
async def test_an_object_is_removed_with_its_last_finalizer(api: Api) -> None:
    await made(api, finalizers=["x.y/z"])
    await api.delete(f"{MAPS}/a")
    kept = await api.ask("PATCH", f"{MAPS}/a?dryRun=All", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert "finalizers" not in kept.body["metadata"]
    assert (await api.get(f"{MAPS}/a")).code == 200
    assert (await api.merge(f"{MAPS}/a", {"metadata": {"finalizers": None}})).code == 200
    assert (await api.get(f"{MAPS}/a")).code == 404


MERGE = "application/merge-patch+json"


@asking
async def test_the_generation_cannot_be_set(api: Api) -> None:
    old = await made(api)
    new = await api.put(f"{MAPS}/a", {**old, "metadata": {**old["metadata"], "generation": 9}, "data": {}})
    assert "generation" not in new.body["metadata"]


@asking
async def test_an_object_that_changes_meanwhile_is_updated_again(api: Api) -> None:
    await made(api)

    class Slow(Plugin):
        """An admission plugin that lets other requests overtake, once."""

        waiting = True

        async def validate(self, *_: Any) -> None:
            if self.waiting:
                self.waiting = False
                other = Request(
                    "PUT",
                    f"{MAPS}/a",
                    headers={"authorization": "Bearer admin"},
                    body=b'{"metadata":{"name":"a"},"data":{"other":"1"}}',
                )
                assert (await api.server.handle(other)).status == 200

    api.server.admission = AdmissionChain([Slow()])
    changed = await api.merge(f"{MAPS}/a", {"data": {"mine": "1"}})
    assert changed.body["data"] == {"other": "1", "mine": "1"}


@asking
async def test_concurrent_writers_of_one_object_lose_no_update(api: Api) -> None:
    await made(api)
    await asyncio.gather(*(api.merge(f"{MAPS}/a", {"data": {f"k{i}": "v"}}) for i in range(20)))
    found = await api.get(f"{MAPS}/a")
    assert len(found.body["data"]) == 21
