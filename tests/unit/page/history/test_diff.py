"""Differences of two states."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.page.facts import Difference
from ostinato.page.history.diff import MAX_DIFFERENCES, differences, summary


def pod(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "1"}, "status": status}


def test_a_changed_field_has_its_path_and_both_values() -> None:
    before = {"spec": {"replicas": 3}, "metadata": {"generation": 1}}
    after = {"spec": {"replicas": 5}, "metadata": {"generation": 2, "managedFields": []}}
    assert differences(before, after) == [Difference("spec.replicas", 3, 5)]


def test_conditions_are_compared_by_their_type() -> None:
    before = pod(conditions=[{"type": "Ready", "status": "False"}, {"type": "Scheduled", "status": "True"}])
    after = pod(conditions=[{"type": "Scheduled", "status": "True"}, {"type": "Ready", "status": "True"}])
    assert differences(before, after) == [Difference("status.conditions[Ready].status", "False", "True")]


def test_added_and_removed_fields_have_no_other_value() -> None:
    found = differences({"data": {"a": "1"}}, {"data": {"b": "2"}})
    assert found == [Difference("data.a", "1", None), Difference("data.b", None, "2")]


def test_the_fields_of_a_created_object_are_listed() -> None:
    created = {"kind": "ConfigMap", "data": {"a": "1"}}
    assert differences(None, created) == [Difference("data.a", None, "1")]


def test_differences_are_bounded_in_number_and_size() -> None:
    found = differences({}, {"data": {str(at): "x" * 10_000 for at in range(200)}})
    assert len(found) == MAX_DIFFERENCES
    assert all(len(each.new) < 3_000 for each in found)


@pytest.mark.parametrize(("old", "new"), [(None, ""), ([], {}), ("1", 1)])
def test_empty_values_of_other_types_differ(old: Any, new: Any) -> None:
    assert len(differences({"spec": {"x": old}}, {"spec": {"x": new}})) == 1


def test_a_summary_is_one_short_line() -> None:
    found = [Difference(f"spec.field{at}", "a" * 100, "b") for at in range(9)]
    text = summary(found)
    assert text.startswith("spec.field0: aaaa")
    assert len(text) < 300
    assert summary([Difference("spec.replicas", 3, 5)]) == "spec.replicas: 3 → 5"
