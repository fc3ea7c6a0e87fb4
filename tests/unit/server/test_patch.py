"""Patches: the three kinds that change an object, their order of steps, and what is refused.

The conversations recorded from a kube-apiserver say what is told in which words; here is what they leave open.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.unit.server.asking import Answer, Api, asking
from tests.unit.server.watching import CONFIG_MAPS, config_map, version

from ostinato.server.request import Request, Response
from ostinato.server.schema.builtin import BadValue, TypeMismatch
from ostinato.server.schema.restore import restore_error
from ostinato.server.verbs.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

A = f"{CONFIG_MAPS}/a"


async def patch(api: Api, path: str, kind: str, sent: Any) -> Answer:
    """Send a patch: text as it is, everything else as JSON."""
    path, _, query = path.partition("?")
    data = sent.encode() if isinstance(sent, str) else json.dumps(sent).encode()
    headers = {"authorization": "Bearer admin", "content-type": kind}
    answer = await api.server.handle(Request("PATCH", path, query, headers, body=data))
    assert isinstance(answer, Response)
    warnings = tuple(value for name, value in answer.headers if name == "Warning")
    return Answer(answer.status, json.loads(answer.body), warnings)


def slowly(api: Api) -> None:
    """Let admission take its time, so that writes overtake each other."""

    class Slow:
        async def mutate(self, *args: Any) -> None:
            await api.server.world.clock.sleep(api.server.world.rng.uniform(0, 1))

        async def validate(self, *args: Any) -> None:
            return None

    api.server.admission = Slow()  # type: ignore[assignment]


@asking
async def test_each_kind_of_patch_changes_an_object(api: Api) -> None:
    await config_map(api, "a", data={"a": "1", "b": "2"})
    added = await patch(api, A, JSON_PATCH, [{"op": "add", "path": "/data/c", "value": "3"}])
    assert added.body["data"] == {"a": "1", "b": "2", "c": "3"}
    merged = await patch(api, A, MERGE_PATCH, {"data": {"a": None}})
    assert merged.body["data"] == {"b": "2", "c": "3"}
    replaced = await patch(api, A, STRATEGIC_PATCH, {"data": {"$patch": "replace", "z": "9"}})
    assert replaced.body["data"] == {"z": "9"}
    assert (await api.get(A)).body == replaced.body


@asking
async def test_a_patch_for_an_object_that_is_not_there_is_told_just_that(api: Api) -> None:
    for kind in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        answer = await patch(api, A, kind, "nonsense")
        assert (answer.code, answer.message) == (404, 'configmaps "a" not found')


@asking
async def test_a_patch_that_changes_nothing_keeps_the_version(api: Api) -> None:
    before = await config_map(api, "a", data={"a": "1"})
    for kind, sent in (
        (JSON_PATCH, []),
        (JSON_PATCH, [{"op": "test", "path": "/data/a", "value": "1"}]),
        (MERGE_PATCH, {"data": {"a": "1", "gone": None}}),
        (STRATEGIC_PATCH, {}),
        (STRATEGIC_PATCH, "null"),
        (MERGE_PATCH, {"metadata": {"uid": None, "creationTimestamp": None, "namespace": None, "generation": 7}}),
    ):
        assert (await patch(api, A, kind, sent)).body == before, sent


@asking
async def test_a_version_in_a_patch_is_a_precondition_and_none_is_not(api: Api) -> None:
    first = version(await config_map(api, "a"))
    held = await patch(api, A, MERGE_PATCH, {"metadata": {"resourceVersion": str(first)}, "data": {"a": "2"}})
    assert held.code == 200
    stale = await patch(api, A, MERGE_PATCH, {"metadata": {"resourceVersion": str(first)}, "data": {"a": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    for none in ("", "0", None):
        answer = await patch(api, A, MERGE_PATCH, {"metadata": {"resourceVersion": none}, "data": {"a": str(none)}})
        assert answer.body["data"] == {"a": str(none)}
    broken = await patch(api, A, MERGE_PATCH, {"metadata": {"resourceVersion": "x"}})
    assert (broken.code, broken.message) == (500, 'strconv.ParseUint: parsing "x": invalid syntax')
    other = await patch(api, A, MERGE_PATCH, {"metadata": {"uid": "another"}})
    assert other.body["details"]["causes"][0]["field"] == "metadata.uid"


@asking
async def test_a_patch_meets_the_newest_version_however_often_it_changes_meanwhile(api: Api) -> None:
    await config_map(api, "a", data={})

    slowly(api)
    answers = await asyncio.gather(*(patch(api, A, MERGE_PATCH, {"data": {f"k{n}": "v"}}) for n in range(12)))
    assert {answer.code for answer in answers} == {200}
    assert len((await api.get(A)).body["data"]) == 12
    first = version((await api.get(A)).body)
    sent = {"metadata": {"resourceVersion": str(first)}, "data": {"k0": None}}
    racing = [patch(api, A, MERGE_PATCH, {**sent, "data": {f"k{n}": None}}) for n in range(3)]
    assert sorted(answer.code for answer in await asyncio.gather(*racing)) == [200, 409, 409]


@asking
async def test_a_patch_of_too_many_operations_is_too_large(api: Api) -> None:
    await config_map(api, "a")
    operation = {"op": "test", "path": "/metadata/name", "value": "a"}
    assert (await patch(api, A, JSON_PATCH, [operation] * 10_000)).code == 200
    answer = await patch(api, A, JSON_PATCH, [operation] * 10_001)
    assert answer.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in answer.message


@asking
async def test_what_is_given_twice_or_unknown_is_told_as_the_client_asked(api: Api) -> None:
    await config_map(api, "a", data={"a": "1"})
    twice = '{"data":{"a":"2","a":"3"},"bogus":1}'
    for kind in (MERGE_PATCH, STRATEGIC_PATCH):
        warned = await patch(api, A, kind, twice)
        assert warned.warnings == (
            '299 - "duplicate field \\"data.a\\""',
            '299 - "unknown field \\"bogus\\""',
        )
        assert warned.body["data"] == {"a": "3"}
        assert (await patch(api, f"{A}?fieldValidation=Ignore", kind, twice)).warnings == ()
        strict = await patch(api, f"{A}?fieldValidation=Strict", kind, twice)
        assert strict.code == 422
        assert strict.message.endswith('strict decoding error: duplicate field "data.a", unknown field "bogus"')
    operations = '[{"op":"add","path":"/data/x","value":"1","foo":1,"value":"2"}]'
    answer = await patch(api, A, JSON_PATCH, operations)
    assert answer.warnings == (
        '299 - "json patch unknown field \\"[0].foo\\""',
        '299 - "json patch duplicate field \\"[0].value\\""',
    )


@asking
async def test_force_belongs_to_apply_alone_and_content_types_are_what_they_are(api: Api) -> None:
    await config_map(api, "a")
    answer = await patch(api, f"{A}?force=true", MERGE_PATCH, {})
    assert answer.message.endswith("force: Forbidden: may not be specified for non-apply patch")
    listed = f"{MERGE_PATCH}, x/y"
    for content_type, message in (
        ("application/json", "415: Unsupported Media Type"),
        (MERGE_PATCH.upper(), "415: Unsupported Media Type"),
        (listed, "the body of the request was in an unknown format - accepted media types include: "),
    ):
        answer = await patch(api, A, content_type, {})
        assert answer.code == 415
        assert answer.message.startswith(message)


@asking
async def test_a_patch_of_the_status_leaves_the_rest_and_a_patch_of_the_rest_the_status(api: Api) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
    answer = await patch(
        api, f"{deployments}/d/status", MERGE_PATCH, {"status": {"replicas": 3}, "spec": {"replicas": 9}}
    )
    assert (answer.body["status"], answer.body["spec"]["replicas"]) == ({"replicas": 3}, 1)
    answer = await patch(api, f"{deployments}/d", MERGE_PATCH, {"status": {"replicas": 5}, "spec": {"replicas": 9}})
    assert (answer.body["status"], answer.body["spec"]["replicas"]) == ({"replicas": 3}, 9)
    assert answer.body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TypeMismatch("string", "v1.PodSpec", "struct", "text"), "cannot restore struct from: string"),
        (TypeMismatch("array", "map[string]string", "map", []), "cannot restore map from slice"),
        (TypeMismatch("object", "[]v1.Container", "slice", {}), "cannot restore slice from map"),
        (TypeMismatch("number", "v1.RestartPolicy", "string", 5), "cannot convert int64 to v1.RestartPolicy"),
        (TypeMismatch("number", "string", "string", 5.5), "unrecognized type: string"),
        (TypeMismatch("number 1.5", "int32", "int32", 1.5), "cannot convert float64 to int32"),
        (TypeMismatch("bool", "int32", "int32", value=True), "unrecognized type: int32"),
        (TypeMismatch("string", "bool", "bool", "yes"), "unrecognized type: bool"),
        (TypeMismatch("number", "string"), "json: cannot unmarshal number into Go value of type string"),
        (
            BadValue("illegal base64 data at input byte 0"),
            "error decoding from json: illegal base64 data at input byte 0",
        ),
        (BadValue("unable to parse quantity's suffix"), "unable to parse quantity's suffix"),
    ],
)
def test_a_strategic_patch_has_words_of_its_own_for_values_that_do_not_fit(error: Any, words: str) -> None:
    assert restore_error(error) == words
