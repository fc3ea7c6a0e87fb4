"""JSONPath: what client-go finds, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.text.json_path import JsonPath, JsonPathError

CASES: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "custom" / "paths.json").read_text())


def ordered(path: str, found: list[Any]) -> list[Any]:
    """Go visits the fields of a map in any order."""
    return sorted(map(str, found)) if "*" in path or ".." in path else found


@pytest.mark.parametrize("case", CASES["paths"], ids=[case["path"] or "empty" for case in CASES["paths"]])
def test_paths_find_what_they_find_in_kubernetes(case: dict[str, Any]) -> None:
    if case["error"]:
        with pytest.raises(JsonPathError):
            JsonPath(case["path"]).find(CASES["value"])
        return
    found = JsonPath(case["path"]).find(CASES["value"])
    assert ordered(case["path"], list(map(sort_keys, found))) == ordered(case["path"], case["found"])


def sort_keys(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


def test_quoted_text_has_escapes() -> None:
    value = {"l": [{"k": 'a"b'}, {"k": "c\nd"}, {"k": "it's"}]}
    assert JsonPath(r'.l[?(@.k=="a\"b")].k').find(value) == ['a"b']
    assert JsonPath(r'.l[?(@.k=="c\nd")].k').find(value) == ["c\nd"]
    assert JsonPath('.l[?(@.k=="it\'s")].k').find(value) == ["it's"]


@pytest.mark.parametrize(
    "text", ["'open", ".a[?(@.b", ".a[?(@.b==1)", ".a[::0]", ".a[]", "%", "1.2.3", "....", ".a[?(@.b=~1)]", "word"]
)
def test_bad_syntax_is_rejected(text: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(text)


def test_filters_nest_only_so_deep() -> None:
    text = "." + "a[?(@." * 30 + "a" + ")]" * 30
    with pytest.raises(JsonPathError):
        JsonPath(text)


def test_values_of_different_types_cannot_be_compared() -> None:
    with pytest.raises(JsonPathError):
        JsonPath(".l[?(@.a==1)]").find({"l": [{"a": "1"}]})
    with pytest.raises(JsonPathError):
        JsonPath(".l[?(@.*==1)]").find({"l": [{"a": 1, "b": 2}]})
