from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato.api.gvk import GroupKind, GroupVersion, GroupVersionKind
from ostinato.api.object import CustomResource, Object
from ostinato.api.scheme import MissingKind, MissingVersion, NoConversion, NotRegistered, Scheme, SchemeError

GROUP = "example.dev"
V1, V2, BETA = GroupVersion(GROUP, "v1"), GroupVersion(GROUP, "v2"), GroupVersion(GROUP, "v1beta1")


class Widget(CustomResource, group=GROUP, version="v1"):
    size: int = 0


class WidgetV2(CustomResource, group=GROUP, version="v2", kind="Widget"):
    length: int = 0


class WidgetBeta(CustomResource, group=GROUP, version="v1beta1", kind="Widget"):
    text: str = ""


class Fleet(CustomResource, group=GROUP, version="v1", namespaced=False, list_kind="Fleets"):
    pass


class Report(msgspec.Struct):
    message: str = ""


@pytest.fixture
def scheme() -> Scheme:
    scheme = Scheme("test")
    scheme.register(Widget)
    scheme.register(WidgetV2)
    return scheme


def test_a_kind_and_its_class_find_each_other(scheme: Scheme) -> None:
    gvk = V1.kind("Widget")
    assert scheme.type_of(gvk) is Widget
    assert scheme.kinds(Widget()) == (gvk,)
    assert scheme.kinds(Widget) == (gvk,)
    assert scheme.recognizes(gvk)
    assert not scheme.recognizes(V1.kind("Gadget"))


def test_a_scheme_knows_resource_and_scope(scheme: Scheme) -> None:
    scheme.register(Fleet)
    assert scheme.info(V1.kind("Widget")).plural == "widgets"
    assert scheme.info(V1.kind("Widget")).namespaced
    assert not scheme.info(V1.kind("Fleet")).namespaced


def test_registering_the_same_class_again_changes_nothing(scheme: Scheme) -> None:
    scheme.register(Widget)
    assert scheme.kinds(Widget) == (V1.kind("Widget"),)


def test_another_class_for_the_same_kind_is_rejected(scheme: Scheme) -> None:
    with pytest.raises(SchemeError) as caught:
        scheme.register(Fleet, V1.kind("Widget"))
    assert str(caught.value) == (
        f"Double registration of different types for example.dev/v1, Kind=Widget: "
        f'old={__name__}.Widget, new={__name__}.Fleet in scheme "test"'
    )
    assert scheme.type_of(V1.kind("Widget")) is Widget


def test_a_version_is_required(scheme: Scheme) -> None:
    with pytest.raises(SchemeError, match=r"version is required on all types: example\.dev/, Kind=Widget .*Widget"):
        scheme.register(Widget, GroupVersionKind(GROUP, "", "Widget"))


def test_a_class_may_stand_for_several_kinds(scheme: Scheme) -> None:
    scheme.register(Widget, V2.kind("OldWidget"))
    assert scheme.kinds(Widget) == (V1.kind("Widget"), V2.kind("OldWidget"))
    assert scheme.type_of(V2.kind("OldWidget")) is Widget


def test_unversioned_kinds_are_found_by_their_name_alone(scheme: Scheme) -> None:
    scheme.register_unversioned(Report, GroupVersionKind("", "v1", "Report"))
    assert scheme.type_of(V2.kind("Report")) is Report
    assert scheme.is_unversioned(Report())
    assert not scheme.is_unversioned(Widget)
    assert scheme.kinds(Report()) == (GroupVersionKind("", "v1", "Report"),)
    report = Report("x")
    assert scheme.convert(report, V2) is report


def test_the_name_of_an_unversioned_kind_is_unique(scheme: Scheme) -> None:
    scheme.register_unversioned(Report, GroupVersionKind("", "v1", "Report"))
    scheme.register_unversioned(Report, GroupVersionKind("", "v1", "Report"))
    with pytest.raises(SchemeError, match='has already been registered as unversioned kind "/v2, Kind=Report"'):
        scheme.register_unversioned(Widget, GroupVersionKind("", "v2", "Report"))


def test_an_untyped_object_answers_for_itself(scheme: Scheme) -> None:
    assert scheme.kinds({"apiVersion": "a/v9", "kind": "Unknown"}) == (GroupVersionKind("a", "v9", "Unknown"),)


@pytest.mark.parametrize("kind", [None, "", 5])
def test_an_untyped_object_without_a_kind_is_an_error_of_its_own(scheme: Scheme, kind: Any) -> None:
    with pytest.raises(MissingKind, match="Object 'Kind' is missing in 'unstructured object has no kind'"):
        scheme.kinds({"apiVersion": "v1", "kind": kind})


@pytest.mark.parametrize("version", [None, "", "/", "a/", 5])
def test_an_untyped_object_without_a_version_is_another(scheme: Scheme, version: Any) -> None:
    with pytest.raises(MissingVersion, match="Object 'apiVersion' is missing in 'unstructured object has no version'"):
        scheme.kinds({"apiVersion": version, "kind": "Pod"})


def test_a_class_that_is_not_registered_is_an_error_that_names_the_scheme(scheme: Scheme) -> None:
    with pytest.raises(NotRegistered) as caught:
        scheme.kinds(Fleet())
    assert str(caught.value) == f'no kind is registered for the type {__name__}.Fleet in scheme "test"'


def test_a_kind_that_is_not_registered_is_an_error_that_names_the_scheme(scheme: Scheme) -> None:
    with pytest.raises(NotRegistered) as caught:
        scheme.type_of(V1.kind("Gadget"))
    assert str(caught.value) == 'no kind "Gadget" is registered for version "example.dev/v1" in scheme "test"'


def test_list_kinds_lead_to_the_class_of_their_items(scheme: Scheme) -> None:
    scheme.register(Fleet)
    assert scheme.type_of_list(V1.kind("WidgetList")) is Widget
    assert scheme.type_of_list(V1.kind("Fleets")) is Fleet
    assert scheme.type_of_list(V1.kind("FleetList")) is None
    assert scheme.type_of_list(V1.kind("Widget")) is None


def test_the_kinds_of_a_version_are_listed(scheme: Scheme) -> None:
    scheme.register(Fleet)
    assert scheme.known_types(V1) == {"Widget": Widget, "Fleet": Fleet}


def test_versions_are_preferred_in_the_order_of_registration(scheme: Scheme) -> None:
    scheme.register(WidgetBeta)
    assert scheme.versions(GROUP) == (V1, V2, BETA)
    assert scheme.versions("unknown") == ()


def test_preferred_versions_are_first_and_others_follow(scheme: Scheme) -> None:
    scheme.register(WidgetBeta)
    scheme.register(Fleet)
    scheme.prefer(V2)
    assert scheme.versions(GROUP) == (V2, V1, BETA)
    assert scheme.versions_of(GroupKind(GROUP, "Widget")) == (V2, V1, BETA)
    assert scheme.versions_of(GroupKind(GROUP, "Fleet")) == (V1,)


def test_preferences_are_for_one_group(scheme: Scheme) -> None:
    with pytest.raises(SchemeError, match=r"must register versions for exactly one group: apps, example\.dev"):
        scheme.prefer(V1, GroupVersion("apps", "v1"))


def with_conversions(scheme: Scheme) -> Scheme:
    scheme.register(WidgetBeta)
    scheme.register_conversion(Widget, WidgetV2, lambda w: WidgetV2(metadata=w.metadata, length=w.size))
    scheme.register_conversion(WidgetV2, Widget, lambda w: Widget(metadata=w.metadata, size=w.length))
    scheme.register_conversion(WidgetBeta, WidgetV2, lambda w: WidgetV2(metadata=w.metadata, length=int(w.text)))
    scheme.register_conversion(WidgetV2, WidgetBeta, lambda w: WidgetBeta(metadata=w.metadata, text=str(w.length)))
    return scheme


def test_an_object_is_converted_to_another_version(scheme: Scheme) -> None:
    assert with_conversions(scheme).convert(Widget(size=3), V2) == WidgetV2(length=3)


def test_convertible_reports_which_classes_can_be_converted(scheme: Scheme) -> None:
    assert not scheme.convertible(Widget, WidgetBeta)
    assert with_conversions(scheme).convertible(Widget, WidgetBeta)


def test_spokes_are_converted_through_the_hub(scheme: Scheme) -> None:
    assert with_conversions(scheme).convert(Widget(size=3), BETA) == WidgetBeta(text="3")


def test_an_untyped_object_stays_untyped(scheme: Scheme) -> None:
    widget = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "size": 3}
    converted = with_conversions(scheme).convert(widget, BETA)
    assert converted == {
        "apiVersion": "example.dev/v1beta1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "text": "3",
    }
    assert scheme.convert(widget, V1) is widget


def test_an_object_of_the_wanted_version_is_returned(scheme: Scheme) -> None:
    widget = Widget(size=3)
    assert scheme.convert(widget, V1) is widget


def test_versions_without_a_conversion_are_an_error(scheme: Scheme) -> None:
    with pytest.raises(NoConversion, match=r"converting \(.*Widget\) to \(.*WidgetV2\): unknown conversion"):
        scheme.convert(Widget(), V2)


def test_a_version_without_the_kind_is_an_error(scheme: Scheme) -> None:
    with pytest.raises(NotRegistered, match='Widget is not suitable for converting to "apps/v1" in scheme "test"'):
        scheme.convert(Widget(), GroupVersion("apps", "v1"))


def test_field_selectors_are_name_and_namespace_unless_registered(scheme: Scheme) -> None:
    gvk = V1.kind("Widget")
    assert scheme.field_label(gvk, "metadata.name", "a") == ("metadata.name", "a")
    assert scheme.field_label(gvk, "metadata.namespace", "a") == ("metadata.namespace", "a")
    with pytest.raises(SchemeError) as caught:
        scheme.field_label(gvk, "spec.size", "1")
    assert str(caught.value) == (
        '"spec.size" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )
    scheme.register_field_labels(gvk, lambda label, value: (f"{label}.bytes", value))
    assert scheme.field_label(gvk, "spec.size", "1") == ("spec.size.bytes", "1")


def test_lazy_kinds_are_loaded_when_they_are_asked_for() -> None:
    loaded: list[str] = []

    def load() -> type[Object]:
        loaded.append("Widget")
        return Widget

    scheme = Scheme(lazy={V1.kind("Widget"): load, V2.kind("Widget"): lambda: WidgetV2})
    assert scheme.recognizes(V1.kind("Widget"))
    assert scheme.versions(GROUP) == (V1, V2)
    assert loaded == []
    assert scheme.type_of(V1.kind("Widget")) is Widget
    assert scheme.kinds(Widget()) == (V1.kind("Widget"),)
    assert loaded == ["Widget"]


def test_an_object_of_a_lazy_kind_is_known_without_asking_for_the_kind_first() -> None:
    scheme = Scheme(lazy={V1.kind("Widget"): lambda: Widget})
    assert scheme.kinds(Widget()) == (V1.kind("Widget"),)
    with pytest.raises(NotRegistered):
        scheme.kinds(Fleet)


def test_schemes_know_nothing_of_each_other(scheme: Scheme) -> None:
    assert not Scheme().recognizes(V1.kind("Widget"))
