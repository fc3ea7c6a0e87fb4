from __future__ import annotations

import copy
from typing import Any

import pytest

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import ObjectError, from_dict, to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import CustomResource
from ostinato.api.time import Time


class Widget(CustomResource, group="example.dev", version="v1"):
    pass


DOCUMENT: dict[str, Any] = {
    "apiVersion": "example.dev/v1",
    "kind": "Widget",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"note": "x"},
        "finalizers": ["one", "two", "one"],
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "deletionTimestamp": "2026-01-31T13:00:00Z",
    },
}

# Every test that takes `full` or `bare` runs for both forms of an object.


@pytest.fixture(params=["typed", "dict"])
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def full(form: str) -> AnyObject:
    return from_dict(Widget, DOCUMENT) if form == "typed" else copy.deepcopy(DOCUMENT)


@pytest.fixture
def bare(form: str) -> AnyObject:
    return Widget() if form == "typed" else {"apiVersion": "example.dev/v1", "kind": "Widget"}


def as_dict(instance: AnyObject) -> dict[str, Any]:
    return instance if isinstance(instance, dict) else to_dict(instance)


def test_metadata_is_read(full: AnyObject) -> None:
    assert access.gvk(full) == GroupVersionKind("example.dev", "v1", "Widget")
    assert access.key(full) == NamespacedName("default", "a")
    assert access.describe(full) == "Widget default/a"
    assert access.name(full) == "a"
    assert access.namespace(full) == "default"
    assert access.uid(full) == "u1"
    assert access.resource_version(full) == "7"
    assert access.generation(full) == 3
    assert access.labels(full) == {"app": "web"}
    assert access.annotations(full) == {"note": "x"}
    assert access.finalizers(full) == ("one", "two", "one")
    assert access.creation_timestamp(full) == Time.parse("2026-01-31T12:00:00Z")
    assert access.deletion_timestamp(full) == Time.parse("2026-01-31T13:00:00Z")
    assert access.is_being_deleted(full)


def test_what_is_missing_is_empty(bare: AnyObject) -> None:
    assert access.key(bare) == NamespacedName("", "")
    assert access.uid(bare) == ""
    assert access.resource_version(bare) == ""
    assert access.generation(bare) == 0
    assert access.labels(bare) == {}
    assert access.annotations(bare) == {}
    assert access.finalizers(bare) == ()
    assert access.creation_timestamp(bare) is None
    assert access.deletion_timestamp(bare) is None
    assert not access.is_being_deleted(bare)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None},
        {"metadata": "text"},
        {"metadata": []},
        {"metadata": {"name": 1, "labels": [], "finalizers": {"a": 1}, "generation": "x", "deletionTimestamp": 5}},
        {"apiVersion": 5, "kind": [], "metadata": {"finalizers": [1, None]}},
        {"metadata": {"creationTimestamp": "yesterday"}},
    ],
)
def test_what_is_of_a_wrong_type_is_empty(odd: dict[str, Any]) -> None:
    assert access.gvk(odd) == GroupVersionKind("", "", "")
    assert access.key(odd) == NamespacedName("", "")
    assert access.describe(odd) == "object "
    assert access.labels(odd) == {}
    assert access.generation(odd) == 0
    assert access.finalizers(odd) == ()
    assert access.deletion_timestamp(odd) is None
    assert access.creation_timestamp(odd) is None
    assert not access.is_being_deleted(odd)


def test_a_finalizer_is_added_once_and_at_the_end(bare: AnyObject) -> None:
    assert access.add_finalizer(bare, "one")
    assert access.add_finalizer(bare, "two")
    assert not access.add_finalizer(bare, "one")
    assert access.finalizers(bare) == ("one", "two")
    assert access.has_finalizer(bare, "two")
    assert as_dict(bare)["metadata"] == {"finalizers": ["one", "two"]}


def test_a_finalizer_is_removed_however_often_it_is_there(full: AnyObject) -> None:
    assert access.remove_finalizer(full, "one")
    assert access.finalizers(full) == ("two",)
    assert not access.remove_finalizer(full, "one")


def test_the_last_finalizer_leaves_no_empty_list(full: AnyObject) -> None:
    access.remove_finalizer(full, "one")
    access.remove_finalizer(full, "two")
    assert "finalizers" not in as_dict(full)["metadata"]


@pytest.mark.parametrize(
    ("change", "read"),
    [(access.set_label, access.labels), (access.set_annotation, access.annotations)],
)
def test_labels_and_annotations_are_set_and_removed(bare: AnyObject, change: Any, read: Any) -> None:
    assert change(bare, "a", "1")
    assert not change(bare, "a", "1")
    assert change(bare, "a", "2")
    assert change(bare, "b", "")
    assert read(bare) == {"a": "2", "b": ""}
    assert change(bare, "a", None)
    assert not change(bare, "a", None)
    assert read(bare) == {"b": ""}


def test_changing_an_object_without_proper_metadata_is_an_error() -> None:
    with pytest.raises(ObjectError, match="metadata: expected dict, got str"):
        access.add_finalizer({"metadata": "text"}, "one")
