from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest

from ostinato.api.codec import from_json
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource, KindInfo, Object, kind_of, origin, plural_of, set_origin
from ostinato.api.struct import Struct
from ostinato.kinds.core_v1 import ConfigMap


class WidgetSpec(Struct):
    replicas: int = 1
    image: str = "nginx"


class WidgetStatus(Struct):
    available_replicas: int = 0


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec
    status: WidgetStatus | None = None


class Fleet(
    CustomResource,
    group="example.dev",
    version="v1beta1",
    kind="WidgetFleet",
    plural="fleets",
    singular="fleet",
    namespaced=False,
    categories=["all"],
    list_kind="Fleets",
):
    pass


def test_kind_of_a_class() -> None:
    assert kind_of(Widget) == KindInfo(
        gvk=GroupVersionKind("example.dev", "v1", "Widget"),
        plural="widgets",
        singular="widget",
        namespaced=True,
        short_names=("wd",),
        list_kind="WidgetList",
    )
    assert kind_of(Widget).gvr == GroupVersionResource("example.dev", "v1", "widgets")


def test_all_names_of_a_kind_can_be_set() -> None:
    assert kind_of(Fleet) == KindInfo(
        gvk=GroupVersionKind("example.dev", "v1beta1", "WidgetFleet"),
        plural="fleets",
        singular="fleet",
        namespaced=False,
        categories=("all",),
        list_kind="Fleets",
    )


def test_an_object_answers_as_its_class_does() -> None:
    assert kind_of(Widget(spec=WidgetSpec())) is kind_of(Widget)


def test_a_class_without_a_version_is_not_a_kind() -> None:
    class Abstract(CustomResource):
        pass

    with pytest.raises(TypeError, match="class Abstract is not a kind: it has no version"):
        kind_of(Abstract)
    with pytest.raises(TypeError, match="class Object is not a kind"):
        kind_of(Object())


def test_a_group_without_a_version_is_rejected() -> None:
    with pytest.raises(TypeError, match="class Nameless: a kind needs a version"):

        class Nameless(CustomResource, group="example.dev"):
            pass


def test_api_version_and_kind_cannot_be_fields() -> None:
    with pytest.raises(TypeError, match="class Confused: kind cannot be a field; it follows from the class keywords"):

        class Confused(CustomResource, group="example.dev", version="v1"):
            kind: str = ""


def test_short_names_are_a_list() -> None:
    with pytest.raises(TypeError, match="short_names: expected a list of names, got the string 'wd'"):

        class Wrong(CustomResource, group="example.dev", version="v1", short_names="wd"):
            pass


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Pod", "pods"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("Endpoints", "endpoints"),
        ("Gateway", "gateways"),
        ("Key", "keys"),
        ("Mesh", "meshes"),
        ("Box", "boxes"),
        ("Patch", "patches"),
    ],
)
def test_the_plural_is_guessed_as_english_has_it(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_metadata_is_always_there_and_each_object_has_its_own() -> None:
    first, second = Widget(spec=WidgetSpec()), Widget(spec=WidgetSpec())
    first.metadata.labels["a"] = "b"
    assert second.metadata == ObjectMeta()


DATA = b'{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"new":1}}'


def test_an_object_remembers_the_json_it_was_read_from() -> None:
    assert origin(from_json(Widget, DATA)) == DATA
    assert origin(Widget(spec=WidgetSpec())) is None


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda widget: widget.__replace__(status=None)])
def test_copies_remember_it_too(duplicate: Any) -> None:
    widget = from_json(Widget, DATA)
    made = duplicate(widget)
    assert made == widget
    assert made is not widget
    assert origin(made) == DATA


def test_a_deep_copy_shares_nothing_that_can_change() -> None:
    widget = from_json(Widget, DATA)
    made = copy.deepcopy(widget)
    made.metadata.labels["a"] = "b"
    made.spec.replicas = 5
    assert widget == from_json(Widget, DATA)


def test_a_copy_of_an_object_made_here_has_nothing_to_remember() -> None:
    assert origin(copy.copy(Widget(spec=WidgetSpec()))) is None


def test_what_is_remembered_takes_no_part_in_comparisons() -> None:
    made = Widget(spec=WidgetSpec(), metadata=ObjectMeta(name="a"))
    assert from_json(Widget, DATA) == made
    assert repr(set_origin(made, b"{}")) == repr(from_json(Widget, DATA))


def test_what_is_remembered_is_not_written() -> None:
    assert "new" not in msgspec.to_builtins(from_json(Widget, DATA))["spec"]


def test_objects_can_be_pickled() -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "1"})
    assert pickle.loads(pickle.dumps(config_map)) == config_map
