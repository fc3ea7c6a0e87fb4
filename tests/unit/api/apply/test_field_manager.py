"""What a server sees of server-side apply."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from ostinato.api.apply import (
    ANY,
    ApplyError,
    FieldManager,
    UnknownVersionError,
    extract_applied,
    field_path,
    from_paths,
    only,
    restore_times,
    without,
)
from ostinato.api.apply.managedfields.last_applied import LAST_APPLIED
from ostinato.api.errors import BadRequest, Conflict
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas

_GVK = GroupVersionKind("", "v1", "ConfigMap")
_CONFIG_MAPS = FieldManager(_GVK, {"v1": builtin_schemas().of(_GVK)})
_DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
_DEPLOYMENTS = FieldManager(
    _DEPLOYMENT,
    {"apps/v1": builtin_schemas().of(_DEPLOYMENT)},
    allowed={"apps/v1": without(from_paths(field_path("status")))},
)


def at(second: int) -> str:
    return f"2024-01-01T00:00:{second:02d}Z"


def config_map(data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return value if data is None else {**value, "data": data}


def stored(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {**value["metadata"], "uid": "u"}}


def owners(value: dict[str, Any]) -> dict[tuple[str, str], Any]:
    entries = value["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_a_creation_owns_every_field_that_the_server_does_not_set() -> None:
    after = _CONFIG_MAPS.update(
        None,
        config_map(
            {"x": "1"},
            namespace="n",
            labels={"l": "1"},
            uid="u",
            resourceVersion="5",
            generation=1,
            creationTimestamp=at(0),
        ),
        "creator",
        at(1),
    )
    assert after["metadata"]["managedFields"] == [
        {
            "manager": "creator",
            "operation": "Update",
            "apiVersion": "v1",
            "time": at(1),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]


def test_structs_that_a_kind_always_has_are_not_owned_themselves() -> None:
    after = _DEPLOYMENTS.update(
        None,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 1,
                "strategy": {"rollingUpdate": {"maxSurge": 1}},
                "template": {"spec": {"containers": [{"name": "c", "resources": {}}]}},
            },
            "status": {"replicas": 1},
        },
        "m",
        at(1),
    )
    assert owners(after) == {
        ("m", "Update"): {
            "f:spec": {
                "f:replicas": {},
                "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                "f:template": {
                    "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {}}}}
                },
            }
        }
    }


def test_an_update_that_changes_nothing_keeps_entries_and_times() -> None:
    live = stored(_CONFIG_MAPS.update(None, config_map({"x": "1"}), "creator", at(1)))
    assert _CONFIG_MAPS.update(live, stored(config_map({"x": "1"})), "other", at(2)) == live


def test_an_update_takes_what_it_changes_and_removes_what_it_drops() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1", "y": "1", "z": "1"}), "one", at(1)))
    after = _CONFIG_MAPS.update(live, stored(config_map({"x": "2", "y": "1"})), "two", at(2))
    assert owners(after) == {("one", "Apply"): {"f:data": {"f:y": {}}}, ("two", "Update"): {"f:data": {"f:x": {}}}}


def test_an_apply_that_changes_nothing_gives_back_the_live_object_itself() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    assert _CONFIG_MAPS.apply(live, config_map({"x": "1"}), "one", at(2)) is live


def test_a_field_left_out_of_the_next_apply_goes_unless_another_owns_it() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1", "y": "1"}), "one", at(1)))
    live = stored(_CONFIG_MAPS.apply(live, config_map({"x": "1"}), "two", at(2)))
    after = _CONFIG_MAPS.apply(live, config_map(), "one", at(3))
    assert after["data"] == {"x": "1"}
    assert owners(after) == {("two", "Apply"): {"f:data": {"f:x": {}}}}


def test_the_same_value_is_owned_together_and_another_is_a_conflict() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    shared = _CONFIG_MAPS.apply(live, config_map({"x": "1"}), "two", at(2))
    assert owners(shared) == {("one", "Apply"): {"f:data": {"f:x": {}}}, ("two", "Apply"): {"f:data": {"f:x": {}}}}
    with pytest.raises(Conflict) as caught:
        _CONFIG_MAPS.apply(live, config_map({"x": "2"}), "two", at(2))
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    forced = _CONFIG_MAPS.apply(live, config_map({"x": "2"}), "two", at(2), force=True)
    assert owners(forced) == {("two", "Apply"): {"f:data": {"f:x": {}}}}


def test_several_conflicts_are_listed_by_manager() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1", "y": "1"}), "one", at(1)))
    live = _CONFIG_MAPS.update(live, stored(config_map({"x": "1", "y": "1", "z": "1"})), "two", at(2))
    with pytest.raises(Conflict) as caught:
        _CONFIG_MAPS.apply(live, config_map({"x": "2", "y": "2", "z": "2"}), "three", at(3))
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.x\n- .data.y\n'
        'conflicts with "two" using v1:\n- .data.z'
    )
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [
        ("FieldManagerConflict", ".data.x"),
        ("FieldManagerConflict", ".data.y"),
        ("FieldManagerConflict", ".data.z"),
    ]


@pytest.mark.parametrize("entries", [[], [{}], [{"manager": "", "fieldsV1": None}]])
def test_managed_fields_are_reset_by_an_empty_list_or_entry(entries: list[Any]) -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    after = _CONFIG_MAPS.update(live, stored(config_map({"x": "2"}, managedFields=entries)), "two", at(2))
    assert "managedFields" not in after["metadata"]
    later = _CONFIG_MAPS.update(after, stored(config_map({"x": "3"})), "two", at(3))
    assert "managedFields" not in later["metadata"]
    applied = _CONFIG_MAPS.apply(later, config_map({"y": "1"}), "one", at(4))
    assert owners(applied) == {
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:x": {}}},
        ("one", "Apply"): {"f:data": {"f:y": {}}},
    }


@pytest.mark.parametrize(
    "entries",
    [
        None,
        "text",
        [5],
        [{"manager": 5}],
        [{"manager": "x", "operation": "Bogus"}],
        [{"manager": "x", "operation": "Update"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}, "time": "noon"}],
    ],
    ids=str,
)
def test_managed_fields_that_are_absent_or_cannot_be_read_leave_the_live_ones(entries: Any) -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    after = _CONFIG_MAPS.update(live, stored(config_map({"x": "1"}, managedFields=entries)), "two", at(2))
    assert after["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_managed_fields_sent_through_a_subresource_are_ignored() -> None:
    status = FieldManager(_GVK, {"v1": builtin_schemas().of(_GVK)}, subresource="status")
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    after = status.update(live, stored(config_map({"x": "2"}, managedFields=[])), "two", at(2))
    (entry,) = after["metadata"]["managedFields"]
    assert (entry["manager"], entry["subresource"]) == ("two", "status")


def test_live_managed_fields_that_cannot_be_read_count_as_none_for_updates_and_stop_an_apply() -> None:
    live = stored(config_map({"x": "1"}, managedFields=[{"operation": "Bogus"}]))
    assert "managedFields" not in _CONFIG_MAPS.update(live, stored(config_map({"x": "2"})), "two", at(2))["metadata"]
    with pytest.raises(ApplyError, match="failed to decode managed fields: operation must be `Apply` or `Update`"):
        _CONFIG_MAPS.apply(live, config_map({"x": "2"}), "two", at(2))


def test_a_configuration_must_not_bring_managed_fields_and_must_be_of_the_kind() -> None:
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        _CONFIG_MAPS.apply(None, config_map({}, managedFields=[]), "one", at(1))
    for api_version, kind, shown in (
        ("v2", "ConfigMap", "/v2, Kind=ConfigMap"),
        ("apps/v1", "Deployment", "apps/v1, Kind=Deployment"),
        (None, None, "/, Kind="),
        ("a/b/c", "ConfigMap", "/, Kind="),
        (5, "ConfigMap", "/, Kind=ConfigMap"),
    ):
        with pytest.raises(BadRequest) as caught:
            _CONFIG_MAPS.apply(None, {**config_map({}), "apiVersion": api_version, "kind": kind}, "one", at(1))
        assert caught.value.message == f"invalid object type: {shown}"


def test_a_configuration_with_unknown_fields_or_duplicates_is_rejected() -> None:
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}}
    with pytest.raises(ApplyError) as caught:
        _DEPLOYMENTS.apply(None, {**config, "spec": {"bogus": 1}}, "one", at(1))
    assert str(caught.value) == (
        "failed to create typed patch object (n/d; apps/v1, Kind=Deployment): .spec.bogus: field not declared in schema"
    )
    containers = [{"name": "a", "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "TCP"}]}]
    with pytest.raises(ApplyError) as caught:
        _DEPLOYMENTS.apply(None, {**config, "spec": {"template": {"spec": {"containers": containers}}}}, "one", at(1))
    assert str(caught.value).endswith(
        '.spec.template.spec.containers[name="a"].ports: duplicate entries for key [containerPort=53,protocol="TCP"]'
    )


def test_at_most_ten_updates_are_kept_apart() -> None:
    live = stored(_CONFIG_MAPS.update(None, config_map({"k0": "1"}), "m0", at(0)))
    for n in range(1, 12):
        data = {**live["data"], f"k{n}": "1"}
        live = _CONFIG_MAPS.update(live, stored(config_map(data)), f"m{n}", at(n))
    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["time"] == at(2)
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}}


def test_entries_without_times_or_names_are_sorted_first() -> None:
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}}
    brought = [
        {**entry, "manager": "b", "time": "2024-01-01T02:00:00+02:00"},
        {**entry, "manager": "a", "time": "2024-01-01T00:00:01.5Z"},
        {**entry, "manager": "c"},
        {**entry},
        {**entry, "manager": "z", "operation": "Apply", "time": at(59)},
    ]
    after = _CONFIG_MAPS.update(None, config_map({"x": "1"}, managedFields=brought), "m", at(9))
    assert [(entry.get("manager"), entry.get("time")) for entry in after["metadata"]["managedFields"]] == [("m", at(9))]
    live = stored(config_map({"x": "1"}, managedFields=brought))
    kept = _CONFIG_MAPS.update(live, live, "m", at(9))["metadata"]["managedFields"]
    assert [(entry.get("manager"), entry.get("time")) for entry in kept] == [
        ("z", at(59)),
        (None, None),
        ("c", None),
        ("b", at(0)),
        ("a", at(1)),
    ]


def test_the_last_applied_annotation_is_honoured_and_refreshed_for_kubectl_alone() -> None:
    last = json.dumps(config_map({"x": "1"}))
    live = stored(_CONFIG_MAPS.update(None, config_map({"x": "1"}, annotations={LAST_APPLIED: last}), "csa", at(1)))
    with pytest.raises(Conflict):
        _CONFIG_MAPS.apply(live, config_map({"x": "2"}), "one", at(2))
    after = _CONFIG_MAPS.apply(live, config_map({"x": "2"}), "kubectl", at(2))
    assert after["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","data":{"x":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    )


def test_an_annotation_that_would_be_too_large_goes() -> None:
    live = stored(_CONFIG_MAPS.update(None, config_map({}, annotations={LAST_APPLIED: "{}"}), "csa", at(1)))
    after = _CONFIG_MAPS.apply(live, config_map({"x": "y" * 262144}), "kubectl", at(2))
    assert after["metadata"]["annotations"] == {}


def test_versions_that_cannot_be_converted_lose_their_owners() -> None:
    schema = Schema.of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})

    def convert(value: dict[str, Any], to: str) -> dict[str, Any]:
        if to == "example.dev/v3":
            raise UnknownVersionError(to)
        return {**value, "apiVersion": to}

    gvk = GroupVersionKind("example.dev", "v1", "Thing")
    manager = FieldManager(
        gvk, dict.fromkeys(("example.dev/v1", "example.dev/v2", "example.dev/v3"), schema), convert=convert
    )
    entry = {"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:size": {}}}
    thing = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "size": 1}
    entries = [
        {**entry, "manager": version, "apiVersion": f"example.dev/{version}"} for version in ("v1", "v2", "v3", "v4")
    ]
    live = {**thing, "metadata": {"name": "t", "uid": "u", "managedFields": entries}}
    assert [manager for manager, _ in owners(manager.update(live, live, "m", at(1)))] == ["v1", "v2"]
    after = manager.apply(live, {**thing, "size": 2}, "v3", at(1), force=True)
    assert [manager for manager, _ in owners(after)] == ["v3"]


def test_entries_of_a_version_that_a_custom_resource_no_longer_has_fail_an_apply_and_are_reset_by_an_update() -> None:
    schema = Schema.of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    gvk = GroupVersionKind("example.dev", "v1", "Thing")
    manager = FieldManager(gvk, {"example.dev/v1": schema}, drops_unknown_versions=False)
    thing = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "size": 1, "color": "red"}
    entry = {"operation": "Apply", "fieldsType": "FieldsV1"}
    entries = [
        {**entry, "manager": "old", "apiVersion": "example.dev/v1alpha1", "fieldsV1": {"f:size": {}}},
        {**entry, "manager": "new", "apiVersion": "example.dev/v1", "fieldsV1": {"f:color": {}}},
    ]
    live = {**thing, "metadata": {"name": "t", "uid": "u", "managedFields": entries}}
    for applier in ("old", "third"):
        with pytest.raises(ApplyError) as refused:
            manager.apply(live, {**thing, "size": 2}, applier, at(1), force=True)
        assert str(refused.value) == "request to convert CR to an invalid group/version: example.dev/v1alpha1"
    assert "managedFields" not in manager.update(live, {**live, "size": 2}, "patch", at(1))["metadata"]


@pytest.mark.parametrize("lost", ["always", "without size", "with size 2"])
def test_an_applier_that_moves_on_from_a_version_that_cannot_be_had_removes_nothing_of_it(lost: str) -> None:
    schema = Schema.of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})

    def convert(value: dict[str, Any], to: str) -> dict[str, Any]:
        missing = {"always": False, "without size": "size" not in value, "with size 2": value.get("size") == 2}
        if to == "example.dev/v2" and missing[lost]:
            raise UnknownVersionError(to)
        return {**value, "apiVersion": to}

    versions = dict.fromkeys(("example.dev/v1", "example.dev/v2"), schema)
    manager = FieldManager(GroupVersionKind("example.dev", "v1", "Thing"), versions, convert=convert)
    thing = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}}
    entry = {"operation": "Apply", "apiVersion": "example.dev/v2", "fieldsType": "FieldsV1"}
    entries = [
        {**entry, "manager": "one", "fieldsV1": {"f:color": {}, "f:size": {}}},
        {**entry, "manager": "two", "fieldsV1": {"f:shape": {}}},
    ]
    metadata = {"name": "t", "uid": "u", "managedFields": entries}
    live = {**thing, "metadata": metadata, "size": 1, "color": "red", "shape": "round"}
    if lost == "with size 2":
        after = manager.apply(live, {**thing, "size": 2}, "one", at(1))
        assert (after["color"], after["size"]) == ("red", 2)
        assert list(owners(after)) == [("one", "Apply")]
        updated = manager.update(live, {**live, "size": 2}, "m", at(1))
        assert list(owners(updated)) == [("m", "Update")]
        return
    after = manager.apply(live, {**thing, "shape": "round"}, "one", at(1))
    assert ("color" in after, "size" in after) == ((False, False) if lost == "always" else (True, True))


def test_a_live_object_of_a_version_that_is_unknown_cannot_be_applied_to() -> None:
    live = stored({**config_map({"x": "1"}), "apiVersion": "v0"})
    with pytest.raises(ApplyError, match="failed to convert live object"):
        _CONFIG_MAPS.apply(live, config_map({"x": "1"}), "one", at(1))
    managed = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    live["metadata"]["managedFields"] = [managed]
    assert "managedFields" not in _CONFIG_MAPS.update(live, stored(config_map({"x": "2"})), "m", at(1))["metadata"]


def test_an_endpoint_may_allow_few_fields_to_be_owned() -> None:
    pods = GroupVersionKind("", "v1", "Pod")
    resize = FieldManager(
        pods,
        {"v1": builtin_schemas().of(pods)},
        subresource="resize",
        allowed={"v1": only((*field_path("spec", "containers"), ANY, *field_path("resources")))},
    )
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [container]},
    }
    assert owners(resize.apply(None, pod, "one", at(1))) == {
        ("one", "Apply"): {
            "f:spec": {
                "f:containers": {'k:{"name":"c"}': {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}},
            }
        }
    }


def test_what_a_manager_applied_can_be_read_back() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}, labels={"l": "1"}), "one", at(1)))
    live = stored(_CONFIG_MAPS.apply(live, config_map({"y": "1"}), "two", at(2)))
    schema = builtin_schemas().of(_GVK)
    assert extract_applied(live, "one", schema) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"labels": {"l": "1"}},
        "data": {"x": "1"},
    }
    assert extract_applied(live, "one", schema, subresource="status") is None
    assert extract_applied(config_map({}), "one", schema) is None


def test_a_write_that_changes_times_alone_is_undone() -> None:
    live = stored(_CONFIG_MAPS.apply(None, config_map({"x": "1"}), "one", at(1)))
    later = json.loads(json.dumps(live).replace(at(1), at(2)))
    assert restore_times(live, later) == live
    assert restore_times(live, live) is live
    changed = {**later, "data": {"x": "2"}}
    assert restore_times(live, changed) is changed
    renamed = json.loads(json.dumps(later).replace('"one"', '"two"'))
    assert restore_times(live, renamed) is renamed
    bare = config_map({"x": "1"})
    assert restore_times(live, bare) is bare


@pytest.mark.parametrize("odd", [None, 5, "text", [], [1], {"managedFields": 5}, {"managedFields": {}}], ids=str)
def test_malformed_metadata_is_tolerated(odd: Any) -> None:
    live = stored(_CONFIG_MAPS.update(None, config_map({"x": "1"}), "m", at(1)))
    for before in (live, {**config_map({}), "metadata": odd}):
        _CONFIG_MAPS.update(before, {**config_map({}), "metadata": odd}, "m", at(2))
        with contextlib.suppress(ApplyError, BadRequest):
            _CONFIG_MAPS.apply(before, {**config_map({}), "metadata": odd}, "m", at(2))


def test_deeply_nested_values_are_safe() -> None:
    gvk = GroupVersionKind("example.dev", "v1", "Thing")
    manager = FieldManager(gvk, {"example.dev/v1": None})

    def nested(leaf: Any) -> dict[str, Any]:
        value = leaf
        for _ in range(450):
            value = {"a": value}
        return {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": value}

    live = stored(manager.update(None, nested(1), "m", at(1)))
    live = manager.update(live, stored(nested(2)), "n", at(2))
    live = manager.apply(live, nested(3), "one", at(3), force=True)
    live = manager.apply(live, {**nested(3), "spec": None}, "one", at(4))
    assert live["metadata"]["managedFields"]


def test_a_deeply_nested_configuration_of_kubectl_is_safe() -> None:
    gvk = GroupVersionKind("example.dev", "v1", "Thing")
    manager = FieldManager(gvk, {"example.dev/v1": None})
    value: Any = 1
    for _ in range(450):
        value = {"a": value}
    thing = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": value}
    annotated = {**thing, "metadata": {"name": "t", "annotations": {LAST_APPLIED: json.dumps({**thing, "spec": 1})}}}
    live = stored(manager.update(None, annotated, "m", at(1)))
    after = manager.apply(live, thing, "kubectl", at(2))
    assert after["metadata"]["annotations"] == {}
