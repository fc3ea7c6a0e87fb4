from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.codec import from_dict, from_json, to_dict, to_json
from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.object import Object, kind_of
from ostinato.api.serializer.overlay import overlay
from ostinato.api.serializer.type_info import TypeInfo, fields_of
from ostinato.api.status import Status
from ostinato.kinds import core_v1
from ostinato.kinds.builtin import builtin_scheme

# Objects of every kind as Go writes them: with no field set, and with fields filled at random.
GO = json.loads((Path(__file__).parents[2] / "data" / "kinds" / "go_objects.json").read_text())
SCHEME = builtin_scheme()


def class_of(case: dict[str, Any]) -> type[Object]:
    cls = SCHEME.type_of(GroupVersionKind(case["group"], case["version"], case["kind"]))
    assert issubclass(cls, Object)
    return cls


def without_zeros(value: Any) -> Any:
    """What Go leaves out or writes as null, 0 or "" depending on a tag that means nothing to a reader."""
    if isinstance(value, dict):
        kept = {key: without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [], "", 0, "0")}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


every_kind = pytest.mark.parametrize("case", GO, ids=lambda case: f"{case['group']}.{case['kind']}")


@every_kind
def test_an_object_without_a_field_set_is_read_as_go_writes_it(case: dict[str, Any]) -> None:
    cls = class_of(case)
    empty = from_dict(cls, case["empty"])
    assert without_zeros(to_dict(empty)) == {"apiVersion": kind_of(cls).gvk.api_version, "kind": case["kind"]}


@every_kind
def test_an_object_is_written_as_go_writes_it(case: dict[str, Any]) -> None:
    cls = class_of(case)
    typed = from_dict(cls, case["filled"])
    assert without_zeros(to_dict(typed)) == without_zeros(case["filled"])
    assert from_json(cls, json.dumps(case["filled"]).encode()) == typed
    assert from_json(cls, to_json(typed)) == typed
    assert copy.deepcopy(typed) == typed


@every_kind
def test_fields_of_a_newer_server_survive_an_update(case: dict[str, Any]) -> None:
    cls = class_of(case)
    newer = with_unknown_fields(case["filled"], TypeInfo(cls))
    typed = from_dict(cls, newer)
    typed.metadata.labels = {"changed": "yes"}
    written = overlay(newer, typed)
    assert written["metadata"]["labels"] == {"changed": "yes"}
    for document in (written, newer):
        document["metadata"].pop("labels", None)
    assert without_zeros(written) == without_zeros(newer)


def with_unknown_fields(value: Any, shape: TypeInfo) -> Any:
    """The value with a field that no class knows in each of its structs."""
    match shape.form:
        case "struct" if isinstance(value, dict):
            fields = {field.wire: field.type_info for field in fields_of(shape.type)}
            known = {
                name: with_unknown_fields(item, fields[name]) if name in fields else item
                for name, item in value.items()
            }
            return {**known, "addedLater": {"by": shape.type.__name__}}
        case "list" if isinstance(value, list) and shape.inner is not None:
            return [with_unknown_fields(item, shape.inner) for item in value]
        case "map" if isinstance(value, dict) and shape.inner is not None:
            return {key: with_unknown_fields(item, shape.inner) for key, item in value.items()}
    return value


def test_the_scheme_knows_all_kinds_and_loads_them() -> None:
    scheme = builtin_scheme("mine")
    pod = GroupVersionKind("", "v1", "Pod")
    assert scheme.name == "mine"
    assert scheme.recognizes(pod)
    assert scheme.type_of(pod) is core_v1.Pod
    assert scheme.type_of_list(pod.list_kind) is core_v1.Pod
    assert scheme.kinds(core_v1.Node()) == (GroupVersionKind("", "v1", "Node"),)
    assert not scheme.info(GroupVersionKind("", "v1", "Node")).namespaced
    assert set(scheme.known_types(GroupVersion("batch", "v1"))) == {"CronJob", "Job"}


def test_version_2_of_autoscaling_is_preferred() -> None:
    assert [version.version for version in builtin_scheme().versions("autoscaling")] == ["v2", "v1"]


def test_status_is_unversioned() -> None:
    assert builtin_scheme().type_of(GroupVersionKind("example.dev", "v1", "Status")) is Status
    assert builtin_scheme().is_unversioned(Status)


def test_each_scheme_is_its_own() -> None:
    first, second = builtin_scheme(), builtin_scheme()
    first.register(core_v1.Pod, GroupVersionKind("example.dev", "v1", "Pod"))
    assert not second.recognizes(GroupVersionKind("example.dev", "v1", "Pod"))
