from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.patch.go_values import go_string, go_type, go_value, json_name, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, None, True, "x y"], "a": {}}, "map[a:map[] b:[1 <nil> true x y]]"),
        ([], "[]"),
        (1.5, "1.5"),
        (False, "false"),
    ],
)
def test_values_read_as_go_prints_them(value: Any, text: str) -> None:
    assert go_value(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (5, "%!s(int64=5)"), (1.5, "%!s(float64=1.5)"), (True, "%!s(bool=true)"), (None, "%!s(<nil>)")],
)
def test_values_that_are_not_strings_are_format_errors(value: Any, text: str) -> None:
    assert go_string(value) == text


def test_values_that_are_not_json_are_named_by_their_python_type() -> None:
    assert (go_type({1}), json_name({1}), go_type(None)) == ("set", "set", "%!s(<nil>)")


def test_yaml_quotes_what_could_be_taken_for_something_else() -> None:
    assert shown({"a": "1", "b": "y", "c": "text", "d": 1, "e": None}) == 'a: "1"\nb: "y"\nc: text\nd: 1\ne: null\n'
