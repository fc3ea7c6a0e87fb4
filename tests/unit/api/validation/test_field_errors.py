"""Field paths and field errors, compared with what Go says for the same."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest

from ostinato.api.validation.field_errors import OMIT, ErrorType, FieldError, Path, joined

VECTORS = json.loads((File(__file__).parents[3] / "data/errors/fields.json").read_text())
PATH = Path("spec", "containers").index(0).child("ports").key("a/b").child("x", "y")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['call']}-{vector['args']}"[:50])
def test_every_field_error_has_the_words_of_go(vector: dict[str, Any]) -> None:
    error = getattr(FieldError, vector["call"])(PATH, *vector["args"])
    assert (error.type, str(error), error.body) == (vector["type"], vector["error"], vector["body"])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path(), "<nil>"),
        (Path("spec"), "spec"),
        (Path("spec", "template", "spec"), "spec.template.spec"),
        (Path("spec").child("a", "b"), "spec.a.b"),
        (Path("spec").child(), "spec"),
        (Path("spec").index(3), "spec[3]"),
        (Path("metadata", "labels").key("a/b.c"), "metadata.labels[a/b.c]"),
        (Path().child("spec"), "spec"),
        (Path().index(0).child("a"), "[0].a"),
        (Path("a").child(""), "a[]"),
        (Path(".x"), ".x"),
    ],
)
def test_a_path_prints_as_go_prints_it(path: Path, text: str) -> None:
    assert str(path) == text


def test_paths_are_values() -> None:
    below = Path("a").child("b")
    assert below == Path("a", "b")
    assert hash(below) == hash(Path("a", "b"))
    assert below != Path("a")
    assert below != "a.b"
    assert repr(below) == "Path('a.b')"


def test_a_step_down_leaves_the_path_as_it_was() -> None:
    path = Path("a")
    path.child("b").index(0).key("c")
    assert str(path) == "a"


def test_a_value_can_be_left_out_of_the_message() -> None:
    assert str(FieldError.invalid(Path("a"), OMIT, "no")) == "a: Invalid value: no"


def test_messages_are_joined_and_repeated_ones_named_once() -> None:
    one, two = FieldError.required(Path("a")), FieldError.required(Path("b"))
    assert joined([one]) == "a: Required value"
    assert joined([one, one]) == "a: Required value"
    assert joined([one, two, one]) == "[a: Required value, b: Required value]"


def test_every_error_type_has_a_title() -> None:
    for kind in ErrorType:
        assert FieldError(kind, "a").body
