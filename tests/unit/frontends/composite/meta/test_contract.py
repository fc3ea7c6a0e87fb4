"""The JSON contract of hooks: names of objects in v1 and v2, and what an answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ostinato.frontends.composite.meta.contract import parse_customize, parse_sync, sync_document
from ostinato.frontends.kernel.sync import DeciderError, SyncRequest

Json = dict[str, Any]


def thing(name: str, namespace: str = "") -> Json:
    return {"kind": "Thing", "metadata": {"name": name} | ({"namespace": namespace} if namespace else {})}


OBJECTS = {
    "Thing.example.dev/v1": {"home/a": thing("a", "home"), "away/a": thing("a", "away"), "cluster": thing("cluster")},
    "Pod.v1": {},
}


def keys(form: Any, version: Any, parent: Json) -> dict[str, list[str]]:
    request = SyncRequest(controller="c", parent=parent, children=OBJECTS, related=OBJECTS)
    document = json.loads(sync_document(form, version, {"metadata": {"name": "c"}}, request))
    field = "children" if form == "composite" else "attachments"
    assert document[field] == document["related"]
    assert document["parent" if form == "composite" else "object"] == parent
    return {kind: list(found) for kind, found in document[field].items()}


@pytest.mark.parametrize("form", ["composite", "decorator"])
def test_v1_names_objects_relative_to_their_parent_and_v2_always_with_the_namespace(form: str) -> None:
    namespaced, cluster = thing("p", "home"), thing("p")
    everything = ["home/a", "away/a", "cluster"]
    assert keys(form, "v1", namespaced) == {"Thing.example.dev/v1": ["a"], "Pod.v1": []}
    assert keys(form, "v1", cluster) == {"Thing.example.dev/v1": everything, "Pod.v1": []}
    assert keys(form, "v2", namespaced) == {"Thing.example.dev/v1": everything, "Pod.v1": []}


def parsed(answer: Any, form: Any = "composite", **options: Any) -> Any:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return parse_sync(form, body, thing("p", "home"), **{"strict": False, **options})


def test_an_answer_without_fields_deletes_all_children_and_empties_the_status() -> None:
    result = parsed({})
    assert (result.children, result.status, result.resync_after, result.finalized) == ([], {}, None, False)
    assert parsed({"children": None, "status": None, "resyncAfterSeconds": 0}).children == []


def test_a_decorator_that_leaves_out_the_status_leaves_it_alone() -> None:
    result = parsed({"labels": {"a": "1", "b": None}, "resyncAfterSeconds": 1.5}, "decorator")
    assert (result.status, result.labels, result.resync_after, result.children) == (
        None,
        {"a": "1", "b": None},
        1.5,
        [],
    )
    assert parsed({"status": {}}, "decorator").status == {}


def test_children_get_the_namespace_of_their_parent_and_the_last_of_two_counts() -> None:
    child = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "away"}}
    again = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    found = parsed({"children": [child, other, again]}).children
    assert [(each["metadata"]["namespace"], "spec" in each) for each in found] == [("home", True), ("away", False)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "is not JSON"),
        (b"[1]", "Expected `object`, got `array`"),
        (b'{"children": {}}', "Expected `array | null`, got `object` - at `$.children`"),
        (b'{"children": [null]}', "children[0]: expected an object, got NoneType"),
        (b'{"children": [{"kind": "Pod"}]}', "children[0]: apiVersion is missing"),
        (b'{"children": [{"apiVersion": "v1"}]}', "children[0]: kind is missing"),
        (b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {}}]}', "metadata.name is missing"),
        (
            b'{"children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"b": 1}}}]}',
            "metadata.labels: expected an object of strings",
        ),
        (b'{"status": []}', "$.status"),
        (b'{"resyncAfterSeconds": "soon"}', "$.resyncAfterSeconds"),
        (b'{"finalized": "yes"}', "$.finalized"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(answer: bytes, said: str) -> None:
    with pytest.raises(DeciderError) as error:
        parsed(answer)
    assert said in str(error.value)


def test_a_strict_answer_has_no_unknown_and_no_duplicate_fields() -> None:
    for body, said in ((b'{"chidlren": []}', "unknown field 'chidlren'"), (b'{"status":{},"status":{}}', "duplicate")):
        assert parsed(body).children == []
        with pytest.raises(DeciderError, match=said):
            parsed(body, strict=True)
    inside = b'{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"x":1,"x":2}]}'
    assert parsed(inside, strict=True).children[0]["x"] == 2


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"names": ["a"], "labelSelector": {}}, "names and a selector"),
        ({"names": ["a"], "namespaceSelector": {}}, "names and a selector"),
        ({"namespace": "a", "namespaceSelector": {}}, "namespace and namespaceSelector"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "labelSelector"),
    ],
)
def test_related_rules_that_contradict_themselves_are_refused(rule: Json, said: str) -> None:
    body = json.dumps({"relatedResources": [{"apiVersion": "v1", "resource": "pods", **rule}]}).encode()
    with pytest.raises(DeciderError, match=f"relatedResources.0.: .*{said}"):
        parse_customize(body, strict=False)


def test_no_rules_are_no_related_objects() -> None:
    assert parse_customize(b"{}", strict=True) == []
