"""Definitions: what is made of kinds, and that a server takes it and acts by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from tests.stage.api import Api, asking
from tests.unit.crd.sample_kinds import Gadget, OldSpec, Widget, WidgetSpec, WidgetV1Alpha1, WidgetV1Beta1

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Column,
    DefinitionMeta,
    Deprecated,
    ExactlyOneOf,
    NoStatus,
    PreserveUnknown,
    RawSchema,
    Scale,
    Selectable,
    Stored,
    marked,
)
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource, Object
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.crd import SchemaError, crd_of, resource
from ostinato.webhook import ServiceEndpoint, conversion

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.dev/v1/namespaces/default/widgets"


def test_a_definition_has_the_names_of_its_class() -> None:
    crd = crd_of(Widget)
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1"
    assert crd["kind"] == "CustomResourceDefinition"
    assert crd["metadata"] == {
        "name": "widgets.example.dev",
        "labels": {"app": "widgets"},
        "annotations": {"note": "made of types"},
    }
    spec = crd["spec"]
    assert (spec["group"], spec["scope"]) == ("example.dev", "Namespaced")
    assert spec["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["all", "toys"],
    }


def test_a_version_has_subresources_columns_and_fields_to_select_by() -> None:
    version = crd_of(Widget)["spec"]["versions"][0]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert version["additionalPrinterColumns"] == [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "How many there are."},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        {"name": "Ready", "type": "date", "jsonPath": ".status.readySince"},
        {"name": "Image", "type": "string", "jsonPath": ".spec.image", "description": "what runs"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert version["selectableFields"] == [{"jsonPath": ".spec.image"}, {"jsonPath": ".spec.color"}]


def test_the_schema_has_what_every_object_has() -> None:
    schema = crd_of(Widget)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A widget."
    assert schema["required"] == ["spec"]
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert "default" not in schema["properties"]["status"]


def test_a_kind_without_status_has_no_subresource() -> None:
    assert "subresources" not in crd_of(Gadget)["spec"]["versions"][0]
    assert crd_of(Gadget)["spec"]["scope"] == "Cluster"


def test_several_versions_are_in_the_order_of_preference_and_one_is_stored() -> None:
    versions = crd_of(WidgetV1Alpha1, WidgetV1Beta1, Widget)["spec"]["versions"]
    assert [(each["name"], each["served"], each["storage"]) for each in versions] == [
        ("v1", True, True),
        ("v1beta1", True, False),
        ("v1alpha1", False, False),
    ]
    assert versions[1]["deprecated"]
    assert versions[1]["deprecationWarning"] == "use example.dev/v1"


def test_the_status_may_be_written_with_the_rest() -> None:
    @marked(NoStatus(), Deprecated())
    class Thing(CustomResource, group="example.dev", version="v1"):
        status: OldSpec | None = None

    version = crd_of(Thing)["spec"]["versions"][0]
    assert "subresources" not in version
    assert version["deprecated"]
    assert "deprecationWarning" not in version


def test_a_conversion_by_webhook_is_part_of_the_definition() -> None:
    stanza = conversion(ServiceEndpoint("ops", "hooks"))
    assert crd_of(Widget, conversion=stanza)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"name": "hooks", "namespace": "ops", "path": "/convert", "port": 443}},
            "conversionReviewVersions": ["v1"],
        },
    }


def test_the_same_classes_give_the_same_definition() -> None:
    assert crd_of(Widget) == crd_of(Widget)
    assert "What a widget should be." in str(crd_of(Widget))
    assert "What a widget should be." not in str(crd_of(Widget, descriptions=False))


@asking
async def test_a_server_takes_what_is_made_and_acts_by_it(api: Api) -> None:
    crd = crd_of(Widget, WidgetV1Beta1, WidgetV1Alpha1)
    made = await api.post(f"{DEFINITIONS}?fieldValidation=Strict", crd)
    assert made.code == 201, made.message
    assert made.warnings == ()
    widget = Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(size="big", ports=[], color="red"))
    made = await api.post(f"{WIDGETS}?fieldValidation=Strict", to_dict(widget))
    assert made.code == 201, made.message
    assert made.body["spec"] == {
        "size": "big",
        "ports": [],
        "color": "red",
        "replicas": 1,
        "image": "nginx",
        "even": 2,
        "memory": "64Mi",
        "interval": "30s",
        "target": 80,
        "range": {"least": 0, "most": 10},
        "level": 3,
        "notRoot": "nobody",
    }
    read = from_dict(Widget, made.body)
    assert (read.spec.memory, read.spec.range.most) == (Quantity("64Mi"), 10)
    rows = await api.cells(WIDGETS)
    assert rows[0][0] == "a"
    assert rows[0][-2] == "nginx"
    found = await api.get(f"{WIDGETS}?fieldSelector=spec.color%3Dred")
    assert [each["metadata"]["name"] for each in found.body["items"]] == ["a"]
    assert (await api.get(f"{WIDGETS}/a/scale")).body["spec"] == {"replicas": 1}
    old = await api.get("/apis/example.dev/v1beta1/namespaces/default/widgets")
    assert "use example.dev/v1" in old.warnings[0]


@asking
async def test_a_server_rejects_what_the_types_do_not_allow(api: Api) -> None:
    assert (await api.post(DEFINITIONS, crd_of(Widget))).code == 201

    async def told(**spec: Any) -> str:
        body = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}}
        answer = await api.post(f"{WIDGETS}?dryRun=All", body | {"spec": {"size": "big"} | spec})
        assert answer.code in (201, 422), answer.message
        return answer.message

    assert not await told()
    assert "spec.replicas in body should be greater than or equal to 0" in await told(replicas=-1)
    assert "spec.even in body should be a multiple of 2" in await told(even=3)
    assert "spec.image in body should match" in await told(image="Nginx")
    assert 'spec.color: Unsupported value: "green"' in await told(color="green")
    assert "spec.interval in body should match" in await told(interval="soon")
    assert "spec.memory in body should match" in await told(memory="much")
    assert "spec.check" in await told(check={"type": "http"})
    assert not await told(check={"type": "http", "port": 80})
    assert "spec.check" in await told(check={"type": "other"})
    assert "Duplicate value" in await told(ports=[{"port": 80}, {"port": 80, "protocol": "TCP"}])
    assert not await told(ports=[{"port": 80}, {"port": 80, "protocol": "UDP"}])
    assert "spec.notRoot" in await told(notRoot="root")
    assert "spec.size: Required value" in await told(size=None)
    assert not await told(nothingOrText=["a", None], nullable=None)
    assert "spec.embedded.kind" in await told(embedded={"apiVersion": "v1"})
    assert not await told(target="http", address="10.0.0.1")


@dataclass
class Loop:
    size: int
    tags: list[str] | None = None


@resource(group="example.dev", version="v1", short_names=["hp"], namespaced=False)
@dataclass
class Hoop:
    """A hoop."""

    spec: Loop
    metadata: dict[str, Any] | None = None


@asking
async def test_a_dataclass_can_be_a_kind(api: Api) -> None:
    crd = crd_of(Hoop)
    assert crd["metadata"]["name"] == "hoops.example.dev"
    assert (await api.post(DEFINITIONS, crd)).code == 201
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A hoop."
    assert schema["properties"]["spec"] == {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["size"],
    }
    body = {"apiVersion": "example.dev/v1", "kind": "Hoop", "metadata": {"name": "a"}, "spec": {"size": 1}}
    assert (await api.post("/apis/example.dev/v1/hoops", body)).code == 201


# What is refused


def kind(name: str = "Thing", **keywords: Any) -> type[Object]:
    namespace = {"__annotations__": {"spec": OldSpec}, "__module__": __name__}
    return type(CustomResource)(name, (CustomResource,), namespace, **{"group": "a.dev", "version": "v1"} | keywords)


class Bare(CustomResource):
    spec: OldSpec


class Wide(Struct):
    text: str = ""
    text0: str = ""
    text1: str = ""
    text2: str = ""
    text3: str = ""
    text4: str = ""
    text5: str = ""
    text6: str = ""
    text7: str = ""
    text8: str = ""
    number: int = 0
    items: list[str] = []


def wide(*markers: Any) -> type[Object]:
    namespace = {"__annotations__": {"spec": Wide, "status": Wide | None}, "__module__": __name__, "status": None}
    made = type(CustomResource)("Thing", (CustomResource,), namespace, group="a.dev", version="v1")
    return marked(*markers)(made)


@pytest.mark.parametrize(
    ("classes", "told"),
    [
        ([], "crd_of needs the class of a kind"),
        ([Bare], "Bare is not a kind: derive it from CustomResource"),
        ([OldSpec], "OldSpec is not a kind"),
        (["text"], "text is not a kind"),
        ([kind(group="dev")], "class Thing: the group 'dev' must be a domain with a dot"),
        ([kind(group="A.dev")], "the group 'A.dev' must be a domain with a dot"),
        ([kind(version="1")], "version '1': must be a DNS-1035 label"),
        ([kind(list_kind="Some Things")], "list_kind 'some things'"),
        ([kind(list_kind="Thing")], "kind and list_kind are both 'Thing'"),
        ([marked(Deprecated("line\nline"))(kind())], "a warning is one line, of 256 bytes at most"),
        ([marked(Deprecated("ä" * 129))(kind())], "a warning is one line, of 256 bytes at most"),
        ([wide(Column("A", "spec.text", format="uri"))], "format is one of byte, date, date-time, double"),
        ([wide(*(Selectable(f"spec.text{number}") for number in range(9)))], "9 fields are Selectable(), of 8 at most"),
        ([wide(Scale("status.number", "status.number"))], ".status.number must be below .spec."),
        ([wide(Scale("spec.number", "spec.number"))], ".spec.number must be below .status."),
        ([kind(plural="Things")], "plural 'Things'"),
        ([kind(short_names=["T"])], "short_names 'T'"),
        ([kind(categories=["all things"])], "categories 'all things'"),
        ([kind(group="x.k8s.io")], "the group x.k8s.io is reserved for Kubernetes"),
        ([Widget, kind()], "class Thing: group is 'a.dev', and 'example.dev' in Widget: it must be the same"),
        (
            [kind(), kind(version="v2")],
            "one version must be marked Stored(), found none: write @marked(Stored())",
        ),
        (
            [marked(Stored())(kind()), marked(Stored())(kind(version="v2"))],
            "must be marked Stored(), found Thing, Thing",
        ),
        ([marked(Stored())(kind()), kind()], "several classes have the same version: v1, v1"),
        ([marked(Stored())(kind()), kind(version="v2", namespaced=False)], "namespaced is False, and True in Thing"),
        ([wide(Column("A"))], "Column('A') on a class needs a path, e.g. Column('A', '.status.ready')"),
        ([wide(Selectable())], "Selectable(): no string, boolean or integer field"),
        ([wide(Selectable("spec.items"))], "no string, boolean or integer field at"),
        ([wide(Scale("spec.text", "status.number"))], "no integer field at .spec.text"),
        ([wide(Scale("spec.number", "status.other"))], "no integer field at .status.other"),
        (
            [wide(Scale("spec.number", "status.number", "status.number"))],
            "no string field at .status.number",
        ),
        ([wide(RawSchema({"minProperties": 1}))], "minProperties is not allowed at the root of an object"),
    ],
)
def test_a_kind_without_a_valid_definition_is_reported(classes: list[Any], told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        crd_of(*classes)
    assert told in str(refused.value)


def test_a_field_that_is_selectable_twice_is_listed_once() -> None:
    version = crd_of(wide(Selectable("spec.text"), Selectable(".spec.text")))["spec"]["versions"][0]
    assert version["selectableFields"] == [{"jsonPath": ".spec.text"}]


class Coloured(Struct):
    color: Annotated[str, Selectable()] = "red"
    size: Annotated[int, Selectable()] = 1


class ColouredAndMore(Coloured):
    weight: int = 0


@marked(Stored())
class Ball(CustomResource, group="example.dev", version="v1"):
    spec: Coloured


class BallV2(CustomResource, group="example.dev", version="v2", kind="Ball"):
    spec: ColouredAndMore


@asking
async def test_versions_with_other_schemas_have_their_selectable_fields_in_another_order(api: Api) -> None:
    crd = crd_of(Ball, BallV2)  # with the same in the same order, a server would look for one schema of both
    told = [[each["jsonPath"] for each in version["selectableFields"]] for version in crd["spec"]["versions"]]
    assert told == [[".spec.color", ".spec.size"], [".spec.size", ".spec.color"]]
    made = await api.post(DEFINITIONS, crd)
    assert made.code == 201, made.message
    crd["spec"]["versions"][1]["selectableFields"].reverse()
    refused = await api.post(DEFINITIONS, {**crd, "metadata": {"name": "balls.example.dev"}})
    assert "spec.selectableFields: Invalid value" in refused.message


def test_versions_with_one_selectable_field_and_other_schemas_are_rejected() -> None:
    first = marked(Stored(), Selectable("spec.replicas"))(kind())
    second = marked(Selectable("spec.replicas"), PreserveUnknown())(kind(version="v2"))
    with pytest.raises(SchemaError, match=r"class Thing: .* only \.spec\.replicas is Selectable\(\) in all of them"):
        crd_of(first, second)


def test_versions_with_one_schema_and_other_selectable_fields_are_rejected() -> None:
    first, second = marked(Stored(), Selectable("spec.replicas"))(kind()), kind(version="v2")
    with pytest.raises(SchemaError, match="class Thing: versions with the same schema but different"):
        crd_of(first, second)


@marked(ExactlyOneOf("a", "b", "c", "d"), AtLeastOneOf("a", "b", "c", "d"), AtMostOneOf("a", "e"))
class Choice(Struct):
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    e: str | None = None


class Menu(CustomResource, group="example.dev", version="v1"):
    choices: list[Choice] = []
    by_name: dict[str, list[Choice]] = {}


@asking
async def test_a_rule_about_which_fields_are_set_may_stand_in_a_list_that_has_no_bound(api: Api) -> None:
    made = await api.post(DEFINITIONS, crd_of(Menu))
    assert made.code == 201, made.message

    async def order(name: str, **choice: str) -> str:
        menu = {"apiVersion": "example.dev/v1", "kind": "Menu", "metadata": {"name": name}, "choices": [choice]}
        return str((await api.post("/apis/example.dev/v1/namespaces/default/menus", menu)).message)

    assert await order("one", b="x") == ""
    assert "exactly one of the fields in [a b c d] must be set" in await order("two", b="x", c="x")
    assert "at least one of the fields in [a b c d] must be set" in await order("none", e="x")
    assert "at most one of the fields in [a e] may be set" in await order("both", a="x", e="x")


def test_a_group_of_kubernetes_needs_an_approval() -> None:
    approved = marked(DefinitionMeta(annotations={"api-approved.kubernetes.io": "https://example.dev"}))
    assert crd_of(approved(kind(group="x.k8s.io")))["metadata"]["annotations"]


def test_columns_take_the_type_of_what_they_show() -> None:
    found = crd_of(
        wide(
            Column("A", "spec.text"),
            Column("B", "spec.number", format="int64"),
            Column("C", "spec.items"),
            Column("D", "spec.items[0]"),
            Column("E", "spec.number", type="string"),
            PreserveUnknown(),
        )
    )["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [(each["name"], each["type"]) for each in found] == [
        ("A", "string"),
        ("B", "integer"),
        ("C", "string"),
        ("D", "string"),
        ("E", "string"),
    ]
    assert found[1]["format"] == "int64"


class Local(Struct):
    count: Annotated[int, Column()] = 0


class Twice(CustomResource, group="example.dev", version="v1", kind="Twice"):
    spec: Local
    other: Local


def test_a_struct_at_two_places_has_a_column_at_each() -> None:
    columns = crd_of(Twice)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [(each["name"], each["jsonPath"]) for each in columns] == [
        ("Count", ".spec.count"),
        ("Count", ".other.count"),
    ]
