"""Values of parameters: stored as strings, typed in templates."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.frontends.plans.api import Parameter
from ostinato.frontends.plans.parameters import (
    ParameterError,
    check_value,
    stored,
    value_of_argument,
    values_for_templates,
    values_of_file,
)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3, "integer", "3"),
        (1000000, "", "1000000"),
        (0.5, "number", "0.5"),
        (2.0, "", "2"),
        (True, "boolean", "true"),
        ("a", "", "a"),
        (None, "", None),
        (["a", 1], "array", "- a\n- 1\n"),
        ({"b": 1, "a": [True]}, "map", "a:\n- true\nb: 1\n"),
        (None, "map", "null\n"),
        (["a", True], "", "[a true]"),
        ({"a": None}, "", "map[a:<nil>]"),
    ],
)
def test_a_value_is_stored_as_text(value: Any, kind: str, expected: str | None) -> None:
    assert stored(value, kind) == expected


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", ["0", "-7", "+3"], ["", "1.5", "x", "9223372036854775808"]),
        ("number", ["1", "1.5", "-1e3", ".5", "inf"], ["one", "1.5.2"]),
        ("boolean", ["true", "F", "1"], ["yes", "TrUe"]),
        ("array", ["[]", "- a", "null"], ["a: b", "{]"]),
        ("map", ["{}", "a: b"], ["- a", "text"]),
        ("string", ["anything"], []),
        ("other", [], ["x"]),
    ],
)
def test_types_are_checked(kind: str, good: list[str], bad: list[str]) -> None:
    parameter = Parameter(name="P", type=kind, required=True)
    for value in good:
        check_value(parameter, value)
    for value in bad:
        with pytest.raises(ParameterError, match='"P"'):
            check_value(parameter, value)


def test_templates_receive_lists_and_maps_and_texts() -> None:
    parameters = [
        Parameter(name="L", type="array", default="- a\n"),
        Parameter(name="M", type="map"),
        Parameter(name="N", type="integer", default="3"),
    ]
    found = values_for_templates(parameters, {"M": "a: {b: 1}"})
    assert found == {"L": ["a"], "M": {"a": {"b": 1}}, "N": "3"}
    with pytest.raises(ParameterError, match='"L": not an array'):
        values_for_templates(parameters, {"L": "a: b"})


def test_files_and_arguments() -> None:
    assert values_of_file("a: 1\nb: [x]\nc: {d: e}\n", "f") == {"a": "1", "b": "- x\n", "c": "d: e\n"}
    assert value_of_argument("a=b=c") == ("a", "b=c")
    for text, message in (("a", "not set"), ("=b", "can not be empty"), ("a=", "can not be empty")):
        with pytest.raises(ParameterError, match=message):
            value_of_argument(text)
    for text, message in (("- a", "expected a map"), ("a:", "null is not supported"), ("{]", "not YAML")):
        with pytest.raises(ParameterError, match=message):
            values_of_file(text, "f")
