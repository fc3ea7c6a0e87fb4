"""Bodies: kinds, unknown and duplicate fields, in every media type."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.stage.api import Api, asking

from ostinato.api import protobuf
from ostinato.server.request import Request, Response

MAPS = "/api/v1/namespaces/default/configmaps"


async def send(api: Api, body: bytes, query: str = "", content_type: str = "application/json") -> tuple[int, Any, Any]:
    told = {"authorization": "Bearer admin", "content-type": content_type}
    answer = await api.server.handle(Request("POST", MAPS, query, told, body=body))
    assert isinstance(answer, Response)
    warnings = [value for name, value in answer.headers if name == "Warning"]
    return answer.status, msgspec.json.decode(answer.body), warnings


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse"),
        (b"[1]", "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json"),
        (b'{"kind": 1}', "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind"),
        (
            b'{"metadata": []}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array',
        ),
        (b'{"kind": "Secret"}', 'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to ('),
        (b'{"kind": "Odd"}', 'Odd in version "v1" cannot be handled as a ConfigMap: no kind "Odd" is registered for'),
        (b'{"apiVersion": "a/b/c"}', "the object provided is unrecognized (must be of type ConfigMap): unexpected Gro"),
    ],
)
def test_a_body_of_another_kind_is_refused(body: bytes, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        code, answer, _ = await send(api, body)
        assert code == 400
        assert answer["message"].startswith(message)

    talk()


@asking
async def test_a_removed_version_and_an_unknown_one_have_different_errors(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    old = await api.post(path, {"apiVersion": "extensions/v1beta1", "kind": "Deployment"})
    assert old.message.startswith("the API version in the data (extensions/v1beta1) does not match")
    never = await api.post(path, {"apiVersion": "apps/v7", "kind": "Deployment"})
    assert "no kind" in never.message


@asking
async def test_the_last_of_duplicate_keys_counts_and_is_reported(api: Api) -> None:
    body = b'{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}, "data": {"j": "3"}, "odd": 1}'
    code, answer, warnings = await send(api, body)
    assert (code, answer["data"]) == (201, {"k": "2", "j": "3"})
    assert warnings == [
        '299 - "duplicate field \\"data.k\\""',
        '299 - "duplicate field \\"data\\""',
        '299 - "unknown field \\"odd\\""',
    ]
    code, answer, warnings = await send(api, body.replace(b'"a"', b'"b"'), "fieldValidation=Ignore")
    assert (code, answer["data"], warnings) == (201, {"k": "2", "j": "3"}, [])
    code, answer, _ = await send(api, body, "fieldValidation=Strict")
    assert code == 400
    assert answer["message"].endswith('duplicate field "data.k", duplicate field "data", unknown field "odd"')


@asking
async def test_duplicate_keys_in_yaml_are_reported_with_their_lines(api: Api) -> None:
    body = b"metadata: {name: a}\ndata: {k: v}\ndata: {j: v}\nodd: 1\n"
    code, answer, warnings = await send(api, body, content_type="application/yaml")
    assert (code, answer["data"]) == (201, {"j": "v"})
    assert warnings == ['299 - "line 3: key \\"data\\" already set in map"', '299 - "unknown field \\"odd\\""']


@asking
async def test_protobuf_is_read(api: Api) -> None:
    body = protobuf.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    code, answer, _ = await send(api, body, content_type="application/vnd.kubernetes.protobuf")
    assert (code, answer["data"]) == (201, {"k": "v"})


@asking
async def test_null_is_an_empty_body(api: Api) -> None:
    for body, content_type in ((b"null", "application/json"), (b"", "application/yaml")):
        code, answer, _ = await send(api, body, content_type=content_type)
        assert (code, answer["message"][:24]) == (422, 'ConfigMap "" is invalid:')


@asking
async def test_an_empty_list_of_managed_fields_forgets_all_owners(api: Api) -> None:
    made = (await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})).body
    assert made["metadata"]["managedFields"]
    forgotten = await api.put(f"{MAPS}/a", {**made, "metadata": {**made["metadata"], "managedFields": []}})
    assert "managedFields" not in forgotten.body["metadata"]


@asking
async def test_a_field_without_a_name_is_an_unknown_field(api: Api) -> None:
    made = await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x", "": 1}, "": 2})
    assert made.code == 201
    assert sorted(made.warnings) == ['299 - "unknown field \\"\\""', '299 - "unknown field \\"metadata.\\""']
    strict = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict"
    refused = await api.post(strict, {"metadata": {"name": "y", "": 1}})
    assert (refused.code, 'unknown field "metadata."' in refused.message) == (400, True)


@asking
async def test_a_field_without_a_name_is_an_unknown_field_of_a_custom_resource(api: Api) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"a": {"type": "object"}}}},
            }
        },
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "widgets.x.dev"}, "spec": spec}
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).code == 201
    widget = {
        "apiVersion": "x.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "": 1},
        "spec": {"a": {"": 1}, "": 2},
    }
    made = await api.post("/apis/x.dev/v1/namespaces/default/widgets", widget)
    assert made.code == 201
    assert made.body["spec"] == {"a": {}}
