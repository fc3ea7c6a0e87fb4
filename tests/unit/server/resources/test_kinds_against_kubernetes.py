"""Defaults, conversions and Table rows, compared with the results of Kubernetes' own code."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.time import Time
from ostinato.server.request import body
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.tables import cells_of, pod_conditions
from ostinato.server.resources.tables.cells import human, name_and_creation
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

Json = dict[str, Any]

RECORDED = msgspec.json.decode((Path(__file__).parents[3] / "data" / "server" / "kinds.json").read_bytes())
NOW = Time.parse(RECORDED["now"])
OBJECTS: list[Json] = RECORDED["objects"]
WORLD = World.real()
REGISTRY = Registry(LocalIndex(MemoryLog(), WORLD.clock), WORLD)
BY_KIND = {resource.gvk: resource for resource in REGISTRY}


def resource_of(obj: Json) -> Resource:
    return BY_KIND[GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])]


def name_of(case: Json) -> str:
    obj = case["object"]
    return f"{obj['kind']}-{obj['metadata']['name']}"


def without_type(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


@pytest.mark.parametrize("case", OBJECTS, ids=name_of)
def test_a_kind_is_defaulted_as_by_kubernetes(case: Json) -> None:
    resource = resource_of(case["object"])
    obj = body.shaped(resource, case["object"])
    if resource.to_storage is not None:  # conversion applies defaults, too
        assert resource.from_storage is not None
        obj = resource.object(msgspec.json.encode(resource.stored(obj)))
    assert obj == case["defaulted"]


@pytest.mark.parametrize("case", [case for case in OBJECTS if "other" in case], ids=name_of)
def test_a_kind_of_two_versions_is_converted_as_by_kubernetes(case: Json) -> None:
    one, other = resource_of(case["object"]), resource_of(case["other"])
    stored = one.stored(body.shaped(one, case["object"]))
    assert other.object(msgspec.json.encode(stored)) == case["other"]


@pytest.mark.parametrize("case", [case for case in OBJECTS if "other" in case], ids=name_of)
def test_a_kind_of_two_versions_survives_a_round_trip(case: Json) -> None:
    one, other = resource_of(case["object"]), resource_of(case["other"])
    stored = one.stored(body.shaped(one, case["object"]))
    back = other.stored(body.shaped(other, case["other"]))
    for obj in (stored, back):
        obj.get("spec", {}).get("metrics", []).sort(key=str)  # v1 has the CPU metric last
    assert back == stored


@pytest.mark.parametrize("case", [case for case in OBJECTS if "row" in case], ids=name_of)
def test_a_kind_is_shown_in_a_table_as_by_kubernetes(case: Json) -> None:
    resource = resource_of(case["object"])
    stored = resource.stored(body.shaped(resource, case["object"]))
    key = resource.gvr.group, resource.gvr.resource
    assert cells_of(*key)(stored, NOW) == case["row"]["cells"]
    if resource.gvk == GroupVersionKind("", "v1", "Pod"):
        assert pod_conditions(stored) == case["row"].get("conditions", [])


def test_every_kind_with_columns_of_its_own_is_compared() -> None:
    compared = {resource_of(case["object"]).group_resource for case in OBJECTS if "row" in case}
    own = {
        resource.group_resource
        for resource in REGISTRY
        if cells_of(resource.gvr.group, resource.gvr.resource) is not name_and_creation
    }
    assert {str(kind) for kind in own - compared} == {"apiservices.apiregistration.k8s.io"}


@pytest.mark.parametrize(("seconds", "text"), RECORDED["durations"].items())
def test_durations_are_formatted_as_in_kubernetes(seconds: str, text: str) -> None:
    assert human(timedelta(seconds=int(seconds))) == text
