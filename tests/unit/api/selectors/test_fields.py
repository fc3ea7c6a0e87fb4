"""Field selectors. The vectors are what Kubernetes' own library answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.selectors import fields
from ostinato.api.selectors.fields import FieldSelectorError, Selector, Term

DATA = Path(__file__).parents[3] / "data" / "api"


def vectors(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def test_every_text_is_read_matched_and_written_as_kubernetes_does() -> None:
    sets, *rows = vectors("field_selectors")
    for text, written, *expected in rows:
        if written is None:
            with pytest.raises(FieldSelectorError) as caught:
                fields.parse(text)
            assert str(caught.value) == expected[0], text
            continue
        matches, exact = expected
        selector = fields.parse(text)
        assert str(selector) == written, text
        assert "".join("01"[selector.matches(each)] for each in sets) == matches, text
        assert selector.requires_exact_match("a") == exact, text


def test_a_field_that_is_missing_reads_as_empty() -> None:
    assert fields.parse("a=").matches({})
    assert fields.parse("a!=b").matches({})
    assert not fields.parse("a=b").matches({})
    assert Term("a", "").matches({})
    assert not Term("a", "", negated=True).matches({})


def test_values_are_escaped() -> None:
    assert fields.escape(r"a\b,c=d") == r"a\\b\,c\=d"
    assert fields.parse(r"x=a\\b\,c\=d").requires_exact_match("x") == r"a\b,c=d"


def test_everything_and_nothing_are_opposites() -> None:
    assert fields.everything().empty
    assert fields.everything() == fields.parse("") == fields.parse(",,")
    assert fields.everything().matches({})
    assert not fields.nothing().empty
    assert not fields.nothing().matches({})
    assert str(fields.nothing()) == ""
    assert fields.nothing().transform(fields.metadata_only) == fields.nothing()


def test_a_set_selects_what_has_all_of_its_values() -> None:
    selector = fields.from_set({"b": "1", "a": ","})
    assert str(selector) == r"a=\,,b=1"
    assert selector.matches({"a": ",", "b": "1"})


def test_a_kind_rejects_fields_that_it_does_not_serve() -> None:
    selector = fields.parse("metadata.name=a,spec.containers=x")
    with pytest.raises(FieldSelectorError, match=r"^field label not supported: spec\.containers$"):
        selector.transform(fields.only(["metadata.name"]))
    with pytest.raises(FieldSelectorError) as caught:
        fields.parse("data.k=x").transform(fields.metadata_only)
    assert str(caught.value) == ('"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"')
    assert fields.parse("metadata.name=a").transform(fields.metadata_only) == fields.parse("metadata.name=a")


def test_a_term_can_be_renamed_or_dropped() -> None:
    def rename(field: str, value: str) -> tuple[str, str]:
        return ("", "") if field == "b" else (f"new.{field}", value)

    assert str(fields.parse("a!=1,b=2").transform(rename)) == "new.a!=1"


terms = st.builds(Term, st.sampled_from(["a", "b.c", ""]), st.text(max_size=5), st.booleans())


@given(st.lists(terms, max_size=4))
def test_a_written_selector_reads_back(parts: list[Term]) -> None:
    selector = Selector(tuple(sorted((part for part in parts if part.field or part.value), key=str)))
    assert fields.parse(str(selector)) == selector


@given(st.text("ab=!,\\", max_size=15))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        selector = fields.parse(text)
    except FieldSelectorError:
        return
    assert set(fields.parse(str(selector)).terms) == set(selector.terms)
