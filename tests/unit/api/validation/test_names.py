"""Rules for names and field values. The vectors are the messages of Kubernetes' own library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path as FilePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.text.go_format import quote
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path

DATA = FilePath(__file__).parents[3] / "data" / "api"
TEXTS, MESSAGES, RULES = json.loads((DATA / "names.json").read_text())


def messages(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


FUNCTIONS: dict[str, Callable[[str], list[str]]] = {
    "is_path_segment": names.name_is_path_segment,
    "is_path_segment_prefix": lambda text: names.name_is_path_segment(text, prefix=True),
    "dns_label_prefix": lambda text: names.name_is_dns_label(text, prefix=True),
    "dns_subdomain_prefix": lambda text: names.name_is_dns_subdomain(text, prefix=True),
    "dns1035_label_prefix": lambda text: names.name_is_dns1035_label(text, prefix=True),
    "validate_field_manager": lambda text: messages(names.validate_field_manager(text, Path("f"))),
    "validate_labels": lambda text: messages(names.validate_labels({text: text}, Path("f"))),
    "validate_annotations": lambda text: messages(names.validate_annotations({text: text}, Path("f"))),
}


def function_of(rule: str) -> Callable[[str], list[str]]:
    if rule in FUNCTIONS:
        return FUNCTIONS[rule]
    if rule.startswith("validate_"):
        validate = getattr(field_values, rule)
        return lambda text: messages(validate(text, Path("f")))
    found: Callable[[str], list[str]] = getattr(names, rule, None) or getattr(field_values, rule)
    return found


@pytest.mark.parametrize(("rule", "expected"), RULES, ids=[rule for rule, _ in RULES])
def test_every_rule_has_the_messages_of_kubernetes(rule: str, expected: list[list[int]]) -> None:
    function = function_of(rule)
    for text, numbers in zip(TEXTS, expected, strict=True):
        ours = [message.replace(quote(text), "<VALUE>") for message in function(text)]
        assert ours == [MESSAGES[number] for number in numbers], text


def test_a_newline_at_the_end_is_not_overlooked() -> None:
    for rule in (names.is_dns1123_label, names.is_dns1123_subdomain, names.is_label_value, names.is_qualified_name):
        assert rule("a") == []
        assert rule("a\n") != []
    assert field_values.is_percent("5%\n") != []
    assert field_values.is_config_map_key("a\n") != []


def test_a_generate_name_may_end_with_a_dash() -> None:
    assert names.name_is_dns_label("web-", prefix=True) == []
    assert names.name_is_dns_label("web-") != []
    assert names.name_is_dns_subdomain("web.a-", prefix=True) == []
    assert names.name_is_dns_subdomain("web.a") == []
    assert names.name_is_dns1035_label("1-", prefix=True) == []
    assert names.name_is_dns1035_label("1a") != []
    assert names.name_is_dns_label("-", prefix=True) != []


def test_a_generated_name_is_as_long_as_a_dns_label_at_most() -> None:
    assert names.generate_name_base("a" * 100) == "a" * 58
    assert names.generate_name_base("web-") == "web-"
    assert names.generate_name_base("é" * 100) == "é" * 29


def test_annotations_together_have_a_size() -> None:
    path = Path("metadata", "annotations")
    half = 128 * 1024
    assert names.validate_annotations({"a": "x" * (half - 1), "b": "x" * (half - 1)}, path) == []
    (error,) = names.validate_annotations({"a": "x" * (half - 1), "b": "x" * half}, path)
    assert str(error) == "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert names.validate_annotations({"a": "é" * half, "b": "x"}, path) != []


def test_finalizers_and_label_keys_are_qualified_names() -> None:
    assert names.is_finalizer_name("kubernetes.io/pv-protection") == []
    assert names.is_label_key("a/b/c") == names.is_finalizer_name("a/b/c") != []


def test_the_finalizers_for_dependents_exclude_each_other() -> None:
    path = Path("metadata", "finalizers")
    assert names.validate_finalizers(["orphan", "example.com/keep"], path) == []
    (error,) = names.validate_finalizers(["orphan", "foregroundDeletion"], path)
    assert str(error) == (
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
        "finalizer orphan and foregroundDeletion cannot be both set"
    )
    (error,) = names.validate_finalizers(["/a"], path)
    assert str(error) == 'metadata.finalizers: Invalid value: "/a": prefix part must be non-empty'


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    path = Path("metadata", "finalizers")
    assert names.validate_no_new_finalizers(["a"], ["a", "b"], path) == []
    (error,) = names.validate_no_new_finalizers(["c", "a", "b"], ["a"], path)
    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"b", "c"}'
    )


def test_numbers_have_ranges() -> None:
    assert field_values.is_port_number(1) == field_values.is_port_number(65535) == []
    assert field_values.is_port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert field_values.is_user_id(2**31 - 1) == []
    assert field_values.is_user_id(-1) == ["must be between 0 and 2147483647, inclusive"]
    assert field_values.is_in_range(5, 1, 4) == ["must be between 1 and 4, inclusive"]


def test_each_part_of_a_domain_is_a_dns_label() -> None:
    name = f"{'a' * 64}.io"
    (error,) = field_values.validate_fully_qualified_domain_name(name, Path("f"))
    assert str(error) == f'f: Invalid value: "{"a" * 64}": must be no more than 63 characters'
    assert field_values.validate_fully_qualified_domain_name(name[1:], Path("f")) == []


def test_long_hostile_texts_are_judged_in_linear_time() -> None:
    hostile = "a-" * 500_000 + "!"
    for rule in (names.is_dns1123_subdomain, names.is_dns1123_label, names.is_label_value, names.is_qualified_name):
        assert rule(hostile) != []
    assert names.is_dns1123_subdomain("a." * 500_000) != []
    assert names.is_dns1123_subdomain_with_underscore("a_." * 300_000) != []


@given(st.text())
def test_a_name_that_passes_a_narrow_rule_passes_the_wide_ones(text: str) -> None:
    if not names.is_dns1035_label(text):
        assert names.is_dns1123_label(text) == []
    if not names.is_dns1123_label(text):
        assert names.is_dns1123_subdomain(text) == []
        assert names.is_label_value(text) == []
        assert names.is_qualified_name(text) == []
        assert names.name_is_path_segment(text) == []
