"""Server-side apply: the steps before and after the field manager."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.stage.api import APPLY, Answer, Api, Json, asking
from tests.unit.server.verbs.test_patch import patch, slowly
from tests.unit.server.verbs.watching import CONFIG_MAPS, config_map, version

from ostinato.server.schema.decoding.base64 import Base64Error, canonical_base64

A = f"{CONFIG_MAPS}/a"
_STRICT = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
BASE64 = json.loads((Path(__file__).resolve().parents[3] / "data/server/base64.json").read_text())


def config(data: Json | None = None, **metadata: Any) -> Json:
    found: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return found if data is None else {**found, "data": data}


async def apply(api: Api, sent: Any, query: str = "fieldManager=one", path: str = A) -> Answer:
    return await patch(api, f"{path}?{query}", APPLY, sent)


def managers(answer: Answer) -> list[tuple[str, str]]:
    return [(entry["manager"], entry["operation"]) for entry in answer.body["metadata"].get("managedFields", ())]


@asking
async def test_an_apply_brings_an_object_into_being_and_then_changes_it(api: Api) -> None:
    created = await apply(api, config({"x": "1"}))
    assert (created.code, managers(created)) == (201, [("one", "Apply")])
    changed = await apply(api, config({"y": "1"}))
    assert (changed.code, changed.body["data"]) == (200, {"y": "1"})


@asking
async def test_an_apply_of_the_same_keeps_version_and_times(api: Api) -> None:
    created = await apply(api, config({"x": "1"}))
    await api.server.world.clock.sleep(5)
    assert (await apply(api, config({"x": "1"}))).body == created.body


@asking
async def test_a_conflict_is_refused_unless_it_is_forced(api: Api) -> None:
    await apply(api, config({"x": "1"}))
    refused = await apply(api, config({"x": "2"}), "fieldManager=two")
    assert (refused.code, refused.message) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.x')
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    ]
    forced = await apply(api, config({"x": "2"}), "fieldManager=two&force=true")
    assert (forced.body["data"], managers(forced)) == ({"x": "2"}, [("two", "Apply")])


@asking
async def test_a_manager_must_be_named(api: Api) -> None:
    answer = await apply(api, config(), "")
    assert answer.message.endswith("fieldManager: Required value: is required for apply patch")
    long = await apply(api, config(), "fieldManager=" + "x" * 129)
    assert (long.code, long.message) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
    )
    odd = await apply(api, config(), "fieldManager=a%07b")
    assert odd.message.endswith('fieldManager: Invalid value: "a\\ab": invalid character U+0007 (at position 1)')
    assert (await api.get(A)).code == 404


@asking
async def test_a_dry_run_stores_nothing(api: Api) -> None:
    assert (await apply(api, config({"x": "1"}), "fieldManager=one&dryRun=All")).code == 201
    assert (await api.get(A)).code == 404
    before = await apply(api, config({"x": "1"}))
    tried = await apply(api, config({"x": "2"}), "fieldManager=one&dryRun=All")
    assert tried.body["data"] == {"x": "2"}
    assert (await api.get(A)).body == before.body


@asking
async def test_preconditions_hold_for_objects_that_are_there(api: Api) -> None:
    created = await apply(api, config({"x": "1"}, resourceVersion="5"))
    assert created.code == 201  # ignored for an object that does not exist
    stale = await apply(api, config({"x": "2"}, resourceVersion=str(version(created.body) - 1)))
    assert stale.body["reason"] == "Conflict"
    other = await apply(api, config({"x": "2"}, uid="another"))
    assert other.body["details"]["causes"][0]["field"] == "metadata.uid"
    await api.delete(A)
    missing = await apply(api, config({"x": "2"}, uid="another"))
    assert missing.code == 409
    assert missing.message.endswith("specified uid another, and no existing object was found")
    broken = await apply(api, config({"x": "2"}, resourceVersion="x"))
    assert (broken.code, broken.message) == (500, 'strconv.ParseUint: parsing "x": invalid syntax')


@asking
async def test_a_configuration_is_yaml_that_names_the_object_of_its_path(api: Api) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n---\nignored: true\n"
    assert (await apply(api, text)).body["data"] == {"x": "1"}
    wrong = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value"
    for sent, code, message in (
        ("x: [", 400, "error decoding YAML: error converting YAML to JSON: yaml: "),
        ("[1]", 400, wrong.format("array")),
        ("", 400, "invalid object type: /, Kind="),
        (config(name="b"), 400, "the name of the object (b) does not match the name on the URL (a)"),
        (config(namespace="other"), 400, "the namespace of the provided object does not match the namespace sent"),
        (config(managedFields=[]), 400, "metadata.managedFields must be nil"),
        ({**config(), "bogus": 1}, 500, "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .bogus: "),
    ):
        answer = await apply(api, sent)
        assert (answer.code, answer.message[: len(message)]) == (code, message)


@asking
async def test_duplicate_keys_are_reported_by_field_validation(api: Api) -> None:
    for text in (
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}',
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', x: '2'}\n",
    ):
        line = 4 if "\n" in text else 1
        warned = await apply(api, text)
        assert warned.body["data"] == {"x": "2"}
        assert warned.warnings == (f'299 - "line {line}: key \\"x\\" already set in map"',)
        assert (await apply(api, text, "fieldManager=one&fieldValidation=Ignore")).warnings == ()
        strict = await apply(api, text, "fieldManager=one&fieldValidation=Strict")
        assert (strict.code, strict.message) == (
            400,
            f'{_STRICT}  line {line}: key "x" already set in map',
        )


@asking
async def test_fields_from_before_the_first_apply_have_an_owner(api: Api) -> None:
    await config_map(api, "a", data={"x": "1"})
    reset = await api.merge(A, {"metadata": {"managedFields": [{}]}})
    assert managers(reset) == []
    assert "before-first-apply" in (await apply(api, config({"x": "2"}))).message
    shared = await apply(api, config({"x": "1"}))
    assert managers(shared) == [("one", "Apply"), ("before-first-apply", "Update")]


@asking
async def test_a_status_is_applied_to_an_object_that_is_there(api: Api) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    status = {**kind, "status": {"replicas": 1}, "spec": {"replicas": 9}}
    missing = await apply(api, status, path=f"{deployments}/d/status")
    assert (missing.code, missing.message) == (404, 'deployments.apps "d" not found')
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await apply(api, {**kind, "spec": spec}, path=f"{deployments}/d")).code == 201
    applied = await apply(api, status, "fieldManager=two", f"{deployments}/d/status")
    assert (applied.body["status"], applied.body["spec"]["replicas"]) == ({"replicas": 1}, 1)
    (entry,) = [entry for entry in applied.body["metadata"]["managedFields"] if entry["manager"] == "two"]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:replicas": {}}})


@asking
async def test_defaults_are_not_owned_by_the_applier(api: Api) -> None:
    services = "/api/v1/namespaces/default/services/s"
    sent = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    applied = await apply(api, sent, path=services)
    assert applied.body["spec"]["type"] == "ClusterIP"
    (entry,) = applied.body["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}
    assert (await apply(api, sent, path=services)).body == applied.body


@asking
async def test_a_type_error_has_the_message_of_apply(api: Api) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "1"}}
    answer = await apply(api, secret, path="/api/v1/namespaces/default/secrets/s")
    assert answer.code == 500
    assert answer.message == (
        "failed to convert new object (/s; /v1, Kind=Secret) to proper version: unable to convert unstructured object "
        "to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 0"
    )


@asking
async def test_a_manager_may_go_on_in_another_version_of_a_kind(api: Api) -> None:
    def autoscaler(version: str, labels: Json | None = None, **spec: Any) -> Json:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        return {
            "apiVersion": f"autoscaling/{version}",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"} if labels is None else {"name": "a", "labels": labels},
            "spec": {"maxReplicas": 3, "scaleTargetRef": target, **spec},
        }

    old, new = (f"/apis/autoscaling/{v}/namespaces/default/horizontalpodautoscalers/a" for v in ("v1", "v2"))
    assert (await apply(api, autoscaler("v1", {"a": "b"}), path=old)).code == 201
    changed = await apply(api, autoscaler("v2"), path=new)
    assert (changed.code, changed.body["metadata"].get("labels")) == (200, None)
    assert (await apply(api, autoscaler("v1"), "fieldManager=two", path=old)).code == 200
    refused = await apply(api, autoscaler("v2", metrics=[None]), path=new)
    assert refused.code == 422
    assert "spec.metrics[0].type: Required value" in refused.message


@asking
async def test_a_map_of_a_custom_resource_that_loses_its_last_field_is_null_which_its_schema_refuses(api: Api) -> None:
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    spec_schema = {"type": "object", "properties": {"counts": counts, "size": {"type": "string", "default": "small"}}}
    schema = {"type": "object", "properties": {"spec": spec_schema}}
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
    path = "/apis/example.com/v1/namespaces/default/widgets/w"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    created = await apply(api, {**widget, "spec": {"counts": {"a": 1}}}, path=path)
    assert created.body["spec"] == {"counts": {"a": 1}, "size": "small"}
    emptied = await apply(api, {**widget, "spec": {"counts": {}}}, path=path)
    assert emptied.code == 422
    assert 'spec.counts: Invalid value: "null"' in emptied.message
    removed = await apply(api, {**widget, "spec": {}}, path=path)
    assert removed.body["spec"] == {"size": "small"}


@asking
async def test_applies_of_many_managers_at_once_all_succeed_the_first_creates(api: Api) -> None:
    slowly(api)
    answers = await asyncio.gather(*(apply(api, config({f"k{n}": "v"}), f"fieldManager=m{n}") for n in range(8)))
    assert sorted(answer.code for answer in answers) == [200] * 7 + [201]
    final = await api.get(A)
    assert len(final.body["data"]) == 8
    assert len(managers(final)) == 8


@asking
async def test_an_apply_after_a_concurrent_deletion_creates_the_object(api: Api) -> None:
    first = await apply(api, config({"x": "1"}))
    slowly(api)
    applying = asyncio.create_task(apply(api, config({"x": "2"})))
    await api.server.world.clock.sleep(0)
    await api.delete(A)
    answer = await applying
    assert (answer.code, answer.body["data"]) == (201, {"x": "2"})
    assert answer.body["metadata"]["uid"] != first.body["metadata"]["uid"]


@pytest.mark.parametrize("case", BASE64, ids=lambda case: repr(case["in"]))
def test_base64_is_read_as_go_reads_it(case: Json) -> None:
    if "err" in case:
        with pytest.raises(Base64Error) as caught:
            canonical_base64(case["in"])
        assert str(caught.value) == case["err"]
    else:
        assert canonical_base64(case["in"]) == case.get("out", "")
