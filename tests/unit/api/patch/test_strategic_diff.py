from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.equality import identical
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.patch import (
    PatchConflict,
    PreconditionFailed,
    create_apply_patch,
    create_three_way_merge,
    create_three_way_strategic,
    create_two_way_strategic,
    key_unchanged,
    merge_patch,
    metadata_key_unchanged,
    strategic_merge,
)
from ostinato.api.schema import Schema, builtin_schemas

_found = builtin_schemas().of(GroupVersionKind("apps", "v1", "Deployment"))
assert _found is not None
DEPLOYMENT: Schema = _found


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


# Objects as users write them: merge keys are there and tell items apart.

NAMES = st.sampled_from(["a", "b", "c", "d"])
TEXTS = st.sampled_from(["1", "2"])
LABELS = st.dictionaries(NAMES, TEXTS, max_size=3)


def unique(items: st.SearchStrategy[dict[str, Any]], key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(items, max_size=4, unique_by=lambda item: item[key])


def struct(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


ENV = struct({"name": NAMES}, {"value": TEXTS})
PORTS = struct({"containerPort": st.sampled_from([80, 9, 443])}, {"name": TEXTS})
CONTAINERS = struct(
    {"name": NAMES},
    {
        "image": TEXTS,
        "args": st.lists(TEXTS, max_size=2),
        "env": unique(ENV, "name"),
        "ports": unique(PORTS, "containerPort"),
    },
)
VOLUMES = struct({"name": NAMES}, {"emptyDir": LABELS, "secret": LABELS})
DEPLOYMENTS = struct(
    {"kind": st.just("Deployment")},
    {
        "metadata": struct({}, {"labels": LABELS, "finalizers": st.lists(NAMES, max_size=4, unique=True).map(sorted)}),
        "spec": struct(
            {},
            {
                "replicas": st.integers(0, 3),
                "strategy": struct({}, {"type": TEXTS, "rollingUpdate": LABELS}),
                "template": struct(
                    {},
                    {
                        "spec": struct(
                            {},
                            {
                                "containers": unique(CONTAINERS, "name"),
                                "volumes": unique(VOLUMES, "name"),
                                "tolerations": st.lists(LABELS, max_size=2),
                            },
                        )
                    },
                ),
            },
        ),
    },
)


def decoded(value: Any) -> Any:
    """A result as a server would store it: directives in a new value find nothing to direct, and are unknown fields."""
    if isinstance(value, dict):
        return {key: decoded(item) for key, item in value.items() if not key.startswith("$")}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def test_values_that_are_only_put_in_order_are_no_difference() -> None:
    before, after = ({"metadata": {"finalizers": list(names)}} for names in ("dc", "cd"))
    assert create_two_way_strategic(before, after, DEPLOYMENT) == {}, "as it is in Go; the other way round it is one"
    assert create_two_way_strategic(after, before, DEPLOYMENT) == {
        "metadata": {"$setElementOrder/finalizers": ["d", "c"]}
    }


@settings(max_examples=150, deadline=None)
@given(DEPLOYMENTS, DEPLOYMENTS)
def test_applying_the_difference_gives_the_modified_object(original: dict[str, Any], modified: dict[str, Any]) -> None:
    before = deepcopy((original, modified))
    patch = create_two_way_strategic(original, modified, DEPLOYMENT)
    result = strategic_merge(original, patch, DEPLOYMENT)
    assert identical(result, modified)
    assert identical(strategic_merge(result, patch, DEPLOYMENT), modified), "a patch is idempotent"
    assert before == (original, modified)


@settings(max_examples=100, deadline=None)
@given(DEPLOYMENTS, DEPLOYMENTS)
def test_a_three_way_patch_of_an_untouched_object_gives_the_modified_object(
    original: dict[str, Any], modified: dict[str, Any]
) -> None:
    strategic = create_three_way_strategic(original, modified, original, DEPLOYMENT, overwrite=False)
    assert identical(strategic_merge(original, strategic, DEPLOYMENT), modified)
    merging = create_three_way_merge(original, modified, original)
    assert identical(merge_patch(original, merging), modified)


@settings(max_examples=120, deadline=None)
@given(DEPLOYMENTS, DEPLOYMENTS, DEPLOYMENTS)
def test_applying_a_configuration_twice_changes_nothing_the_second_time(
    original: dict[str, Any], modified: dict[str, Any], current: dict[str, Any]
) -> None:
    before = deepcopy((original, modified, current))
    first = create_three_way_strategic(original, modified, current, DEPLOYMENT)
    live = decoded(strategic_merge(current, first, DEPLOYMENT))
    second = create_three_way_strategic(modified, modified, live, DEPLOYMENT)
    assert identical(strategic_merge(live, second, DEPLOYMENT), live)
    merged = merge_patch(current, create_three_way_merge(original, modified, current))
    assert create_three_way_merge(modified, modified, merged) == {}
    assert before == (original, modified, current)


def test_an_object_without_change_gives_an_empty_patch() -> None:
    value = pod_spec(containers=[{"name": "a", "env": [{"name": "x"}]}], volumes=[{"name": "v", "emptyDir": {}}])
    assert create_two_way_strategic(value, deepcopy(value), DEPLOYMENT) == {}


def test_a_removed_item_becomes_a_delete_directive_with_the_new_order() -> None:
    patch = create_two_way_strategic(
        pod_spec(containers=[{"name": "a"}, {"name": "b", "image": "1"}]),
        pod_spec(containers=[{"name": "b", "image": "2"}]),
        DEPLOYMENT,
    )
    assert patch == pod_spec(
        **{
            "$setElementOrder/containers": [{"name": "b"}],
            "containers": [{"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"}],
        }
    )


def test_a_removed_scalar_becomes_an_entry_of_the_parallel_list() -> None:
    patch = create_two_way_strategic(
        {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["b", "c"]}}, DEPLOYMENT
    )
    assert patch == {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["b", "c"],
            "finalizers": ["c"],
        }
    }


def test_a_field_whose_strategy_retains_keys_names_them() -> None:
    patch = create_two_way_strategic(
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        DEPLOYMENT,
    )
    assert patch == {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}}}


def test_fields_that_the_schema_does_not_know_are_compared_as_maps_and_whole_lists() -> None:
    original, modified = {"x": {"m": {"a": 1}, "l": [1]}}, {"x": {"m": {"b": 2}, "l": [1, 2]}}
    assert create_two_way_strategic(original, modified, None) == {"x": {"m": {"a": None, "b": 2}, "l": [1, 2]}}


# Three ways.


def test_a_null_in_the_configuration_deletes_what_others_set() -> None:
    modified, current = {"spec": {"replicas": None}}, {"spec": {"replicas": 1, "paused": True}}
    assert create_three_way_strategic({}, modified, current, DEPLOYMENT) == {"spec": {"replicas": None}}


def test_what_others_set_is_left_alone_and_what_the_configuration_dropped_is_deleted() -> None:
    original = {"spec": {"replicas": 1, "paused": True}}
    modified = {"spec": {"minReadySeconds": 5, "paused": True}}
    current = {"spec": {"replicas": 1, "paused": False, "revisionHistoryLimit": 10}}
    expected = {"spec": {"replicas": None, "minReadySeconds": 5, "paused": True}}
    assert create_three_way_strategic(original, modified, current, DEPLOYMENT) == expected
    assert create_three_way_merge(original, modified, current) == expected


def test_a_change_on_both_sides_is_a_conflict_unless_overwritten() -> None:
    original, modified, current = ({"spec": {"replicas": number}} for number in (1, 2, 3))
    assert create_three_way_strategic(original, modified, current, DEPLOYMENT) == {"spec": {"replicas": 2}}
    with pytest.raises(PatchConflict) as refused:
        create_three_way_strategic(original, modified, current, DEPLOYMENT, overwrite=False)
    assert str(refused.value) == (
        "patch:\nspec:\n  replicas: 2\n\n"
        "conflicts with changes made from original to current:\nspec:\n  replicas: 3\n\n"
    )


def test_deletions_from_a_union_on_both_sides_are_no_error() -> None:
    def finalizers(name: str) -> dict[str, Any]:
        return {"metadata": {"finalizers": [name]}}

    patch = create_three_way_strategic(finalizers("a"), finalizers("b"), finalizers("c"), DEPLOYMENT, overwrite=False)
    assert strategic_merge(finalizers("c"), patch, DEPLOYMENT) == {"metadata": {"finalizers": ["b", "c"]}}


def test_objects_of_five_hundred_levels_are_compared_merged_and_shown() -> None:
    def nested(value: int) -> dict[str, Any]:
        result: Any = value
        for _ in range(500):
            result = {"a": result}
        return {"x": result}

    original, modified, current = nested(1), nested(2), nested(3)
    assert identical(create_three_way_strategic(original, modified, current, DEPLOYMENT), modified)
    assert identical(create_three_way_merge(original, modified, current), modified)
    with pytest.raises(PatchConflict, match=r"patch:\nmap\[x:map\[a:"):
        create_three_way_strategic(original, modified, current, DEPLOYMENT, overwrite=False)


@pytest.mark.parametrize(
    ("modified", "message"),
    [
        ({"kind": "B", "metadata": {"name": "a"}}, "precondition failed for: map[kind:B]"),
        ({"kind": "A", "metadata": {"name": "b"}}, "precondition failed for: map[metadata:map[name:b]]"),
    ],
)
def test_a_patch_that_would_make_another_object_of_it_fails_its_preconditions(
    modified: dict[str, Any], message: str
) -> None:
    original = {"kind": "A", "metadata": {"name": "a"}}
    preconditions = (key_unchanged("kind"), metadata_key_unchanged("name"))
    for create in (
        lambda: create_three_way_strategic(original, modified, original, None, preconditions=preconditions),
        lambda: create_three_way_merge(original, modified, original, preconditions=preconditions),
    ):
        with pytest.raises(PreconditionFailed) as refused:
            create()
        assert str(refused.value) == message


def test_a_precondition_on_metadata_holds_without_metadata() -> None:
    assert metadata_key_unchanged("name")({"metadata": None})
    assert metadata_key_unchanged("name")({})


def test_built_in_kinds_are_applied_by_strategic_merge_and_custom_resources_by_merge_patch() -> None:
    modified = pod_spec(containers=[{"name": "a", "image": "2"}])
    current = pod_spec(containers=[{"name": "a", "image": "1"}, {"name": "injected"}])
    strategic = create_apply_patch(None, modified, current, DEPLOYMENT)
    assert strategic.content_type == "application/strategic-merge-patch+json"
    assert [
        c["name"]
        for c in strategic_merge(current, strategic.patch, DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    ] == [
        "a",
        "injected",
    ]
    merging = create_apply_patch(None, modified, current, None)
    assert merging.content_type == "application/merge-patch+json"
    assert merge_patch(current, merging.patch) == modified


def test_a_custom_resource_is_not_renamed_by_apply() -> None:
    live = {"kind": "Widget", "metadata": {"name": "a"}}
    with pytest.raises(PreconditionFailed):
        create_apply_patch(live, {"kind": "Widget", "metadata": {"name": "b"}}, live, None)
