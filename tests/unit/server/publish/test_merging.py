"""OpenAPI documents of extension servers, merged into this server's."""

from __future__ import annotations

from typing import Any

from ostinato.server.aggregation.remote_openapi import part_of
from ostinato.server.publish.openapi.merging import merged

TEXT = {"type": "string"}


def part(paths: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return {"paths": paths, "definitions": definitions}


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}"}


def test_a_definition_that_differs_is_renamed_wherever_it_is_used() -> None:
    own = {"Meta": {"type": "object"}, "Same": TEXT}
    other = part(
        {"/b": {"get": reference("Thing")}}, Thing={"properties": {"m": reference("Meta")}}, Meta=TEXT, Same=TEXT
    )
    third = part({"/c": reference("Meta")}, Meta={"type": "integer"})
    paths, definitions = merged({"/a": {}}, own, [other, third])
    assert paths == {"/b": {"get": reference("Thing")}, "/c": reference("Meta_v3")}
    assert definitions == {
        "Thing": {"properties": {"m": reference("Meta_v2")}},
        "Meta_v2": TEXT,
        "Meta_v3": {"type": "integer"},
    }


def test_definitions_that_differ_in_their_kinds_alone_are_one() -> None:
    kinds = "x-kubernetes-group-version-kind"
    own = {"DeleteOptions": {"type": "object", kinds: [{"kind": "DeleteOptions", "group": "apps"}]}}
    other = part({}, DeleteOptions={"type": "object", kinds: [{"kind": "DeleteOptions", "group": "g"}]})
    assert merged({}, own, [other]) == ({}, {})


def test_the_first_of_equal_paths_is_kept() -> None:
    paths, _ = merged({"/a": {"get": 1}}, {}, [part({"/a": {"get": 2}, "/b": 1}), part({"/b": 2})])
    assert paths == {"/b": 1}


def test_shared_parameters_are_written_out() -> None:
    name = {"name": "name", "in": "path", "type": "string"}
    of_name = {"$ref": "#/parameters/name-abc"}
    item = {"get": {"parameters": [of_name, {"name": "x", "in": "query"}]}, "parameters": [of_name]}
    found = part_of({"paths": {"/apis/g/v1/a": item}, "parameters": {"name-abc": name}}, "/apis/g/v1/")
    assert found["paths"] == {
        "/apis/g/v1/a": {"get": {"parameters": [name, {"name": "x", "in": "query"}]}, "parameters": [name]}
    }


def test_definitions_that_only_other_paths_use_are_left_out() -> None:
    document = {
        "paths": {"/apis/g/v1/things": reference("Thing"), "/apis/g/v2/things": reference("Other")},
        "definitions": {
            "Thing": reference("Inner"),
            "Inner": TEXT,
            "Other": reference("Deep"),
            "Deep": TEXT,
            "Free": TEXT,
        },
    }
    found = part_of(document, "/apis/g/v1/")
    assert list(found["paths"]) == ["/apis/g/v1/things"]
    assert list(found["definitions"]) == ["Thing", "Inner", "Free"]
