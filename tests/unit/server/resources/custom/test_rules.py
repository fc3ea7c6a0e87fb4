"""CEL validation rules: violations, ratcheting and cost limits."""

from __future__ import annotations

from typing import Any

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apiextensions.validation.schema import schema_faults
from ostinato.server.schema.rules.evaluation import Findings, check_rules, rule_tree
from ostinato.server.schema.structural.node import Structural
from ostinato.server.schema.validation.explain import CorrelatedValue


def _object(properties: dict[str, Any], *rules: Any, **more: Any) -> dict[str, Any]:
    written = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {"type": "object", "properties": properties, "x-kubernetes-validations": written, **more}


def _check(spec: dict[str, Any], value: Any, old: Any = None) -> Findings:
    schema = {"type": "object", "properties": {"spec": spec}}
    tree = rule_tree(schema)
    assert tree is not None
    new = {"spec": value}
    was = {"spec": old} if old is not None else None
    return check_rules(tree, new, was, CorrelatedValue(Structural(schema), new, was) if was is not None else None)


def _errors(spec: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    return [str(error) for error in _check(spec, value, old).errors]


def _faults(spec: dict[str, Any]) -> list[FieldError]:
    return schema_faults({"type": "object", "properties": {"spec": spec}}, Path("schema"), status=False)


_INT = {"type": "integer"}
_TEXT = {"type": "string"}


def test_a_satisfied_rule_reports_nothing() -> None:
    assert _errors(_object({"a": _INT}, "self.a > 1"), {"a": 2}) == []


def test_a_violated_rule_is_reported_at_its_field_path() -> None:
    spec = _object({"l": {"type": "array", "items": {**_INT, "x-kubernetes-validations": [{"rule": "self > 0"}]}}})
    assert _errors(spec, {"l": [1, 0]}) == ["spec.l[1]: Invalid value: 0: failed rule: self > 0"]


def test_a_rule_of_an_alternative_part_holds_for_the_same_place() -> None:
    spec = {
        "type": "object",
        "properties": {"a": _INT},
        "allOf": [{"x-kubernetes-validations": [{"rule": "self.a > 1"}]}],
    }
    assert _errors(spec, {"a": 1}) == ["spec: Invalid value: failed rule: self.a > 1"]


def test_a_field_that_cel_cannot_name_has_rules_of_its_own() -> None:
    spec = _object({"a b": {**_INT, "x-kubernetes-validations": [{"rule": "self > 0"}]}})
    assert _errors(spec, {"a b": 0}) == ["spec.a b: Invalid value: 0: failed rule: self > 0"]


def test_a_transition_rule_waits_for_an_old_value() -> None:
    spec = _object({"a": {**_TEXT, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}})
    assert _errors(spec, {"a": "x"}) == []
    assert _errors(spec, {"a": "x"}, {}) == []
    assert _errors(spec, {"a": "x"}, {"a": "y"}) == ['spec.a: Invalid value: "x": failed rule: self == oldSelf']


def test_an_optional_old_self_rule_is_evaluated_on_creation() -> None:
    rule = {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": True}
    spec = _object({"a": {**_TEXT, "x-kubernetes-validations": [rule]}})
    assert len(_errors(spec, {"a": "x"})) == 1
    assert _errors(spec, {"a": "new"}) == []
    assert _errors(spec, {"a": "x"}, {"a": "y"}) == []


def test_items_of_keyed_lists_are_compared_with_those_of_the_same_key() -> None:
    item = _object(
        {"k": _TEXT, "v": {**_INT, "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}, required=["k"]
    )
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    old = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}
    assert _errors(_object({"l": keyed}), {"l": [{"k": "b", "v": 5}, {"k": "a", "v": 2}]}, old) == []
    broken = _errors(_object({"l": keyed}), {"l": [{"k": "b", "v": 4}]}, old)
    assert broken == ["spec.l[0].v: Invalid value: 4: failed rule: self >= oldSelf"]


def test_an_unchanged_value_may_violate_a_rule_with_a_warning() -> None:
    spec = _object({"a": {**_TEXT, "x-kubernetes-validations": [{"rule": "self != 'old'"}]}, "b": _INT})
    found = _check(spec, {"a": "old", "b": 2}, {"a": "old", "b": 1})
    assert (found.errors, found.warnings) == ([], ["spec.a: Invalid value: \"old\": failed rule: self != 'old'"])
    assert len(_check(spec, {"a": "old"}, {"a": "other"}).errors) == 1


def test_texts_with_formats_are_points_in_time_and_durations() -> None:
    when = {"type": "string", "format": "date-time"}
    spec = _object(
        {"from": when, "for": {"type": "string", "format": "duration"}},
        "self.from + self.__for__ < timestamp('2025-01-01T00:00:00Z')",
    )
    assert _errors(spec, {"from": "2024-12-31T23:00:00Z", "for": "30m"}) == []
    assert len(_errors(spec, {"from": "2024-12-31T23:00:00Z", "for": "2h"})) == 1


def test_sets_are_equal_whatever_their_order() -> None:
    spec = _object({"s": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"}}, "self.s == ['b', 'a']")
    assert _errors(spec, {"s": ["a", "b"]}) == []
    assert len(_errors(spec, {"s": ["a", "c"]})) == 1


def test_an_error_of_a_rule_names_the_rule() -> None:
    spec = _object({"a": _INT, "b": _INT}, {"rule": "self.a / self.b > 1", "message": "more than one"})
    assert _errors(spec, {"a": 1, "b": 0}) == [
        'spec: Invalid value: "object": division by zero evaluating rule: more than one'
    ]


def test_an_int_or_string_value_of_the_wrong_type_fails_the_rule() -> None:
    spec = _object({"a": {"x-kubernetes-int-or-string": True}}, "self.a > 5")
    (error,) = _errors(spec, {"a": "x"})
    assert "call arguments did not match a supported operator" in error


def test_a_rule_that_loops_too_long_is_stopped() -> None:
    spec = _object(
        {"l": {"type": "array", "items": _INT}}, "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"
    )
    found = _check(spec, {"l": list(range(1000))})
    (error,) = found.errors
    assert found.budget < 0
    assert error.detail.startswith(
        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost "
        "exceeds limit for rule: self.l.all("
    )


def test_all_rules_of_an_object_share_a_budget() -> None:
    rules = [f"self.l.all(a, self.l.all(b, a + b >= {i * 0}))" for i in range(30)]
    spec = _object({"l": {"type": "array", "items": _INT}}, *rules)
    (error,) = _errors(spec, {"l": list(range(270))})
    assert "validation failed due to running out of cost budget" in error


def test_a_pattern_that_would_run_away_is_linear() -> None:
    spec = _object({"a": _TEXT}, "self.a.matches('^(a+)+$')")
    assert len(_errors(spec, {"a": "a" * 5000 + "b"})) == 1


def test_a_rule_that_does_not_compile_is_refused_with_its_place() -> None:
    (fault,) = _faults(_object({"a": _INT}, "self.b > 1"))
    assert fault.field == "schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert fault.detail == "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 1\n | ....^"


def test_a_rule_with_a_constant_that_cannot_be_converted_is_refused() -> None:
    (fault,) = _faults(_object({"a": _INT}, "self.a > int('x')"))
    assert fault.detail == "program instantiation failed: type conversion error from 'string' to 'int'"


def test_a_rule_costs_by_the_sizes_that_the_schema_allows() -> None:
    rule = {"rule": "self.all(x, self.all(y, x != y || x == y))"}
    large = {"type": "array", "items": _TEXT, "x-kubernetes-validations": [rule]}
    assert any("estimated rule cost exceeds budget" in fault.detail for fault in _faults(_object({"l": large})))
    small = {**large, "maxItems": 20, "items": {**_TEXT, "maxLength": 20}}
    assert _faults(_object({"l": small})) == []


def test_oldself_is_allowed_only_where_old_values_can_be_correlated() -> None:
    item = {**_INT, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    (fault,) = _faults(_object({"l": {"type": "array", "items": item}}))
    assert "oldSelf cannot be used on the uncorrelatable portion" in fault.detail


def test_a_default_keeps_the_rules() -> None:
    spec = _object({"a": {**_INT, "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]}})
    (fault,) = _faults(spec)
    assert (fault.field, fault.detail) == (
        "schema.openAPIV3Schema.properties[spec].properties[a].default",
        "failed rule: self > 1",
    )


def test_an_expression_nested_too_deeply_is_refused() -> None:
    (fault,) = _faults(_object({"a": _INT}, "(" * 2000 + "true" + ")" * 2000))
    assert "recursion limit exceeded" in fault.detail
