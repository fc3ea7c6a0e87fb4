"""Path elements and field sets."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.apply.fieldpath.elements import ElementError, canonical, order, text
from ostinato.api.apply.fieldpath.field_set import FieldSetError, field_path, from_paths, has, only, ordered, parse


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        ("f:spec", ".spec"),
        ('k:{"name":"a b"}', '[name="a b"]'),
        ('k:{"containerPort":80,"protocol":"TCP"}', '[containerPort=80,protocol="TCP"]'),
        ("v:true", "[=true]"),
        ("v:null", "[=null]"),
        ("v:1.5", "[=1.5]"),
        ('v:["a",1]', '[=["a",1]]'),
        ('v:{"a":1}', "[=a=1]"),
        ("i:7", "[7]"),
    ],
)
def test_elements_are_printed_as_by_kubernetes(element: str, shown: str) -> None:
    assert canonical(element) == element
    assert text(element) == shown


def test_elements_have_a_canonical_spelling() -> None:
    assert canonical('k:{ "b": 1.0, "a": "x" }') == 'k:{"a":"x","b":1}'
    assert canonical("i:+07") == "i:7"
    assert canonical("f:" + "x" * 1000) == "f:" + "x" * 1000
    assert canonical('v:"' + "x" * 1000 + '"') == 'v:"' + "x" * 1000 + '"'
    assert order('v:"' + "x" * 1000 + '"') == (3, (1, "x" * 1000))
    assert canonical("q:x") is None


@pytest.mark.parametrize(
    "element", ["", "f", "xx", "k:5", "k:", "v:", "i:x", "v:" + "[" * 9 + "]" * 9, "v:" + "[" * 5000, 'v:"\ud800"']
)
def test_an_invalid_element_is_rejected(element: str) -> None:
    with pytest.raises(ElementError):
        canonical(element)


def test_a_set_that_is_nested_without_end_is_rejected() -> None:
    nested: dict[str, Any] = {}
    for _ in range(600):
        nested = {"f:a": nested}
    with pytest.raises(FieldSetError, match="exceeded max depth"):
        parse(nested)


def test_sets_are_ordered() -> None:
    unordered = {
        "v:10": {},
        "v:9": {},
        "f:b": {"f:y": {}, "f:x": {}, ".": {}},
        'k:{"n":10}': {},
        'k:{"n":9}': {},
        "f:a": {},
    }
    assert list(ordered(unordered)) == ["f:a", "f:b", 'k:{"n":9}', 'k:{"n":10}', "v:9", "v:10"]
    assert list(ordered(unordered)["f:b"]) == [".", "f:x", "f:y"]
    assert list(parse(unordered)) == list(ordered(unordered))
    assert parse({'k:{"b":1,"a":2}': {}, 'k:{"a":2,"b":1}': {"f:x": {}}}) == {'k:{"a":2,"b":1}': {".": {}, "f:x": {}}}


def test_the_root_is_never_a_member() -> None:
    assert not has({"f:a": {}}, ())
    assert from_paths(()) == {}
    assert parse({".": {}}) == {}
    assert parse(None) == {}


def test_only_keeps_matching_paths() -> None:
    keep = only(field_path("a", "b"), field_path("c"))
    assert keep({"f:a": {".": {}, "f:b": {"f:x": {}}, "f:z": {}}, "f:c": {"f:y": {}}, "f:d": {}}) == {
        "f:a": {".": {}, "f:b": {"f:x": {}}},
        "f:c": {"f:y": {}},
    }
    assert keep({"f:a": {"f:z": {}}}) == {}
