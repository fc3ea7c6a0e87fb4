"""A field that was set is encoded, also if it was set to its default; a field that was not set is not."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import msgspec

from ostinato.api.codec import from_dict, to_dict, to_json
from ostinato.api.object import CustomResource
from ostinato.api.serializer.overlay import overlay
from ostinato.api.struct import Struct


class PoolSpec(Struct):
    replicas: int = 1
    image: str = "nginx"
    zones: list[str] = []
    note: str | None = None


class LargePoolSpec(PoolSpec):
    shards: int = 2


class Pool(CustomResource, group="example.dev", version="v1"):
    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    others: list[PoolSpec] | None = None
    by_zone: dict[str, PoolSpec] | None = None
    paused: bool = False


@dataclass
class Plain:
    replicas: int = 1
    note: str | None = None
    zones: list[str] = field(default_factory=list)


class PlainPool(CustomResource, group="example.dev", version="v1"):
    spec: Plain


def spec_of(spec: PoolSpec) -> object:
    return to_dict(Pool(spec=spec)).get("spec")


def test_a_value_equal_to_the_default_is_encoded_if_it_was_set() -> None:
    assert spec_of(PoolSpec(replicas=1)) == {"replicas": 1}
    assert spec_of(PoolSpec(replicas=1, image="nginx", zones=[])) == {"replicas": 1, "image": "nginx", "zones": []}
    assert to_json(Pool(paused=False)) == b'{"apiVersion":"example.dev/v1","kind":"Pool","paused":false}'


def test_a_field_that_was_not_set_is_not_encoded() -> None:
    assert spec_of(PoolSpec()) is None
    assert spec_of(PoolSpec(note=None)) is None
    assert spec_of(PoolSpec(replicas=2)) == {"replicas": 2}


def test_an_assignment_sets_a_field() -> None:
    spec = PoolSpec()
    spec.replicas = 1
    assert spec_of(spec) == {"replicas": 1}
    spec.replicas = 3
    assert spec_of(spec) == {"replicas": 3}


def test_fields_of_lists_maps_and_subclasses_are_encoded_too() -> None:
    pool = Pool(others=[PoolSpec(replicas=1)], by_zone={"a": PoolSpec(image="nginx")})
    assert to_dict(pool)["others"] == [{"replicas": 1}]
    assert to_dict(pool)["byZone"] == {"a": {"image": "nginx"}}
    assert spec_of(LargePoolSpec(shards=2, replicas=1)) == {"shards": 2, "replicas": 1}


def test_copies_have_the_same_fields_set() -> None:
    pool = Pool(spec=PoolSpec(replicas=1), paused=False)
    for duplicate in (copy.copy(pool), copy.deepcopy(pool), pool.__replace__()):
        assert to_dict(duplicate) == to_dict(pool)
    assert to_dict(pool.__replace__(spec=PoolSpec(), paused=False)).get("paused") is False


def test_a_field_that_is_set_back_to_its_default_is_updated() -> None:
    raw = {"apiVersion": "example.dev/v1", "kind": "Pool", "spec": {"replicas": 5, "image": "nginx", "unknown": 1}}
    pool = from_dict(Pool, raw)
    pool.spec.replicas = 1
    assert overlay(raw, pool)["spec"] == {"replicas": 1, "image": "nginx", "unknown": 1}


def test_structs_are_equal_whether_a_field_was_set_or_not() -> None:
    assert PoolSpec(replicas=1) == PoolSpec()


def test_dataclasses_are_encoded_with_all_values_but_none() -> None:
    assert to_dict(PlainPool(spec=Plain(replicas=1)))["spec"] == {"replicas": 1, "zones": []}


def test_classes_may_refer_to_classes_that_follow() -> None:
    class Early(Struct):
        later: Late | None = None  # noqa: F821 - defined below, in a module
        size: int = 1

    assert Early(size=1).__explicit__ == {"size"}
