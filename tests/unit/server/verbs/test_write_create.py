"""create: names, system fields, owners, dry runs, and bodies."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from tests.stage.api import Api, asking

from ostinato.server.admission.chain import AdmissionChain, Plugin
from ostinato.server.request import Request, Response
from ostinato.server.verbs.create import GENERATED_NAMES
from ostinato.world import Ids

MAPS = "/api/v1/namespaces/default/configmaps"


@asking
async def test_the_server_sets_uid_time_and_resource_version(api: Api) -> None:
    meta = {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x"}
    made = await api.post(MAPS, {"metadata": meta})
    assert made.code == 201
    found = made.body["metadata"]
    assert found["uid"] != "mine"
    assert not found["creationTimestamp"].startswith("2001")
    assert found["resourceVersion"].isdigit()
    assert "selfLink" not in found


@asking
async def test_a_generated_name_is_one_that_is_free(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "x-aaaaa"}})
    with patch.object(Ids, "suffix", side_effect=["aaaaa", "bbbbb"]):
        made = await api.post(MAPS, {"metadata": {"generateName": "x-"}})
    assert made.body["metadata"]["name"] == "x-bbbbb"


@asking
async def test_if_no_generated_name_is_free_the_client_must_retry(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "x-aaaaa"}})
    with patch.object(Ids, "suffix", return_value="aaaaa") as suffix:
        refused = await api.post(MAPS, {"metadata": {"generateName": "x-"}})
    assert refused.code == 409
    assert refused.body["details"]["retryAfterSeconds"] == 1
    assert suffix.call_count == GENERATED_NAMES


@asking
async def test_an_object_that_is_being_deleted_still_has_its_name(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}})
    await api.delete(f"{MAPS}/a")
    refused = await api.post(MAPS, {"metadata": {"name": "a"}})
    assert refused.message == 'object is being deleted: configmaps "a" already exists'


@asking
async def test_two_creates_at_once_make_one_object(api: Api) -> None:
    made = await asyncio.gather(*(api.post(MAPS, {"metadata": {"name": "a"}}) for _ in range(5)))
    assert sorted(answer.code for answer in made) == [201, 409, 409, 409, 409]


@asking
async def test_an_object_that_another_makes_meanwhile_is_not_overwritten(api: Api) -> None:
    class Slow(Plugin):
        """An admission plugin that lets another request overtake, once."""

        waiting = True

        async def validate(self, *_: Any) -> None:
            if self.waiting:
                self.waiting = False
                assert (await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"first": "1"}})).code == 201

    api.server.admission = AdmissionChain([Slow()])
    assert (await api.post(MAPS, {"metadata": {"name": "a"}})).code == 409
    assert (await api.get(f"{MAPS}/a")).body["data"] == {"first": "1"}


@asking
async def test_a_dry_run_stores_nothing_and_returns_the_result(api: Api) -> None:
    before = api.server.index.version
    made = await api.post(f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert made.code == 201
    assert "resourceVersion" not in made.body["metadata"]
    assert (await api.get(f"{MAPS}/a")).code == 404
    assert api.server.index.version == before


@asking
async def test_the_body_may_be_bytes(api: Api) -> None:
    body = b'{"metadata": {"name": "a"}}'
    answer = await api.server.handle(Request("POST", MAPS, headers={"authorization": "Bearer admin"}, body=body))
    assert isinstance(answer, Response)
    assert answer.status == 201
    assert answer.body.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"')


@asking
async def test_repeated_owners_are_dropped_with_a_warning(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    made = await api.post(MAPS, {"metadata": {"name": "a", "ownerReferences": [owner, owner, {**owner, "name": "q"}]}})
    assert made.body["metadata"]["ownerReferences"] == [owner, {**owner, "name": "q"}]
    assert len(made.warnings) == 1
    assert made.warnings[0].endswith('duplicate UID(s) observed: u"')


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.36 (linux)", "kubectl"),
        ("", "unknown"),
        ("a\x07b\u00e9/1", "ab\u00e9"),
        ("x" * 200, "x" * 128),
        ("\u00e9" * 100, "\u00e9" * 64),
    ],
)
def test_the_field_manager_is_the_beginning_of_the_user_agent(agent: str, manager: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        made = await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}}, user_agent=agent)
        assert made.body["metadata"]["managedFields"][0]["manager"] == manager

    talk()


@asking
async def test_a_namespace_must_be_there_to_create_in_it(api: Api) -> None:
    refused = await api.post("/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}})
    assert (refused.code, refused.message) == (404, 'namespaces "nope" not found')


@pytest.mark.parametrize(("version", "code"), [("5", 500), ("0", 201), ("abc", 201), ("", 201)])
def test_a_new_object_has_no_version(version: str, code: int) -> None:
    @asking
    async def talk(api: Api) -> None:
        made = await api.post(MAPS, {"metadata": {"name": "a", "resourceVersion": version}})
        assert made.code == code

    talk()


@asking
async def test_a_dry_run_of_an_existing_object_is_rejected(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a"}})
    assert (await api.post(f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})).code == 409


class _Moving(Plugin):
    """An admission plugin that changes the name and namespace of objects."""

    def __init__(self, **metadata: str) -> None:
        self._metadata = metadata

    async def mutate(self, context: Any, operation: str, obj: Any, old: Any, options: Any) -> None:
        obj["metadata"].update(self._metadata)


@asking
async def test_admission_cannot_move_an_object_out_of_the_authorized_namespace(api: Api) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    assert (await api.post(maps, {"metadata": {"name": "there"}})).code == 201
    api.server.admission = AdmissionChain((_Moving(namespace="kube-system"),))
    made = await api.post(maps, {"metadata": {"name": "here"}})
    assert (made.code, made.body["reason"]) == (400, "BadRequest")
    assert (await api.merge(f"{maps}/there", {"data": {"a": "b"}})).code in (400, 422)
    api.server.admission = AdmissionChain((_Moving(name="elsewhere"),))
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
    assert (await api.apply(f"{maps}/applied?fieldManager=test", applied)).code == 400
    assert (await api.merge(f"{maps}/there", {"data": {"a": "b"}})).code in (400, 422)
    names = [item["metadata"]["name"] for item in (await api.get("/api/v1/configmaps")).body["items"]]
    assert not {"here", "applied", "elsewhere"} & set(names)
