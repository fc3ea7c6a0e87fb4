from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.patch import (
    MAX_OPERATIONS,
    InapplicablePatch,
    MalformedPatch,
    PatchTooLarge,
    TestFailed,
    json_patch,
)

OBJECT = {
    "metadata": {"name": "a", "labels": {"app": "web"}, "finalizers": ["one", "two"]},
    "data": {"a": "1", "with/slash": "2", "with~tilde": "3"},
}


def patched(*operations: dict[str, Any]) -> Any:
    return json_patch(OBJECT, list(operations))


def test_operations_are_done_in_order() -> None:
    result = patched(
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "replace", "path": "/data/a", "value": "one"},
        {"op": "copy", "from": "/data/a", "path": "/data/c"},
        {"op": "move", "from": "/data/b", "path": "/data/d"},
        {"op": "remove", "path": "/metadata/labels"},
    )
    assert result["data"] == {"a": "one", "c": "one", "d": "2", "with/slash": "2", "with~tilde": "3"}
    assert "labels" not in result["metadata"]


def test_pointers_reach_keys_with_slash_and_tilde() -> None:
    result = patched(
        {"op": "replace", "path": "/data/with~1slash", "value": "s"},
        {"op": "replace", "path": "/data/with~0tilde", "value": "t"},
    )
    assert (result["data"]["with/slash"], result["data"]["with~tilde"]) == ("s", "t")


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("-", ["one", "two", "new"]),
        ("0", ["new", "one", "two"]),
        ("2", ["one", "two", "new"]),
        ("-1", ["one", "two", "new"]),
        ("-3", ["new", "one", "two"]),
    ],
)
def test_a_list_takes_an_item_at_its_end_before_a_position_or_counted_from_the_end(
    position: str, expected: list[str]
) -> None:
    result = patched({"op": "add", "path": f"/metadata/finalizers/{position}", "value": "new"})
    assert result["metadata"]["finalizers"] == expected


def test_a_failed_test_changes_nothing_and_reports_the_path() -> None:
    before = deepcopy(OBJECT)
    with pytest.raises(TestFailed, match="testing value /data/a failed: test failed") as refused:
        patched({"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/a", "value": "2"})
    assert before == OBJECT
    assert refused.value.code == 422


@pytest.mark.parametrize(("found", "expected"), [(1, True), (1, 1.0), (True, 1), (0, False), ([1], [True])])
def test_a_truth_an_integer_and_a_float_are_not_equal(found: Any, expected: Any) -> None:
    with pytest.raises(TestFailed):
        json_patch({"value": found}, [{"op": "test", "path": "/value", "value": expected}])


def test_replacing_a_missing_key_adds_it_but_not_below_a_missing_parent() -> None:
    assert patched({"op": "replace", "path": "/data/new", "value": "x"})["data"]["new"] == "x"
    with pytest.raises(InapplicablePatch, match="doc is missing path: /metadata/annotations/x: missing value"):
        patched({"op": "replace", "path": "/metadata/annotations/x", "value": "x"})


def test_a_copy_is_independent_of_its_source() -> None:
    result = patched(
        {"op": "copy", "from": "/metadata", "path": "/copy"},
        {"op": "add", "path": "/copy/labels/app", "value": "changed"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "three"},
    )
    assert result["copy"]["labels"] == {"app": "changed"}
    assert result["copy"]["finalizers"] == ["one", "two"]
    assert result["metadata"] == {**OBJECT["metadata"], "finalizers": ["one", "two", "three"]}


def test_values_of_the_patch_are_not_changed_by_later_operations() -> None:
    value = {"inner": {"list": [1]}}
    operations = [
        {"op": "add", "path": "/first", "value": value},
        {"op": "add", "path": "/second", "value": value},
        {"op": "add", "path": "/first/inner/list/-", "value": 2},
        {"op": "replace", "path": "", "value": value},
        {"op": "add", "path": "/inner/list/-", "value": 3},
    ]
    before = deepcopy(operations)
    assert json_patch({}, operations) == {"inner": {"list": [1, 3]}}
    assert operations == before


def test_unchanged_parts_are_shared() -> None:
    result = patched({"op": "add", "path": "/data/new", "value": "x"})
    assert result["metadata"] is OBJECT["metadata"]


def test_ten_thousand_operations_are_the_most() -> None:
    operation = {"op": "test", "path": "/data/a", "value": "1"}
    json_patch(OBJECT, [operation] * MAX_OPERATIONS)
    with pytest.raises(
        PatchTooLarge, match="The allowed maximum operations in a JSON patch is 10000, got 10001"
    ) as refused:
        json_patch(OBJECT, [operation] * (MAX_OPERATIONS + 1))
    assert refused.value.code == 413


def test_copies_that_double_an_object_are_stopped() -> None:
    operations = [{"op": "copy", "from": "/a", "path": f"/a/{position}"} for position in range(64)]
    with pytest.raises(
        InapplicablePatch, match=r"accumulated size increase of copy is \d+, exceeding the limit 3145728"
    ):
        json_patch({"a": {"x": "y" * 100}}, operations)


def test_moves_that_nest_an_object_are_stopped() -> None:
    operations = []
    for _ in range(200):
        operations += [
            {"op": "move", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/a", "value": {"x": {"x": {"x": {}}}}},
            {"op": "move", "from": "/b", "path": "/a/x/x/x/x"},
        ]
    with pytest.raises(InapplicablePatch, match="exceeded max depth"):
        json_patch({"a": {"list": [1]}}, operations)


def test_a_copy_deeper_than_the_stack_is_an_error_of_the_patch() -> None:
    operations: list[dict[str, Any]] = []
    for _ in range(2_000):
        operations += [
            {"op": "move", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/a", "value": {}},
            {"op": "move", "from": "/b", "path": "/a/x"},
        ]
    operations.append({"op": "copy", "from": "/a", "path": "/c"})
    with pytest.raises(InapplicablePatch, match="error while performing deep copy"):
        json_patch({"a": {}}, operations)


def test_long_pointers_to_a_shallow_result_are_fine() -> None:
    operations = [{"op": "add", "path": "/a/b/c/d", "value": 1}] * 50
    assert json_patch({"a": {"b": {"c": {}}}}, operations) == {"a": {"b": {"c": {"d": 1}}}}


@pytest.mark.parametrize("document", [None, "text", 5, True])
def test_a_scalar_document_is_rejected(document: Any) -> None:
    with pytest.raises(InapplicablePatch):
        json_patch(document, [])


def test_a_patch_must_be_a_list() -> None:
    with pytest.raises(
        MalformedPatch,
        match=r"error decoding patch: json: cannot unmarshal object into Go value of type \[\]handlers.jsonPatchOp",
    ) as refused:
        json_patch(OBJECT, {"op": "add"})
    assert refused.value.code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/-0", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/-0", max_size=2), inner, max_size=3),
    max_leaves=8,
)
POINTERS = st.lists(st.sampled_from(["a", "b", "0", "1", "-1", "-", "~0", "~1", "", "x"]), max_size=4).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])},
        optional={"path": POINTERS, "from": POINTERS, "value": JSON},
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(JSON.filter(lambda value: isinstance(value, dict | list)), OPERATIONS)
def test_any_operations_apply_or_are_rejected_and_change_no_argument(
    document: Any, operations: list[dict[str, Any]]
) -> None:
    before = deepcopy((document, operations))
    with suppress(InapplicablePatch):
        json_patch(document, operations)
    assert before == (document, operations)


@settings(max_examples=100, deadline=None)
@given(JSON, JSON)
def test_any_value_can_be_set_tested_and_removed(first: Any, second: Any) -> None:
    document = {"first": first, "second": second}
    operations = [
        {"op": "copy", "from": "/first", "path": "/third"},
        {"op": "test", "path": "/third", "value": first},
        {"op": "move", "from": "/second", "path": "/fourth"},
        {"op": "test", "path": "/fourth", "value": second},
        {"op": "remove", "path": "/first"},
    ]
    assert json_patch(document, operations) == {"third": first, "fourth": second}


@settings(max_examples=150, deadline=None)
@given(st.recursive(JSON | st.floats(allow_nan=False), lambda inner: st.lists(inner, max_size=2), max_leaves=3))
def test_a_patch_of_any_shape_is_rejected_with_a_typed_error_or_applies(patch: Any) -> None:
    with suppress(MalformedPatch, InapplicablePatch):
        json_patch({"a": 1}, patch)
