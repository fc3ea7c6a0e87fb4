"""Patches: the three kinds that change an object, their order of steps, and rejections.

The scenarios recorded from kube-apiserver cover the messages; these tests cover the rest.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.stage.api import Answer, Api, asking
from tests.unit.server.verbs.watching import CONFIG_MAPS, config_map, version

from ostinato.server.request import Request, Response
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch
from ostinato.server.schema.decoding.unstructured import restore_error
from ostinato.server.verbs.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

A = f"{CONFIG_MAPS}/a"


async def patch(api: Api, path: str, kind: str, sent: Any) -> Answer:
    """Send a patch: text unchanged, everything else as JSON."""
    path, _, query = path.partition("?")
    data = sent.encode() if isinstance(sent, str) else json.dumps(sent).encode()
    headers = {"authorization": "Bearer admin", "content-type": kind}
    answer = await api.server.handle(Request("PATCH", path, query, headers, body=data))
    assert isinstance(answer, Response)
    warnings = tuple(value for name, value in answer.headers if name == "Warning")
    return Answer(answer.status, json.loads(answer.body), warnings)


def slowly(api: Api) -> None:
    """Delay admission, so that writes overtake each other."""

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
async def test_keys_of_maps_are_sorted_in_answers(api: Api) -> None:
    await config_map(api, "a", data={"z": "1", "a": "2"})
    answers = [await patch(api, A, MERGE_PATCH, {"data": {"m": "3"}, "metadata": {"labels": {"z": "1", "b": "2"}}})]
    answers += [await patch(api, A, JSON_PATCH, [{"op": "add", "path": "/data/c", "value": "3"}]), await api.get(A)]
    assert [[*each.body["data"]] for each in answers] == [["a", "m", "z"], ["a", "c", "m", "z"], ["a", "c", "m", "z"]]
    assert [*answers[-1].body["metadata"]["labels"]] == ["b", "z"]


@asking
async def test_a_patch_of_a_missing_object_is_not_found(api: Api) -> None:
    for kind in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        answer = await patch(api, A, kind, "nonsense")
        assert (answer.code, answer.message) == (404, 'configmaps "a" not found')


@asking
async def test_a_patch_that_changes_nothing_keeps_the_resource_version(api: Api) -> None:
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


_KIND = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type"


@asking
async def test_a_result_is_of_the_kind_of_its_path(api: Api) -> None:
    before = await config_map(api, "a", data={"a": "1"})
    for sent, code, message in (
        ({"kind": "Secret"}, 422, "illegal base64 data at input byte 0"),
        ({"kind": "ServiceAccount"}, 422, "converting (v1.ServiceAccount) to (core.ConfigMap): unknown conversion"),
        ({"kind": "List"}, 422, "converting (v1.List) to (core.ConfigMap): unknown conversion"),
        ({"kind": 5}, 422, f"{_KIND} string"),
        ({"apiVersion": "v9"}, 422, 'no kind "ConfigMap" is registered for version "v9" in scheme "'),
        ({"apiVersion": "a/b/c"}, 422, "unexpected GroupVersion string: a/b/c"),
        (
            {"apiVersion": None},
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        ({"data": {"a": 5}}, 422, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ({"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)"),
    ):
        answer = await patch(api, A, MERGE_PATCH, sent)
        assert (answer.code, message in answer.message) == (code, True), answer.message
    for kind, sent in ((MERGE_PATCH, {"kind": None}), (STRATEGIC_PATCH, {"kind": "Secret", "apiVersion": "v7"})):
        assert (await patch(api, A, kind, sent)).body == before


@asking
async def test_a_patch_that_is_none_is_refused_strictly_and_leniently(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    await config_map(api, "a", metadata={"ownerReferences": [owner]}, data={"a": "1"})
    rejected = "the server rejected our request due to an error in our request"
    into = "json: cannot unmarshal {} into Go value of type {}"
    a_map = "map[string]interface {}"
    for kind, sent, strict, lenient in (
        (JSON_PATCH, "{", "error decoding patch: unexpected end of JSON input", "unexpected end of JSON input"),
        (
            JSON_PATCH,
            "{}",
            "error decoding patch: " + into.format("object", "[]handlers.jsonPatchOp"),
            into.format("object", "jsonpatch.Patch"),
        ),
        (
            JSON_PATCH,
            "[1]",
            "error decoding patch: " + into.format("number", "handlers.jsonPatchOp"),
            into.format("number", "jsonpatch.Operation"),
        ),
        (
            JSON_PATCH,
            '[{"op":1}]',
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            rejected,
        ),
        (MERGE_PATCH, "{", "error decoding patch: unexpected end of JSON input", "Invalid JSON Patch"),
        (MERGE_PATCH, "7", "error decoding patch: " + into.format("number", a_map), "Invalid JSON Patch"),
        (MERGE_PATCH, "null", "Invalid JSON Patch", "Invalid JSON Patch"),
        (STRATEGIC_PATCH, "[]", into.format("array", a_map), into.format("array", a_map)),
        (STRATEGIC_PATCH, '{"data":[1]}', "cannot restore map from slice", "cannot restore map from slice"),
        (STRATEGIC_PATCH, '{"metadata":{"ownerReferences":[{}]}}', "merge key: uid", "merge key: uid"),
    ):
        for validation, message in (("Warn", strict), ("Ignore", lenient)):
            answer = await patch(api, f"{A}?fieldValidation={validation}", kind, sent)
            assert answer.code in (400, 422, 500)
            assert answer.message.endswith(message), answer.message


@asking
async def test_a_custom_resource_takes_two_kinds_of_patches_and_keeps_its_kind(api: Api) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).code == 201
    await api.server.world.clock.sleep(5)
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    sent = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"list": [1]}}
    assert (await api.post(widgets, sent)).code == 201
    added = await patch(api, f"{widgets}/w", JSON_PATCH, [{"op": "add", "path": "/spec/list/-", "value": 2}])
    assert added.body["spec"] == {"list": [1, 2]}
    for change, code, message in (
        ({"kind": "Other"}, 422, 'Other.example.com "w" is invalid: kind: Invalid value: "Other": must be Widget'),
        ({"apiVersion": "other/v1"}, 422, "must be example.com/v1"),
        ({"kind": None}, 422, "Object 'Kind' is missing in '{"),
        ({"apiVersion": None}, 500, "Object 'apiVersion' is missing in 'object has no apiVersion field'"),
        ({"metadata": {"resourceVersion": None}}, 422, "must be specified for an update"),
    ):
        answer = await patch(api, f"{widgets}/w", MERGE_PATCH, change)
        assert (answer.code, message in answer.message) == (code, True), answer.message
    refused = await patch(api, f"{widgets}/w", STRATEGIC_PATCH, {})
    assert (refused.code, refused.message) == (
        415,
        f"the body of the request was in an unknown format - accepted media types include: {_FOR_CUSTOM}",
    )


_FOR_CUSTOM = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"


@asking
async def test_a_patch_of_too_many_operations_is_too_large(api: Api) -> None:
    await config_map(api, "a")
    operation = {"op": "test", "path": "/metadata/name", "value": "a"}
    assert (await patch(api, A, JSON_PATCH, [operation] * 10_000)).code == 200
    answer = await patch(api, A, JSON_PATCH, [operation] * 10_001)
    assert answer.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in answer.message


@asking
async def test_duplicate_and_unknown_fields_are_reported_by_field_validation(api: Api) -> None:
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
async def test_force_needs_apply_and_content_types_are_checked(api: Api) -> None:
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
def test_a_strategic_patch_has_its_own_type_errors(error: Any, words: str) -> None:
    assert restore_error(error) == words
