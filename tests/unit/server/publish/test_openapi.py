"""The OpenAPI documents have the operations and schemas of kube-apiserver's, without descriptions."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from tests.unit.server.publish.samples import CUSTOM, DATA, ask, custom_resources, new_server

from ostinato.api.schema import builtin_schemas
from ostinato.server.core import Server
from ostinato.server.publish.openapi import gnostic
from ostinato.server.publish.openapi.client_models import Descriptions
from ostinato.server.publish.openapi.custom import V2, V3, definition_name, definitions_of
from ostinato.server.resources.resource import Resource

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
Json = dict[str, Any]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(Descriptions, "installed", lambda: Descriptions(None))
    return new_server()


@pytest.fixture
def zoo(server: Server) -> list[Resource]:
    """Custom resources, served."""
    resources = list(custom_resources(CUSTOM["definitions"]))
    for resource in resources:
        server.registry.add(resource)
    return resources


def v2(server: Server) -> Json:
    document: Json = json.loads(ask(server, "/openapi/v2").body)
    return document


def v3(server: Server, path: str) -> Json:
    document: Json = json.loads(ask(server, f"/openapi/v3/{path}").body)
    return document


def operations(paths: Json) -> Json:
    """The identifying parts of operations, by method and path."""
    found = {}
    for path, item in paths.items():
        for method, operation in item.items():
            if method != "parameters":
                kind = operation.get("x-kubernetes-group-version-kind") or {}
                found[f"{method} {path}"] = [
                    operation["operationId"],
                    operation.get("x-kubernetes-action", ""),
                    "/".join((kind.get("group", ""), kind.get("version", ""), kind.get("kind", ""))),
                    operation["tags"][0],
                    sorted(operation["responses"]),
                ]
    return found


def test_version_2_has_the_operations_of_kube_apiserver(server: Server) -> None:
    assert operations(v2(server)["paths"]) == json.loads((DATA / "operations.json").read_text())


def test_version_3_has_the_same_operations_a_document_for_each_group_and_version(server: Server) -> None:
    root = json.loads(ask(server, "/openapi/v3").body)
    found: Json = {}
    for path in root["paths"]:
        found |= operations(v3(server, path)["paths"])
    assert found == operations(v2(server)["paths"])


def test_version_2_has_the_definitions_without_defaults(server: Server) -> None:
    definitions = v2(server)["definitions"]
    assert definitions.keys() == builtin_schemas().definitions.keys()
    port = definitions["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]
    assert port == {"enum": ["SCTP", "TCP", "UDP"], "type": "string"}


def test_kubectl_finds_at_the_patch_of_a_kind_that_the_server_checks_fields(server: Server) -> None:
    for document in (v2(server), v3(server, "api/v1")):
        patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
        assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
        queries = [parameter["name"] for parameter in patch["parameters"] if parameter["in"] == "query"]
        assert queries == ["dryRun", "fieldManager", "fieldValidation", "force"]


def test_every_reference_of_a_document_leads_somewhere(server: Server, zoo: list[Resource]) -> None:
    def refs(node: Any) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(refs(value) for value in node.values()))
        return set().union(*(refs(value) for value in node)) if isinstance(node, list) else set()

    document = v2(server)
    assert refs(document) <= {V2 + name for name in document["definitions"]}
    for path in ("api/v1", "apis/apps/v1", "apis/zoo.example.com/v1", "version", "apis"):
        document = v3(server, path)
        assert refs(document) <= {V3 + name for name in document["components"]["schemas"]}, path


def test_version_3_describes_int_or_string_and_quantity(server: Server) -> None:
    schemas = v3(server, "api/v1")["components"]["schemas"]
    quantity = schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity == {"oneOf": [{"type": "string"}, {"type": "number"}]}
    assert schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["oneOf"] == [
        {"type": "integer"},
        {"type": "string"},
    ]


def test_every_field_of_metadata_is_described(server: Server) -> None:
    name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    for definition in (v2(server)["definitions"][name], v3(server, "api/v1")["components"]["schemas"][name]):
        assert definition["description"].startswith("Standard object's metadata")
        assert [field for field, node in definition["properties"].items() if not node.get("description")] == []


def test_a_document_of_version_3_holds_only_the_schemas_that_it_needs(server: Server) -> None:
    schemas = v3(server, "apis/coordination.k8s.io/v1")["components"]["schemas"]
    assert "io.k8s.api.coordination.v1.Lease" in schemas
    assert "io.k8s.api.core.v1.Pod" not in schemas


# Custom resources.


def undescribed(node: Any) -> Any:
    """Return a schema without the descriptions of apiVersion, kind and metadata, whose wording is our own.

    The recorded references have no descriptions beside them.
    """
    if isinstance(node, list):
        return [undescribed(each) for each in node]
    if not isinstance(node, dict):
        return node
    if str(node.get("description", "")).startswith("Standard object's metadata"):
        [target] = node.get("allOf", [{"$ref": node.get("$ref")}])
        return target
    own = str(node.get("description", "")).startswith(("APIVersion defines", "Kind is"))
    return {key: undescribed(value) for key, value in node.items() if key != "description" or not own}


def test_the_fields_that_every_custom_resource_has_are_described() -> None:
    resource = next(each for each in custom_resources(CUSTOM["definitions"]) if each.openapi)
    for prefix in (V2, V3):
        found = definitions_of(resource, prefix)
        described = [each["properties"] for each in found.values() if "properties" in each]
        assert described
        for properties in described:
            assert properties["apiVersion"]["description"].startswith("APIVersion defines")
            assert properties["kind"]["description"].startswith("Kind is")
        item = found[definition_name(resource.gvk)]["properties"]["metadata"]
        assert item["description"].startswith("Standard object's metadata")  # which kubectl explain shows
        assert ("allOf" in item, "$ref" in item) == (prefix == V3, prefix == V2)


def test_custom_resources_are_published_in_version_2_as_far_as_it_can_express_them() -> None:
    found: Json = {}
    for resource in custom_resources(CUSTOM["definitions"]):
        found |= definitions_of(resource, V2)
    assert undescribed(found) == CUSTOM["v2"]


def test_custom_resources_are_published_in_version_3_as_they_were_written() -> None:
    found: Json = {}
    for resource in custom_resources(CUSTOM["definitions"]):
        found |= definitions_of(resource, V3)
    assert undescribed(found) == CUSTOM["v3"]


def test_custom_resources_have_the_operations_of_kube_apiserver(server: Server, zoo: list[Resource]) -> None:
    found = operations(v2(server)["paths"])
    assert {key: value for key, value in found.items() if "zoo" in key} == CUSTOM["operations"]


@pytest.mark.parametrize(
    ("written", "published"),
    [
        ({"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {}}, {}),
        ({"type": "object", "required": ["a"], "properties": {"a": {"nullable": True, "type": "string"}}}, {}),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"nullable": True}, "b": {"type": "string"}},
            },
            {"required": ["b"]},
        ),
        ({"type": "object", "required": ["a"], "additionalProperties": {"nullable": True, "type": "string"}}, {}),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind"]},
            {"required": ["kind", "apiVersion"]},
        ),
    ],
)
def test_schemas_that_clients_of_version_2_cannot_read_are_omitted(written: Json, published: Json) -> None:
    definition = json.loads(json.dumps(CUSTOM["definitions"][1]))
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"f": written}}
    resource = next(custom_resources([definition]))
    field = definitions_of(resource, V2)["com.example.zoo.v1.Lion"]["properties"]["f"]
    assert field.get("required") == published.get("required")
    assert field.get("type") == ("object" if written["type"] == "object" else None)


def test_a_definition_without_a_schema_publishes_any_object() -> None:
    resource = next(custom_resources(CUSTOM["definitions"]))
    resource.openapi = None
    schema = definitions_of(resource, V3)["com.example.zoo.v1.Widget"]
    assert schema == {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "zoo.example.com", "kind": "Widget", "version": "v1"}],
    }


def test_a_document_stays_the_same_when_another_group_changes(server: Server) -> None:
    before = json.loads(ask(server, "/openapi/v3").body)["paths"]
    for resource in custom_resources(CUSTOM["definitions"]):
        server.registry.add(resource)
    after = json.loads(ask(server, "/openapi/v3").body)["paths"]
    assert before.items() <= after.items()
    added = {f"apis/zoo.example.com/{version}" for version in ("v1", "v1beta1", "v2alpha1")}
    assert after.keys() - before.keys() == added


# The requests.


def test_the_url_of_a_document_contains_its_hash_and_is_cacheable(server: Server) -> None:
    address = json.loads(ask(server, "/openapi/v3").body)["paths"]["apis/apps/v1"]["serverRelativeURL"]
    answer = ask(server, address)
    headers = dict(answer.headers)
    tag = hashlib.sha512(answer.body).hexdigest().upper()
    assert address == f"/openapi/v3/apis/apps/v1?hash={tag}"
    assert headers["Cache-Control"] == "public, immutable"
    assert headers["ETag"] == f'"{tag}"'
    assert headers["Expires"].endswith("GMT")


def test_an_old_address_leads_to_the_present_document(server: Server) -> None:
    answer = ask(server, "/openapi/v3/apis/apps/v1?hash=0123")
    headers = dict(answer.headers)
    assert answer.status == 301
    assert ask(server, headers["Location"]).status == 200


def test_a_document_that_the_client_has_is_not_sent_again(server: Server) -> None:
    for path in ("/openapi/v2", "/openapi/v3/api/v1"):
        tag = dict(ask(server, path).headers)["ETag"]
        again = ask(server, path, if_none_match=f'"x", W/{tag}')
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["apis/nowhere.io/v1", "nonsense", ""])
def test_there_are_no_other_documents(server: Server, path: str) -> None:
    answer = ask(server, f"/openapi/v3/{path}")
    assert (answer.status, answer.body) == (404, b"")


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v1", "/openapi/v2/"])
def test_there_are_no_other_pages(server: Server, path: str) -> None:
    assert ask(server, path).body == b"404 page not found\n"


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
def test_an_unknown_media_type_is_rejected(server: Server, path: str) -> None:
    answer = ask(server, path, accept="text/plain")
    assert (answer.status, answer.body) == (406, b"")
    assert ask(server, path, accept="text/plain, application/json;q=0.1").status == 200


# Protobuf.


def test_older_clients_get_version_2_in_protobuf_under_the_same_tag(server: Server) -> None:
    answer = ask(server, "/openapi/v2", accept=PROTOBUF)
    assert answer.content_type == PROTOBUF.replace("@", ".")
    assert dict(answer.headers)["ETag"] == dict(ask(server, "/openapi/v2").headers)["ETag"]
    assert answer.body.startswith(b"\n\x032.0\x12")
    assert b"io.k8s.api.core.v1.PodSpec" in answer.body


def test_custom_resources_are_in_the_protobuf_too(server: Server, zoo: list[Resource]) -> None:
    assert b"com.example.zoo.v1.Widget" in ask(server, "/openapi/v2", accept=PROTOBUF).body


def test_protobuf_is_written_as_gnostic_writes_it() -> None:
    vector = json.loads((DATA / "gnostic.json").read_text())
    document = vector["document"]
    paths = gnostic.encode_paths(document["paths"])
    definitions = gnostic.encode_definitions(document["definitions"])
    assert gnostic.document(document, paths, definitions) == base64.b64decode(vector["protobuf"])
