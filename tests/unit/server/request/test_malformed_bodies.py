"""Bodies that once caused an internal error: each is rejected with kube-apiserver's message."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.stage.api import MERGE, Answer, Api, asking

from ostinato.server.request import Request, Response

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def sent(api: Api, method: str, path: str, body: bytes, media: str = "application/json") -> Answer:
    import msgspec

    path, _, query = path.partition("?")
    headers = {"authorization": "Bearer admin", "content-type": media}
    answer = await api.server.handle(Request(method, path, query, headers, body=body))
    assert isinstance(answer, Response)
    return Answer(answer.status, msgspec.json.decode(answer.body), ())


async def define(api: Api, properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    assert (await api.post(DEFINITIONS, {"metadata": {"name": "widgets.x.dev"}, "spec": spec})).code == 201


@asking
async def test_half_of_a_surrogate_pair_beside_a_repeated_key_becomes_the_replacement_character(api: Api) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    made = await sent(api, "POST", maps, b'{"metadata":{"name":"a"},"data":{"k":"1","k":"\\ud800"}}')
    assert (made.code, made.body["data"]) == (201, {"k": "\ufffd"})
    changed = await sent(api, "PUT", f"{maps}/a", b'{"x":1,"x":2,"metadata":{"name":"a"},"data":{"k":"\\udfff"}}')
    assert (changed.code, changed.body["data"]) == (200, {"k": "\ufffd"})


@asking
async def test_a_wide_integer_beside_a_repeated_key_is_a_float(api: Api) -> None:
    body = b'{"metadata":{"name":"a"},"revision":1,"revision":2,"data":{"n":99999999999999999999999}}'
    made = await sent(api, "POST", "/apis/apps/v1/namespaces/default/controllerrevisions", body)
    assert made.code == 201
    assert made.body["data"] == {"n": 1e23}


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"name": {"": ""}}, "json: cannot unmarshal object into Go struct field ObjectMeta.name of type string"),
        ({"name": 1.5}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        ([], "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
    ],
    ids=str,
)
def test_a_custom_object_of_another_kind_with_invalid_metadata(metadata: Any, why: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await define(api, {})
        body = {"apiVersion": "x.dev/v1", "kind": "X", "metadata": metadata}
        refused = await api.post("/apis/x.dev/v1/namespaces/default/widgets", body)
        assert (refused.code, refused.message) == (
            400,
            f'X in version "v1" cannot be handled as a Widget: {why}',
        )

    talk()


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("duration", "self < duration('1h')"),
        ("date-time", "self < timestamp('2030-01-01T00:00:00Z')"),
        ("byte", "size(self) < 3"),
    ],
)
def test_a_list_where_a_rule_expects_formatted_text(form: str, rule: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await define(api, {"a": {"type": "string", "format": form, "x-kubernetes-validations": [{"rule": rule}]}})
        body = {"apiVersion": "x.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": ["", ""]}}
        refused = await api.post("/apis/x.dev/v1/namespaces/default/widgets", body)
        why = f"invalid data, expected string, got []interface {{}} evaluating rule: {rule}"
        assert (refused.code, refused.message) == (
            422,
            f'Widget.x.dev "a" is invalid: spec.a: Invalid value: "string": {why}',
        )

    talk()


@asking
async def test_counts_of_a_status_below_zero(api: Api) -> None:
    controllers = "/api/v1/namespaces/default/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"a": "b"}, "template": template}
    assert (await api.post(controllers, {"metadata": {"name": "w"}, "spec": spec})).code == 201
    counts = {"replicas": -1, "readyReplicas": -1, "fullyLabeledReplicas": -1}
    refused = await api.ask("PATCH", f"{controllers}/w/status", {"status": counts}, content_type=MERGE)
    assert refused.code == 422


@asking
async def test_an_applied_configuration_without_metadata(api: Api) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await api.post(deployments, {"metadata": {"name": "d"}, "spec": spec})).code == 201
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"minReadySeconds": 1 << 31}}
    refused = await api.apply(f"{deployments}/d?fieldManager=m", applied)
    assert "failed to convert new object (/; apps/v1, Kind=Deployment) to proper version" in refused.message


@asking
async def test_a_merge_key_that_is_not_a_scalar(api: Api) -> None:
    """kube-apiserver panics and closes the connection."""
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await api.post(deployments, {"metadata": {"name": "m"}, "spec": spec})).code == 201
    for name in ({"": ""}, [1]):
        patch = {"spec": {"template": {"spec": {"containers": [{"name": name, "image": "x"}]}}}}
        media = "application/strategic-merge-patch+json"
        refused = await api.ask("PATCH", f"{deployments}/m", patch, content_type=media)
        assert refused.code == 400
        assert "a merge key has to be a scalar" in refused.message


@asking
async def test_a_service_without_a_name(api: Api) -> None:
    answer = await sent(api, "POST", "/api/v1/namespaces/default/services", b"{}")
    assert answer.code == 422
    failed = r'Invalid value: \[""\]: failed to allocate IP: IPAddress.networking.k8s.io "10.0.[\d.]+" is invalid'
    expected = rf'Service "" is invalid: spec.clusterIPs: {failed}: spec.parentRef.name: Required value'
    assert re.fullmatch(expected, answer.body["message"])
    addresses = (await api.get("/apis/networking.k8s.io/v1/ipaddresses")).body["items"]
    assert [each["spec"]["parentRef"]["name"] for each in addresses] == ["kubernetes"]
    headless = await sent(api, "POST", "/api/v1/namespaces/default/services", b'{"spec":{"clusterIP":"None"}}')
    assert headless.body["message"] == (
        'Service "" is invalid: metadata.name: Required value: name or generateName is required'
    )
