"""Discovery lists the served resources in the form and order of kube-apiserver."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.unit.server.publish.samples import AGGREGATED, CUSTOM, DATA, ask, custom_resources, new_server

from ostinato.api.gvk import version_priority
from ostinato.server.core import Server
from ostinato.server.publish.discovery import Discovery

LEGACY: dict[str, Any] = json.loads((DATA / "legacy_discovery.json").read_text())


@pytest.fixture
def server() -> Server:
    return new_server()


@pytest.mark.parametrize("path", sorted(LEGACY))
def test_the_older_documents_are_those_of_kube_apiserver_in_content_and_order(server: Server, path: str) -> None:
    answer = ask(server, path)
    assert answer.content_type == "application/json"
    assert json.dumps(json.loads(answer.body)) == json.dumps(LEGACY[path])


def test_the_core_group_has_its_versions_and_the_server_address(server: Server) -> None:
    told = json.loads(ask(server, "/api", host="example.org:6443").body)
    assert told == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "example.org:6443"}],
    }


@pytest.mark.parametrize("root", ["api", "apis"])
def test_the_aggregated_document_lists_everything_at_once(server: Server, root: str) -> None:
    answer = ask(server, f"/{root}", accept=AGGREGATED)
    told = json.loads(answer.body)
    assert answer.content_type == AGGREGATED
    assert told.pop("metadata") == {}
    assert told == server.registry.discovery[root]


def test_the_aggregated_document_is_served_to_older_clients_in_its_beta_version(server: Server) -> None:
    answer = ask(server, "/apis", accept=AGGREGATED.replace("v=v2", "v=v2beta1") + ",application/json")
    assert json.loads(answer.body)["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    assert "v=v2beta1" in answer.content_type


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        f"application/json,{AGGREGATED}",
        AGGREGATED.replace("v=v2", "v=v9") + ",application/json",
        AGGREGATED.replace("APIGroupDiscoveryList", "Table") + ",*/*",
    ],
)
def test_unaggregated_discovery_is_served_on_request(server: Server, accept: str) -> None:
    assert json.loads(ask(server, "/apis", accept=accept).body)["kind"] == "APIGroupList"


def test_the_aggregated_document_has_an_etag_and_is_answered_with_304(server: Server) -> None:
    first = ask(server, "/apis", accept=AGGREGATED)
    headers = dict(first.headers)
    assert headers["ETag"] == f'"{hashlib.sha512(first.body).hexdigest().upper()}"'
    assert headers["Vary"] == "Accept"
    assert headers["Cache-Control"] == "public"
    again = ask(server, "/apis", accept=AGGREGATED, if_none_match=headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert dict(again.headers)["ETag"] == headers["ETag"]
    assert ask(server, "/apis", accept=AGGREGATED, if_none_match='"other"').status == 200
    assert ask(server, "/apis", accept=AGGREGATED, if_none_match="*").status == 304


def test_custom_resources_are_added_and_removed(server: Server) -> None:
    before = ask(server, "/apis", accept=AGGREGATED)
    resources = list(custom_resources(CUSTOM["definitions"]))
    for resource in resources:
        server.registry.add(resource)
    during = ask(server, "/apis", accept=AGGREGATED)
    assert json.loads(during.body)["items"][-1] == CUSTOM["aggregated"]
    assert json.loads(ask(server, "/apis/zoo.example.com").body) == CUSTOM["group"]
    for resource in resources:
        server.registry.remove(resource.gvr)
    after = ask(server, "/apis", accept=AGGREGATED)
    assert after.body == before.body
    assert during.body != before.body
    assert ask(server, "/apis/zoo.example.com").status == 404


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_custom_resources_are_listed_with_their_names_subresources_and_hash(version: str) -> None:
    discovery = Discovery(custom_resources(CUSTOM["definitions"]))
    told = discovery.resource_list("zoo.example.com", version)
    assert told is not None
    assert told["resources"] == CUSTOM["resources"][version]


def test_groups_of_custom_resources_stand_after_the_built_in_ones_by_name(server: Server) -> None:
    definitions = json.loads(json.dumps(CUSTOM["definitions"]).replace("zoo.example.com", "ant.example.com"))
    discovery = Discovery(
        iter([*custom_resources(CUSTOM["definitions"]), *server.registry, *custom_resources(definitions)])
    )
    names = [group["name"] for group in discovery.group_list()["groups"]]
    assert names[0] == "apiregistration.k8s.io"
    assert names[-2:] == ["ant.example.com", "zoo.example.com"]


def test_versions_are_ordered_by_their_maturity_then_by_number() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v0"]
    assert sorted(set(ordered), key=version_priority) == ordered


@pytest.mark.parametrize("media", ["application/yaml", "application/vnd.kubernetes.protobuf"])
def test_discovery_speaks_the_other_media_types(server: Server, media: str) -> None:
    answer = ask(server, "/apis/apps", accept=media)
    assert (answer.status, answer.content_type) == (200, media)
    assert b"apps/v1" in answer.body


def test_the_aggregated_document_is_given_as_yaml_too(server: Server) -> None:
    answer = ask(server, "/api", accept=AGGREGATED.replace("json", "yaml"))
    assert answer.content_type == AGGREGATED.replace("json", "yaml")
    assert b"kind: APIGroupDiscoveryList" in answer.body
