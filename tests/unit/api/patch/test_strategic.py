from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.patch import InapplicablePatch, MalformedPatch, PatchError, UnmergeablePatch, strategic_merge
from ostinato.api.patch.strategic import merged_patches
from ostinato.api.schema import Schema, builtin_schemas


def builtin(group: str, version: str, kind: str) -> Schema:
    schema = builtin_schemas().of(GroupVersionKind(group, version, kind))
    assert schema is not None
    return schema


POD = builtin("", "v1", "Pod")
DEPLOYMENT = builtin("apps", "v1", "Deployment")

ORIGINAL: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app": "web", "tier": "front"}, "finalizers": ["a", "b", "c"]},
    "spec": {
        "containers": [
            {"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "side", "image": "side:1"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def merged(patch: Any) -> dict[str, Any]:
    before = deepcopy((ORIGINAL, patch))
    result = strategic_merge(ORIGINAL, patch, POD)
    assert before == (ORIGINAL, patch)
    return result


def containers(patch: list[Any], **directives: Any) -> Any:
    return merged({"spec": {"containers": patch, **directives}})["spec"]["containers"]


def test_maps_are_merged_and_null_deletes_a_key() -> None:
    result = merged({"metadata": {"labels": {"tier": None, "new": "x"}}})
    assert result["metadata"]["labels"] == {"app": "web", "new": "x"}


def test_lists_of_maps_are_merged_by_their_key() -> None:
    result = containers([{"name": "app", "image": "app:2", "env": [{"name": "B", "value": None}, {"name": "A"}]}])
    assert result == [
        {"name": "app", "image": "app:2", "env": [{"name": "B"}, {"name": "A", "value": "1"}]},
        {"name": "side", "image": "side:1"},
    ]


def test_new_items_come_before_those_that_the_patch_does_not_name() -> None:
    result = containers([{"name": "new", "image": "new:1"}])
    assert [item["name"] for item in result] == ["new", "app", "side"]


def test_lists_of_scalars_that_merge_become_a_union() -> None:
    result = merged({"metadata": {"finalizers": ["d", "b", "d"]}})
    assert result["metadata"]["finalizers"] == ["d", "a", "b", "c"]


def test_other_lists_are_replaced() -> None:
    assert merged({"spec": {"tolerations": [{"key": "z"}]}})["spec"]["tolerations"] == [{"key": "z"}]


def test_a_delete_directive_empties_a_map_and_removes_an_item() -> None:
    assert merged({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}
    assert containers([{"name": "app", "$patch": "delete"}]) == [{"name": "side", "image": "side:1"}]
    assert containers([{"name": "none", "$patch": "delete"}]) == ORIGINAL["spec"]["containers"]


def test_a_replace_directive_replaces_a_map_or_a_list() -> None:
    assert merged({"metadata": {"labels": {"$patch": "replace", "only": "x"}}})["metadata"]["labels"] == {"only": "x"}
    assert containers([{"$patch": "replace"}, {"name": "only"}]) == [{"name": "only"}]


def test_items_are_deleted_from_a_list_of_scalars() -> None:
    result = merged({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "zz"]}})
    assert result["metadata"]["finalizers"] == ["a", "c"]


def test_the_order_of_a_merged_list_is_set() -> None:
    order = [{"name": "side"}, {"name": "app"}]
    assert [item["name"] for item in containers([], **{"$setElementOrder/containers": order})] == ["side", "app"]


def test_only_retained_keys_stay() -> None:
    original = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(original, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_a_patch_of_null_changes_nothing() -> None:
    assert merged(None) == ORIGINAL


def test_unchanged_parts_are_shared() -> None:
    result = merged({"spec": {"containers": [{"name": "app", "image": "app:2"}]}})
    assert result["metadata"] is ORIGINAL["metadata"]
    assert result["spec"]["volumes"] is ORIGINAL["spec"]["volumes"]
    assert result["spec"]["containers"][1] is ORIGINAL["spec"]["containers"][1]
    assert result["spec"]["containers"][0]["env"] is ORIGINAL["spec"]["containers"][0]["env"]


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        ([], MalformedPatch, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (7, MalformedPatch, "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (
            {"spec": {"containers": [{"image": "x"}]}},
            UnmergeablePatch,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"name": "app", "$patch": "merge"}]}},
            UnmergeablePatch,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"metadata": {"labels": {"$patch": "odd"}}},
            UnmergeablePatch,
            "unknown patch type: odd in map: map[$patch:odd]",
        ),
        ({"metadata": {"$retainKeys": ["a"], "b": 1}}, MalformedPatch, "invalid patch format of retainKeys"),
        ({"metadata": {"$retainKeys": [{}]}}, MalformedPatch, "invalid patch format of retainKeys"),
        (
            {"metadata": {"$deleteFromPrimitiveList": []}},
            MalformedPatch,
            "invalid patch format of primitive list",
        ),
        ({"metadata": {"$setElementOrder": []}}, MalformedPatch, "invalid patch format of setElementOrder list"),
        ({"metadata": {"finalizers": [["x"]]}}, UnmergeablePatch, "list element types are not identical: "),
    ],
)
def test_a_patch_that_cannot_be_merged_is_rejected_in_the_words_of_the_api_server(
    patch: Any, error: type[PatchError], message: str
) -> None:
    with pytest.raises(error) as refused:
        merged(patch)
    assert str(refused.value).startswith(message)


def test_lists_of_lists_are_rejected() -> None:
    with pytest.raises(InapplicablePatch, match="lists of lists are not supported") as refused:
        strategic_merge({"metadata": {"finalizers": []}}, {"metadata": {"finalizers": [["x"]]}}, POD)
    assert refused.value.code == 422


def test_maps_of_a_merged_list_without_merge_key_are_rejected() -> None:
    schema = Schema.of({"properties": {"list": {"type": "array", "x-kubernetes-patch-strategy": "merge"}}})
    with pytest.raises(UnmergeablePatch, match="cannot merge lists without merge key for struct"):
        strategic_merge({"list": [{"a": 1}]}, {"list": [{"a": 1}]}, schema)


@pytest.mark.parametrize("schema", [None, POD, Schema.of({"type": "object"})])
def test_fields_that_the_schema_does_not_know_merge_maps_and_replace_lists(schema: Schema | None) -> None:
    original = {"odd": {"map": {"a": 1, "b": 2}, "list": [1, 2]}}
    patch = {"odd": {"map": {"b": None, "c": 3}, "list": [3], "$setElementOrder/list": [3]}}
    assert strategic_merge(original, patch, schema) == {"odd": {"map": {"a": 1, "c": 3}, "list": [3]}}


def test_values_of_a_map_are_merged_by_their_own_schema() -> None:
    item = {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}}
    schema = Schema.of({"additionalProperties": {"properties": {"set": item}}})
    original, patch = {"a": {"set": ["x"]}}, {"a": {"set": ["y"]}}
    assert sorted(strategic_merge(original, patch, schema)["a"]["set"]) == ["x", "y"]


def test_patches_are_merged_with_their_directives_kept() -> None:
    first = {"metadata": {"labels": {"a": None}, "$deleteFromPrimitiveList/finalizers": ["a"]}}
    second = {"metadata": {"labels": {"b": None}, "$deleteFromPrimitiveList/finalizers": ["b"]}}
    assert merged_patches(first, second, POD) == {
        "metadata": {"labels": {"a": None, "b": None}, "$deleteFromPrimitiveList/finalizers": ["b"]}
    }


def test_many_items_that_an_empty_order_does_not_name_are_kept() -> None:
    items = [{"name": f"c{number}"} for number in range(30)]
    result = containers(items, **{"$setElementOrder/containers": []})
    assert len(result) == 32


def test_an_object_of_five_hundred_levels_is_merged() -> None:
    original: Any = {"keep": 1}
    patch: Any = {"set": [{"x": None}]}
    for _ in range(498):
        original, patch = {"a": original}, {"a": patch}
    result = strategic_merge(original, patch, None)
    for _ in range(498):
        result = result["a"]
    assert result == {"keep": 1, "set": [{}]}


def test_a_new_value_of_five_hundred_levels_is_cleaned() -> None:
    value: Any = {"gone": None}
    for _ in range(249):
        value = {"a": [value]}
    result = strategic_merge({}, {"value": value}, POD)["value"]
    for _ in range(249):
        result = result["a"][0]
    assert result == {}


def test_an_item_of_five_hundred_levels_without_its_merge_key_is_rejected() -> None:
    value: Any = 1
    for _ in range(490):
        value = {"a": value}
    with pytest.raises(UnmergeablePatch, match="does not contain declared merge key: name"):
        strategic_merge(ORIGINAL, {"spec": {"containers": [value]}}, POD)


KEYS = st.sampled_from(
    [
        *["spec", "metadata", "containers", "name", "env", "finalizers", "labels", "volumes", "x"],
        *["$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers"],
        "$deleteFromPrimitiveList/finalizers",
    ]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["app", "a", "delete", "replace", "merge"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, ODD, max_size=4), st.dictionaries(KEYS, ODD, max_size=4))
def test_malformed_objects_and_patches_merge_or_raise_a_typed_error(
    original: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = deepcopy((original, patch))
    with suppress(PatchError):
        strategic_merge(original, patch, POD)
    assert before == (original, patch)
