"""Entries: what is known of an object without decoding it, and what a read gives."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import kind_of
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.kinds.core_v1 import Node, Pod, Service

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u-1",
        "resourceVersion": "42",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n-1"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s-1", "controller": True},
        ],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]},
    "status": {"phase": "Running"},
}
COLLECTION = CollectionInfo(kind_of(Pod))


def without(value: dict[str, Any], field: str) -> dict[str, Any]:
    return {**value, "metadata": {name: each for name, each in value["metadata"].items() if name != field}}


def entry(value: Any = POD, collection: CollectionInfo = COLLECTION, **options: Any) -> Entry:
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return EntryDecoder(collection, **options).decode(data)


def test_an_entry_has_the_fields_that_controllers_need() -> None:
    found = entry()
    assert found.key == NamespacedName("shop", "web-0")
    assert found.uid == "u-1"
    assert found.resource_version == "42"
    assert found.generation == 3
    assert found.labels == {"app": "web"}
    assert not found.is_being_deleted
    assert found.controller is not None
    assert found.controller.uid == "s-1"
    assert [owner.uid for owner in found.owner_references] == ["n-1", "s-1"]
    assert found.header.name == "web-0"
    assert str(found) == "Pod shop/web-0"
    assert repr(found) == "<Pod shop/web-0 at resourceVersion 42>"


def test_an_entry_shows_that_its_object_is_terminating() -> None:
    value = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}  # type: ignore[dict-item]
    assert entry(value).is_being_deleted


def test_one_entry_is_read_typed_as_a_dict_and_as_metadata() -> None:
    found = entry()
    assert found.read(Pod).spec.node_name == "node-1"  # type: ignore[union-attr]
    assert found.dict() == without(POD, "managedFields")
    assert found.read(Unstructured.of("v1", "Pod")) == found.dict()
    assert found.metadata().metadata == found.read(Pod).metadata
    assert kind_of(found.metadata()) == kind_of(Pod)
    assert found.read(MetadataOf(Pod)).metadata.labels == {"app": "web"}


def test_items_of_typed_lists_get_api_version_and_kind() -> None:
    bare = {name: value for name, value in POD.items() if name not in ("apiVersion", "kind")}
    assert entry(bare).dict() == without(POD, "managedFields")
    assert entry(bare).read(Pod) == entry().read(Pod)


def test_every_read_returns_a_new_object() -> None:
    found = entry()
    for read in (lambda: found.read(Pod), found.dict, found.metadata):
        mine = read()
        metadata = mine["metadata"] if isinstance(mine, dict) else mine.metadata
        labels = metadata["labels"] if isinstance(metadata, dict) else metadata.labels
        labels["app"] = "changed"
        assert found.labels == {"app": "web"}
        assert found.read(Pod).metadata.labels == {"app": "web"}
    with pytest.raises(TypeError):
        found.labels["app"] = "changed"  # type: ignore[index]
    with pytest.raises(AttributeError):
        found.uid = "changed"  # type: ignore[misc]


def test_an_entry_is_not_read_as_another_kind() -> None:
    with pytest.raises(WrongKind, match="Pod shop/web-0: not a Service of v1"):
        entry().read(Service)


def test_of_metadata_alone_nothing_else_is_read() -> None:
    value = {**POD, "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
    value.pop("spec")
    found = entry(value, CollectionInfo(kind_of(Pod), metadata_only=True))
    assert found.read(MetadataOf(Pod)).metadata.name == "web-0"
    with pytest.raises(ObjectError, match=r"Pod shop/web-0: the cache has metadata only; read MetadataOf\(Pod\)"):
        found.read(Pod)
    with pytest.raises(WrongKind):
        entry(POD, CollectionInfo(kind_of(Pod), metadata_only=True))


def test_managed_fields_are_removed_by_default() -> None:
    assert b"managedFields" not in entry().data
    assert entry(keep_managed_fields=True).dict() == POD


def arrangements() -> list[bytes]:
    """One object, written in many ways."""
    encode = msgspec.json.encode
    metadata = POD["metadata"]
    assert isinstance(metadata, dict)
    fields = dict(metadata)
    first = {"managedFields": fields["managedFields"], **without(POD, "managedFields")["metadata"]}
    alone = {"managedFields": fields["managedFields"], "name": "web-0"}
    named = {**fields, "annotations": {"managedFields": "x", "z": '"managedFields":[{"manager":"kubectl"}]'}}
    return [
        encode(POD),
        encode({name: POD[name] for name in ("spec", "status", "metadata", "kind", "apiVersion")}),
        encode({**POD, "metadata": first}),
        encode({**POD, "metadata": alone}),
        encode({**POD, "metadata": named}),
        encode({**POD, "metadata": {"name": "x", "managedFields": []}}),
        encode({**POD, "metadata": {"name": "x", "managedFields": None}}),
        encode({"metadata": {"managedFields": fields["managedFields"], "name": "x"}}),
        encode({"metadata": {"name": "x"}}),
        encode({"metadata": {"name": "x", "labels": {"managedFields": []}, "managedFields": []}}),
        encode({"metadata": {"name": "x", "managedFields": []}, "spec": {"managedFields": []}}),
        encode({"metadata": {"name": "x"}, "spec": {"managedFields": [1]}}),
        encode({"metadata": {"annotations": {"metadata": "y"}, "name": "x", "managedFields": [1]}, "spec": {}}),
        b'{"metadata":{"name":"early","managedFields":[1]},' + encode(POD)[1:],
        encode({"data": {"metadata": fields, "x": '{"metadata":{'}, "metadata": fields}),
        encode({"data": "{", "metadata": fields}),
        msgspec.json.format(encode(POD)),
        msgspec.json.format(encode({"spec": {}, "metadata": fields})),
        b" " + encode(POD) + b"\n",
        b'{"metadata":{"name":"early","labels":{"x":"y"}},' + encode(POD)[1:],
    ]


@pytest.mark.parametrize("data", arrangements())
def test_managed_fields_are_removed_from_every_json_formatting(data: bytes) -> None:
    value = msgspec.json.decode(data)
    found = entry(data)
    value["metadata"].pop("managedFields", None)
    assert msgspec.json.decode(found.data) == value
    assert msgspec.json.decode(found.metadata_json) == {"metadata": value["metadata"]}
    assert found.key.name == value["metadata"]["name"]
    kept = entry(data, keep_managed_fields=True)
    assert msgspec.json.decode(kept.data) == msgspec.json.decode(data)
    assert msgspec.json.decode(kept.metadata_json) == {"metadata": msgspec.json.decode(data)["metadata"]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "managedFields", "a", "{", '"']), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    before=st.dictionaries(st.sampled_from(["apiVersion ", "spec", "data"]), JSON, max_size=2),
    after=st.dictionaries(st.sampled_from(["status", "items"]), JSON, max_size=2),
    annotations=st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=2),
    managed=st.lists(JSON, max_size=2),
    place=st.integers(0, 2),
)
@settings(max_examples=150)
def test_cutting_managed_fields_changes_nothing_else(
    before: dict[str, Any], after: dict[str, Any], annotations: dict[str, str], managed: list[Any], place: int
) -> None:
    fields: list[tuple[str, Any]] = [("name", "x"), ("annotations", annotations)]
    fields.insert(place, ("managedFields", managed))
    data = msgspec.json.encode({**before, "metadata": dict(fields), **after})
    found = entry(data)
    expected = {**before, "metadata": {"name": "x", "annotations": annotations}, **after}
    assert msgspec.json.decode(found.data) == expected
    assert msgspec.json.decode(found.metadata_json) == {"metadata": expected["metadata"]}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "Pod: Input data was truncated"),
        (b"[]", "Pod: Expected `object`, got `array`"),
        (b'{"metadata":{"name":"a"}', "Pod: Input data was truncated"),
        (b"{}", "Pod: metadata: missing"),
        (b'{"metadata":{}}', "Pod: metadata.name: missing"),
        (b'{"metadata":{"name":7}}', "Pod: Expected `str`, got `int`"),
        (b'{"metadata":"x"}', "Pod: Expected `object`, got `str`"),
        (b'{"kind":"Service","metadata":{"name":"a"}}', "expected v1, Kind=Pod, got , Kind=Service"),
        (b'{"metadata":{"name":"\xff"}}', "Pod: "),
        (b'{"metadata":' + b"[" * 100_000, "Pod: "),
    ],
)
def test_an_object_of_another_kind_is_rejected(data: bytes, problem: str) -> None:
    with pytest.raises(ObjectError) as caught:
        entry(data)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("labels", [b"null", b"7", b"[]", b'{"a":1,"b":"2"}'])
def test_labels_of_invalid_types_are_ignored(labels: bytes) -> None:
    found = entry(b'{"metadata":{"name":"a","labels":' + labels + b"}}")
    assert found.labels == ({"b": "2"} if b"b" in labels else {})


def test_null_is_treated_as_empty() -> None:
    found = entry(b'{"metadata":{"name":"a","namespace":null,"uid":null,"resourceVersion":null,"generation":null}}')
    assert (found.key, found.uid, found.resource_version, found.generation) == (NamespacedName("", "a"), "", "", 0)


# Transforms


def test_a_transform_keeps_key_uid_and_resource_version() -> None:
    def slim(pod: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"labels": {"tier": "front"}}, "spec": {"nodeName": pod["spec"]["nodeName"]}}

    found = entry(transform=slim)
    assert found.key == NamespacedName("shop", "web-0")
    assert (found.uid, found.resource_version) == ("u-1", "42")
    assert found.labels == {"tier": "front"}
    assert found.dict() == {"apiVersion": "v1", "kind": "Pod", **slim(POD)}
    assert found.read(Pod).spec.node_name == "node-1"  # type: ignore[union-attr]


def test_a_transform_may_drop_the_metadata() -> None:
    found = entry(transform=lambda pod: {"spec": pod["spec"]})
    assert found.resource_version == "42"
    assert found.dict()["metadata"] == {}


def test_managed_fields_are_cut_after_a_transform_too() -> None:
    assert entry(transform=lambda pod: pod).dict() == without(POD, "managedFields")
    assert entry(transform=lambda pod: pod, keep_managed_fields=True).dict() == POD


@pytest.mark.parametrize(
    ("transform", "problem"),
    [
        (lambda pod: 1 / 0, "transform failed: ZeroDivisionError"),
        (lambda pod: None, "must return a dict, not NoneType"),
        (lambda pod: {"spec": object()}, "transform failed"),
        (lambda pod: {"kind": "Service"}, "expected v1, Kind=Pod, got , Kind=Service"),
        (lambda pod: {"metadata": 7}, "Expected `object`, got `int`"),
    ],
)
def test_a_transform_that_fails_is_an_error_of_that_object(transform: Any, problem: str) -> None:
    with pytest.raises(ObjectError, match=problem):
        entry(transform=transform)


def test_a_large_text_before_the_metadata_is_not_held_longer_than_its_object() -> None:
    def read() -> None:
        decoder = EntryDecoder(COLLECTION)
        for number in range(40):
            blob = {"blob": f"{number}" * 100_000, **without(POD, "managedFields")}
            assert decoder.decode(msgspec.json.encode(blob)).dict() == blob

    tracemalloc.start()
    read()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_000_000


def test_cluster_scoped_objects_have_a_bare_name_as_key() -> None:
    found = entry({"metadata": {"name": "node-1"}}, CollectionInfo(kind_of(Node)))
    assert str(found.key) == "node-1"
    assert found.key == NamespacedName.parse("node-1")
