"""Definitions of popular operators: they load, and their objects have kube-apiserver's recorded answers
(`tests/data/crds`). Definitions that are designed to be expensive are rejected or bounded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.stage.api import Api, asking

DATA = Path(__file__).resolve().parents[4] / "data" / "crds"
DEFINITIONS = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}
INSTANCES = [json.loads(line) for line in (DATA / "instances.jsonl").read_text().splitlines()]
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def of(plural: str) -> list[dict[str, Any]]:
    return [case for case in INSTANCES if case["path"].split("/")[-1] == plural]


def faults(message: str) -> set[str]:
    """The parts of a message: properties are validated in no order."""
    about, _, rest = message.partition(" is invalid: ")
    return {about, *re.split(r", (?=(?:spec|<nil>)[.\[:])", rest.removeprefix("[").removesuffix("]"))}


@pytest.mark.parametrize("plural", DEFINITIONS)
def test_objects_of_an_operator_are_checked_and_completed_as_recorded(plural: str) -> None:
    async def play(api: Api) -> None:
        made = await api.post(PATH, DEFINITIONS[plural])
        assert made.code == 201, made.body
        assert of(plural)
        for case in of(plural):
            answer = await api.post(f"{case['path']}?dryRun=All", case["object"])
            assert answer.code == case["code"], (case["object"]["spec"], answer.body)
            if answer.code == 201:
                assert answer.body["spec"] == case["spec"]
            else:
                assert faults(answer.body["message"]) == faults(case["message"])

    asking(play)()


def definition(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"kind": "Thing", "plural": "things"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions},
    }


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"$ref": "#/properties/spec"}, "$ref: Forbidden"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "$ref: Forbidden"),
        ({"type": "string", "pattern": "(a"}, "pattern: Invalid value"),
        ({"type": "string", "pattern": "(a+)+\\1"}, "pattern: Invalid value"),
        ({"type": "integer", "minimum": 5, "default": 1}, "default: Invalid value: 1"),
        ({"type": "string", "default": 1}, "default: Invalid value"),
        ({"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "string"}}}, "default: Invalid value"),
    ],
)
def test_a_definition_that_cannot_work_is_refused_with_the_reason(spec: dict[str, Any], why: str) -> None:
    async def play(api: Api) -> None:
        answer = await api.post(PATH, definition(spec))
        assert answer.code == 422
        assert why in answer.body["message"]

    asking(play)()


def test_ten_thousand_properties_are_served() -> None:
    properties = {f"p{i}": {"type": "integer", "minimum": 0} for i in range(10_000)}

    async def play(api: Api) -> None:
        assert (await api.post(PATH, definition({"type": "object", "properties": properties}))).code == 201
        body = {"metadata": {"name": "a"}, "spec": {"p9999": -1}}
        refused = await api.post(
            "/apis/example.com/v1/things", {"apiVersion": "example.com/v1", "kind": "Thing", **body}
        )
        assert "spec.p9999 in body should be greater than or equal to 0" in refused.body["message"]

    asking(play)()


def test_a_pattern_that_would_take_for_ever_elsewhere_is_matched_at_once() -> None:
    async def play(api: Api) -> None:
        spec = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
        assert (await api.post(PATH, definition(spec))).code == 201
        body = {"metadata": {"name": "a"}, "spec": {"a": "a" * 5000 + "b"}}
        refused = await api.post(
            "/apis/example.com/v1/things", {"apiVersion": "example.com/v1", "kind": "Thing", **body}
        )
        assert refused.code == 422

    asking(play)()


def test_a_status_that_no_client_sets_gets_its_default() -> None:
    async def play(api: Api) -> None:
        made = definition({"type": "object"})
        version = made["spec"]["versions"][0]
        version["subresources"] = {"status": {}}
        status = {"type": "object", "default": {"phase": "New"}, "properties": {"phase": {"type": "string"}}}
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status
        assert (await api.post(PATH, made)).code == 201
        body = {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Old"}}
        thing = await api.post("/apis/example.com/v1/things", {"apiVersion": "example.com/v1", "kind": "Thing", **body})
        assert thing.body["status"] == {"phase": "New"}

    asking(play)()
