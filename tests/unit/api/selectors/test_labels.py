"""Label selectors. The vectors are what Kubernetes' own library answers; recorded answers are those of a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.selectors import labels
from ostinato.api.selectors.labels import Operator, Requirement, Selector, SelectorError
from ostinato.api.validation.field_errors import Path

DATA = FilePath(__file__).parents[3] / "data" / "api"


def vectors(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def test_every_text_is_read_matched_and_written_as_kubernetes_does() -> None:
    sets, *rows = vectors("label_selectors")
    for text, written, *expected in rows:
        if written is None:
            with pytest.raises(SelectorError) as caught:
                labels.parse(text)
            assert str(caught.value) == expected[0], text
            continue
        matches, exact = expected
        selector = labels.parse(text)
        assert str(selector) == written, text
        assert "".join("01"[selector.matches(each)] for each in sets) == matches, text
        assert selector.requires_exact_match("x") == exact, text


def test_every_struct_is_read_and_judged_as_kubernetes_does() -> None:
    for struct, written, selects_nothing, message, errors in vectors("label_selector_structs"):
        judged = labels.validate_label_selector(struct, Path("spec", "selector"))
        assert [str(error) for error in judged] == (errors or []), struct
        if message is not None:
            with pytest.raises(SelectorError) as caught:
                labels.from_label_selector(struct)
            assert str(caught.value) == message, struct
        else:
            selector = labels.from_label_selector(struct)
            assert (str(selector), selector.selects_nothing) == (written, selects_nothing), struct


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("env in prod", "unable to parse requirement: found 'prod' expected: '('"),
        ("env in (prod", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("bad key!=1", "unable to parse requirement: found 'key', expected: in, notin, =, ==, !=, gt, lt"),
        (
            "tier>three",
            (
                "unable to parse requirement: values[0]: Invalid value: \"three\": for 'Gt', 'Lt' operators, "
                "the value must be an integer"
            ),
        ),
        ("a=b,", "found '', expected: identifier after ','"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        (
            "k=-bad-",
            (
                'unable to parse requirement: values[0][k]: Invalid value: "-bad-": a valid label must be an empty '
                "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
    ],
)
def test_the_server_words_its_complaints_so(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        labels.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["x=a||y=b", "x==a==b", "!x=a", "x<a", "x=a,"])
def test_these_are_no_selectors(text: str) -> None:
    with pytest.raises(SelectorError):
        labels.parse(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x=", ("",)),
        ("x= ", ("",)),
        ("x in ()", ("",)),
        ("x in (,a)", ("", "a")),
        ("x in (a,)", ("", "a")),
        ("notin=in", ("in",)),
        ("in in (in,notin)", ("in", "notin")),
    ],
)
def test_empty_values_and_keywords_are_values(text: str, values: tuple[str, ...]) -> None:
    (requirement,) = labels.parse(text).requirements
    assert requirement.values == values


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("x!=a", {}, {"x": "a"}),
        ("x notin (a,b)", {"x": "c"}, {"x": "b"}),
        ("x>5", {"x": "6"}, {}),
        ("x>5", {"x": "+0006"}, {"x": "six"}),
        ("x<5", {"x": "-9223372036854775808"}, {"x": "-9223372036854775809"}),
        ("!x", {}, {"x": ""}),
        ("x", {"x": ""}, {}),
        ("x=", {"x": ""}, {}),
        ("x=a,y in (b,c)", {"x": "a", "y": "c"}, {"x": "a"}),
    ],
)
def test_objects_without_the_label_match_only_negations(
    text: str, matching: Mapping[str, str], other: Mapping[str, str]
) -> None:
    assert labels.parse(text).matches(matching)
    assert not labels.parse(text).matches(other)


def test_selectors_are_written_sorted() -> None:
    assert str(labels.parse("x=a,a=x")) == "a=x,x=a"
    assert str(labels.parse("x in (c,a,b)")) == "x in (a,b,c)"
    assert labels.parse("x=a,a=x") == labels.parse("a=x,x=a")
    assert repr(labels.parse("x==a")) == "labels.parse('x==a')"


def test_everything_and_nothing_are_opposites() -> None:
    everything, nothing = labels.everything(), labels.nothing()
    assert everything.empty
    assert not nothing.empty
    assert everything.matches({})
    assert not nothing.matches({})
    assert str(everything) == str(nothing) == ""
    assert everything != nothing
    assert nothing.selects_nothing
    assert not everything.selects_nothing
    assert labels.parse("") is everything
    assert labels.from_label_selector(None) is nothing
    assert labels.from_label_selector({}) is everything
    assert nothing.with_requirements(Requirement("x", Operator.EXISTS)) is nothing
    assert nothing.requires_exact_match("x") is None
    assert repr(nothing) == "labels.nothing()"
    assert everything != ""


def test_requirements_can_be_added() -> None:
    selector = labels.parse("x=a").with_requirements(Requirement.checked("a", Operator.IN, ["c", "b"]))
    assert str(selector) == "a in (b,c),x=a"
    assert hash(selector) == hash(labels.parse("x=a").with_requirements(Requirement("a", Operator.IN, ("c", "b"))))


def test_a_set_selects_what_has_all_of_its_labels() -> None:
    selector = labels.from_set({"b": "1", "a": "2"})
    assert str(selector) == "a=2,b=1"
    assert selector.matches({"a": "2", "b": "1", "c": "3"})
    assert not selector.matches({"a": "2"})
    assert labels.from_set({}).empty


@pytest.mark.parametrize(
    ("operator", "values", "shown", "detail"),
    [
        (Operator.IN, [], "null", "for 'in', 'notin' operators, values set can't be empty"),
        (Operator.EQUALS, ["a", "b"], '["a","b"]', "exact-match compatibility requires one single value"),
        (Operator.EXISTS, ["a"], '["a"]', "values set must be empty for exists and does not exist"),
        (Operator.LESS_THAN, [], "null", "for 'Gt', 'Lt' operators, exactly one value is required"),
    ],
)
def test_a_checked_requirement_has_as_many_values_as_it_needs(
    operator: Operator, values: list[str], shown: str, detail: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        Requirement.checked("x", operator, values)
    assert str(caught.value) == f"values: Invalid value: {shown}: {detail}"


@pytest.mark.parametrize(
    "struct",
    [
        "app=web",
        {"matchLabels": "app=web"},
        {"matchLabels": {"app": 1}},
        {"matchExpressions": {}},
        {"matchExpressions": ["app"]},
        {"matchExpressions": [{"key": 1, "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": []}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [None]}]},
    ],
)
def test_a_struct_of_another_shape_is_rejected(struct: Any) -> None:
    with pytest.raises(SelectorError, match="label selector: "):
        labels.from_label_selector(struct)


def test_values_from_before_the_rule_can_be_let_through() -> None:
    struct = {"matchExpressions": [{"key": "x", "operator": "In", "values": ["-a"]}]}
    assert labels.validate_label_selector(struct, Path("spec")) != []
    assert labels.validate_label_selector(struct, Path("spec"), allow_invalid_values=True) == []


def test_labels_of_the_wrong_type_do_not_match() -> None:
    odd: Any = {"x": ["a"], "y": 7}
    assert not labels.parse("x in (a,b)").matches(odd)
    assert not labels.parse("x=a").matches(odd)
    assert not labels.parse("y>5").matches(odd)


def test_long_selectors_are_read_in_linear_time() -> None:
    text = ",".join(f"k{number} in (a,b)" for number in range(5_000))
    assert len(labels.parse(text).requirements) == 5_000
    with pytest.raises(SelectorError):
        labels.parse("(" * 1_000_000)
    with pytest.raises(SelectorError):
        labels.parse("x in (" + "," * 100_000)


keys = st.sampled_from(["x", "y", "example.com/z", "in"])
values = st.sampled_from(["", "a", "b", "5", "7"])
requirements = st.one_of(
    st.builds(Requirement.checked, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        lambda k, o, v: Requirement.checked(k, o, [v]),
        keys,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        values,
    ),
    st.builds(
        lambda k, o, v: Requirement.checked(k, o, sorted(v)),
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sets(values, min_size=1),
    ),
    st.builds(
        lambda k, o, v: Requirement.checked(k, o, [str(v)]),
        keys,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(0, 9),
    ),
)
selectors = st.builds(Selector, st.lists(requirements, max_size=4))


@given(selectors, st.dictionaries(keys, values))
def test_a_written_selector_reads_back_and_matches_the_same(selector: Selector, each: dict[str, str]) -> None:
    again = labels.parse(str(selector))
    assert again == selector
    assert again.matches(each) == selector.matches(each) == all(r.matches(each) for r in selector.requirements)


@given(st.text("xyin=!(),<> \0\té-", max_size=20))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        selector = labels.parse(text)
    except SelectorError:
        return
    assert labels.parse(str(selector)) == selector
