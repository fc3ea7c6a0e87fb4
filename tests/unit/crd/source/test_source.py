"""Classes from the definitions of others: readable, and the same schema again."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.crd.sample_kinds import Gadget, Widget, WidgetSpec

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object, kind_of
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.crd import TypesError, crd_of, types_of
from ostinato.crd.source.names import attribute_name, class_name, kind_class_name, singular
from ostinato.crd.source.text import docstring, literal

DEFINITION = Path(__file__).parents[3] / "data" / "crd" / "kettle.yaml"


def definition() -> dict[str, Any]:
    (found,) = decode_yaml_documents(DEFINITION.read_bytes())
    crd: dict[str, Any] = found
    return crd


@pytest.fixture
def module_of(tmp_path: Path) -> Iterator[Any]:
    """Loads the source of a definition as a module."""
    loaded = []

    def load(crd: dict[str, Any], **options: Any) -> Any:
        name = f"generated_{tmp_path.name}_{len(loaded)}"
        path = tmp_path / f"{name}.py"
        path.write_text(types_of(crd, **options))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loaded.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        del sys.modules[name]


def kinds_in(module: Any) -> list[type[Object]]:
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and issubclass(each, Object)
    ]


def kind_in(module: Any) -> type[Object]:
    (found,) = kinds_in(module)
    return found


def plain(schema: Any) -> Any:
    """A schema without what may be said in two ways: that something is required though it has a default, and so on."""
    if not isinstance(schema, dict):
        return [plain(each) for each in schema] if isinstance(schema, list) else schema
    found = {word: value for word, value in schema.items() if word != "description"}
    for word in ("items", "additionalProperties", "not"):
        if word in found:
            found[word] = plain(found[word])
    properties = found["properties"] = {name: plain(below) for name, below in found.get("properties", {}).items()}
    found["required"] = sorted(name for name in found.get("required", ()) if "default" not in properties.get(name, {}))
    if found.get("x-kubernetes-int-or-string"):
        found.pop("anyOf", None)
    return {word: value for word, value in found.items() if value not in ([], {}) or word == "default"}


def descriptions(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return []
    own = [schema["description"]] if isinstance(schema.get("description"), str) else []
    below = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    return own + [text for each in below for text in descriptions(each)]


def version_in(crd: dict[str, Any]) -> dict[str, Any]:
    (found,) = [version for version in crd["spec"]["versions"] if version["storage"]]
    version: dict[str, Any] = found
    return version


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two definitions say the same of all versions."""
    assert one["spec"]["group"] == other["spec"]["group"]
    assert one["spec"]["scope"] == other["spec"]["scope"]
    assert names_of(one) == names_of(other)
    mine, others = ({each["name"]: each for each in crd["spec"]["versions"]} for crd in (one, other))
    assert mine.keys() == others.keys()
    for name in mine:
        same_version(mine[name], others[name])


def names_of(crd: dict[str, Any]) -> dict[str, Any]:
    names = crd["spec"]["names"]
    return {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}


def same_version(mine: dict[str, Any], others: dict[str, Any]) -> None:
    said, again = (plain((each.get("schema") or {}).get("openAPIV3Schema", {})) for each in (mine, others))
    for schema in (said, again):  # what every object has goes without saying
        schema["type"] = "object"
        schema["properties"] = {
            name: below
            for name, below in schema.get("properties", {}).items()
            if name not in ("apiVersion", "kind", "metadata")
        }
    assert said == again
    for word in ("name", "served", "storage", "deprecated", "deprecationWarning", "subresources", "selectableFields"):
        assert (mine.get(word) or None) == (others.get(word) or None)
    columns = [
        [{k: v for k, v in column.items() if k != "description"} for column in each.get("additionalPrinterColumns", ())]
        for each in (mine, others)
    ]
    assert columns[0] == columns[1]


def test_a_definition_becomes_classes_that_people_can_read() -> None:
    expected = (DEFINITION.parent / "kettle.py.txt").read_text()
    assert types_of(definition()) == expected


def test_classes_of_a_definition_make_the_same_definition_again(module_of: Any) -> None:
    again = crd_of(*kinds_in(module_of(definition())))
    same(definition(), again)
    assert descriptions(version_in(again)["schema"]["openAPIV3Schema"]) == descriptions(
        {**version_in(definition())["schema"]["openAPIV3Schema"]}
    )


@pytest.mark.parametrize("kind", [Widget, Gadget])
def test_our_own_definitions_become_classes_that_make_them_again(module_of: Any, kind: type[Object]) -> None:
    crd = crd_of(kind)
    again = kind_in(module_of(crd))
    same(crd, crd_of(again))
    assert kind_of(again).gvr == kind_of(kind).gvr


def test_the_classes_read_and_write_objects(module_of: Any) -> None:
    module = module_of(definition())
    sample = {
        "apiVersion": "kitchen.example.org/v1",
        "kind": "Kettle",
        "metadata": {"name": "tea"},
        "spec": {
            "litres": "1500m",
            "from": "tap",
            "class": "gold",
            "apiURL": "https://example.org",
            "schedule": {"at": "2026-01-31T12:00:00Z", "every": "30s"},
            "heaters": [{"name": "left", "watts": 900}],
            "limits": {"time": {"seconds": 3}},
            "x-note": "kept",
            "port": "http",
            "raw": {"any": ["thing"]},
        },
    }
    kettle = from_dict(module.Kettle, sample)
    assert kettle.spec.from_ == "tap"
    assert kettle.spec.class_ == "gold"
    assert kettle.spec.api_url == "https://example.org"
    assert kettle.spec.heaters[0].watts == 900
    assert kettle.spec.heaters[0].mode == "Fast"
    assert kettle.spec.limits["time"].seconds == 3
    assert kettle.spec.x_note == "kept"
    assert to_dict(kettle) == sample


def test_a_typed_widget_is_the_same_through_the_classes_of_its_definition(module_of: Any) -> None:
    theirs = kind_in(module_of(crd_of(Widget)))
    widget = to_dict(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(size="big", even=4, tags=["x"])))
    assert to_dict(from_dict(theirs, widget)) == widget


def test_all_versions_are_classes_and_what_they_share_is_one() -> None:
    source = types_of(definition())
    classes = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert classes[-2:] == ["Kettle", "KettleV1alpha1"]
    assert source.count("Stored()") == 1
    assert source.count("Foreign()") == 2
    twice = minimal(properties={"spec": {"type": "object", "properties": {"a": {"type": "string"}}}})
    older = {**twice["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    twice["spec"]["versions"].insert(0, older)
    classes = [node.name for node in ast.parse(types_of(twice)).body if isinstance(node, ast.ClassDef)]
    assert classes == ["ThingSpec", "Thing", "ThingV1beta1"]


def test_a_version_can_be_chosen() -> None:
    crd = definition()
    old = types_of(crd, version="v1alpha1")
    assert 'version="v1"' not in old
    assert 'version="v1alpha1"' in old
    assert "class Kettle(\n" in old
    assert "Unserved()" in old
    assert 'Deprecated("gone soon")' in old


def test_several_definitions_are_one_module(module_of: Any, tmp_path: Path) -> None:
    first, second = minimal(), minimal()
    second["spec"] = {**second["spec"], "group": "example.org"}
    source = types_of(first, definition(), second)
    assert source.startswith(
        '# ruff: noqa\n# fmt: off\n"""Kinds of others:\n\n- Thing of example.dev/v1,\n- Kettle of kitchen.example.org/v'
    )
    classes = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if name.startswith("Thing")] == ["Thing", "ThingKind"]


@pytest.mark.parametrize("path", sorted((DEFINITION.parent / "styles").glob("*.yaml")), ids=lambda path: path.stem)
def test_definitions_of_every_style_are_the_same_again(module_of: Any, path: Path) -> None:
    for crd in decode_yaml_documents(path.read_bytes()):
        same(crd, crd_of(*kinds_in(module_of(crd))))


def minimal(**schema: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    names = {"kind": "Thing", "plural": "things"}
    spec = {"group": "example.dev", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}


def test_the_metadata_of_an_object_in_an_object_can_be_read_and_set(module_of: Any) -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"kind": {"type": "string"}, "metadata": {"type": "object"}, "size": {"type": "integer"}},
    }
    kind = kind_in(module_of(minimal(properties={"inner": embedded})))
    inner = {"kind": "Other", "metadata": {"name": "a", "labels": {"b": "c"}}}
    read = from_dict(kind, {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "x"}, "inner": inner})
    assert read.inner.metadata.labels == {"b": "c"}  # type: ignore[attr-defined]
    assert to_dict(read)["inner"] == inner


def test_a_scale_of_others_may_lead_to_fields_that_no_schema_has(module_of: Any) -> None:
    crd = minimal(properties={"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    crd["spec"]["versions"][0]["subresources"] = {
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    }
    same(crd, crd_of(kind_in(module_of(crd))))


def test_attributes_do_not_depend_on_the_order_of_fields() -> None:
    text = {"type": "string"}
    for names in (("aB", "a_b", "A_B"), ("A_B", "a_b", "aB")):
        source = types_of(minimal(properties=dict.fromkeys(names, text)))
        assert "    a_b: str | None = None\n" in source
        assert 'a_b_2: str | None = msgspec.field(name="A_B"' in source
        assert 'a_b_3: str | None = msgspec.field(name="a_b"' in source


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("crd", "told"),
    [
        ({}, "not a CustomResourceDefinition"),
        ({"kind": "Pod"}, "not a CustomResourceDefinition"),
        ([], "not a CustomResourceDefinition"),
        ({**minimal(), "apiVersion": "apiextensions.k8s.io/v1beta1"}, "only definitions of apiextensions.k8s.io/v1"),
        ({**minimal(), "spec": {"versions": []}}, "no version with storage; versions: none"),
        ({**minimal(), "spec": {"versions": [{"storage": True}]}}, "is invalid"),
        (minimal(properties={"a": 5}), "is invalid"),
        (minimal(properties={"a": nested(200)}), "nested too deeply"),
    ],
)
def test_documents_that_are_not_definitions_are_rejected(crd: Any, told: str) -> None:
    with pytest.raises(TypesError, match=told):
        types_of(crd)


def test_an_unknown_version_is_reported() -> None:
    with pytest.raises(TypesError, match="no version v9; versions: v1, v1alpha1"):
        types_of(definition(), version="v9")


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "string"}, "a: str | None = None"),
        ({"type": "string", "default": ""}, 'a: Annotated[str, ServerDefault("")] = ""'),
        ({"type": "string", "nullable": True}, "a: Annotated[str | None, Nullable()] = None"),
        ({"type": "string", "nullable": True, "default": "x"}, 'a: str | None = "x"'),
        ({"type": "integer", "default": 3}, "a: int = 3"),
        ({"type": "number"}, "a: Annotated[float | None, Inexact()] = None"),
        ({"type": "number", "format": "double", "default": 1}, 'a: Annotated[float, Format("double")] = 1.0'),
        ({"type": "boolean", "default": False}, "a: bool = False"),
        ({"type": "array", "items": {"type": "string"}}, "a: list[str] = []"),
        ({"type": "array"}, "a: list[Any] = []"),
        (
            {"type": "array", "items": {"type": "string", "nullable": True}, "nullable": True},
            "a: Annotated[list[str | None] | None, Nullable()] = None",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "default": ["x"]},
            'a: Annotated[list[str] | None, ServerDefault(["x"])] = None',
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "a: dict[str, int] = {}"),
        ({"type": "object", "additionalProperties": True}, "a: dict[str, Any] = {}"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "default": {"x": "y"}},
            'a: Annotated[dict[str, str] | None, ServerDefault({"x": "y"})] = None',
        ),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "a: dict[str, Any] = {}"),
        ({"x-kubernetes-preserve-unknown-fields": True}, "a: Any = None"),
        ({"type": "string", "format": "date-time"}, "a: Time | None = None"),
        ({"type": "string", "format": "byte"}, "a: bytes | None = None"),
        ({"type": "string", "format": "uri"}, 'a: Annotated[str | None, Format("uri")] = None'),
        ({"x-kubernetes-int-or-string": True}, "a: int | str | None = None"),
        ({"x-kubernetes-int-or-string": True, "default": "50%"}, 'a: int | str = "50%"'),
        (
            {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
            "a: int | str | None = None",
        ),
        ({"type": "string", "enum": ["x", "y"]}, 'a: Annotated[str | None, Enum("x", "y")] = None'),
        (
            {"type": "string", "nullable": True, "allOf": [{"enum": ["x"]}]},
            'a: Annotated[str | None, Enum("x"), Nullable()] = None',
        ),
        ({"type": "string", "enum": ["x", None]}, 'a: Annotated[str | None, RawSchema({"enum": ["x", None]})] = None'),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            "a: Annotated[dict[str, Any], EmbeddedResource()] = {}",
        ),
        (
            {"type": "object", "properties": {}, "default": {}},
            "a: Annotated[ThingA, ServerDefault({})] = msgspec.field(default_factory=ThingA)",
        ),
        (
            {"type": "object", "properties": {"b": {"type": "integer", "default": 1}}, "default": {}},
            "a: ThingA = msgspec.field(default_factory=ThingA)",
        ),
        (
            {"type": "object", "properties": {"b": {"type": "integer"}}, "default": {"b": 5}},
            'a: Annotated[ThingA | None, ServerDefault({"b": 5})] = None',
        ),
        (
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "a: Annotated[dict[str, str], PreserveUnknown()] = {}",
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5},
            "a: Annotated[int | None, Gt(1), Le(5)] = None",
        ),
        (
            {"type": "string", "not": {"pattern": "x"}},
            'a: Annotated[str | None, RawSchema({"not": {"pattern": "x"}})] = None',
        ),
        ({"type": "string", "pattern": r"^\d"}, r'a: Annotated[str | None, Pattern(r"^\d")] = None'),
        (
            {"type": "string", "externalDocs": {"url": "u", "description": "d"}, "example": 1},
            'a: Annotated[str | None, Example(1), ExternalDocs("u", description="d")] = None',
        ),
    ],
)
def test_a_property_becomes_an_attribute(schema: dict[str, Any], field: str) -> None:
    source = types_of(minimal(properties={"a": schema}))
    assert f"    {field}\n" in source


def test_the_same_object_at_two_places_is_one_class_and_another_has_another_name() -> None:
    ref = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    other = {"type": "object", "properties": {"key": {"type": "string"}}}
    spec = {
        "type": "object",
        "properties": {
            "ref": {**ref, "description": "one"},
            "more": {"type": "object", "properties": {"ref": {**ref, "description": "two"}}},
            "odd": {"type": "object", "properties": {"ref": other}},
        },
    }
    source = types_of(minimal(properties={"spec": spec}))
    classes = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert classes == ["ThingRef", "ThingMore", "ThingOddRef", "ThingOdd", "ThingSpec", "Thing"]
    assert '"""two"""' in source


def test_names_of_ours_are_not_taken_by_kinds(module_of: Any) -> None:
    crd = minimal(
        properties={"spec": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}}}}
    )
    crd["spec"]["names"] = {"kind": "Rule", "plural": "rules", "singular": "rul", "listKind": "Rules"}
    module = module_of(crd)
    info = kind_of(module.RuleKind)
    assert (info.gvk.kind, info.plural, info.singular, info.list_kind) == ("Rule", "rules", "rul", "Rules")
    assert from_dict(module.RuleKind, {"spec": {"list": ["a"]}}).spec.list_ == ["a"]


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("replicas", "replicas"),
        ("clusterIPs", "cluster_ips"),
        ("apiURL", "api_url"),
        ("from", "from_"),
        ("list", "list_"),
        ("1st", "field_1st"),
        ("x-y", "x_y"),
        ("$ref", "ref"),
        ("_id", "id"),
        ("ünïcödé", "n_c_d"),
        ("", "field"),
        ("---", "field"),
    ],
)
def test_an_attribute_has_a_name_of_python(wire: str, attribute: str) -> None:
    assert attribute_name(wire) == attribute
    assert attribute_name(wire, [attribute]) == f"{attribute.rstrip('_')}_2"


def test_classes_have_the_shortest_name_that_is_free() -> None:
    way = ("Widget", "spec", "pod-template", "labels")
    assert class_name(way, []) == "WidgetLabels"
    assert class_name(way, ["WidgetLabels"]) == "WidgetPodTemplateLabels"
    taken = ["WidgetLabels", "WidgetPodTemplateLabels", "WidgetSpecPodTemplateLabels"]
    assert class_name(way, taken) == "WidgetSpecPodTemplateLabels_2"
    assert kind_class_name("Widget", []) == "Widget"
    assert kind_class_name("3d-Printer", []) == "Field3dPrinter"


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("ports", "port"),
        ("policies", "policy"),
        ("addresses", "address"),
        ("status", "status"),
        ("boxes", "box"),
        ("data", "data"),
    ],
)
def test_an_item_is_one_of_many(many: str, one: str) -> None:
    assert singular(many) == one


HOSTILE = st.one_of(
    st.sampled_from(['"""', "'''", "\\", '\\"""', '"', "x\n\ny", "\0", "{x}", "a\\", '")\nimport os\n("', "\u2028"]),
    st.text(max_size=12),
)


@settings(max_examples=200, deadline=None)
@given(HOSTILE | st.just("\ud800"))
def test_no_text_can_be_taken_for_code(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    (node,) = ast.parse(f"class A:\n{docstring(text, 4)}\n").body
    assert isinstance(node, ast.ClassDef)
    assert len(node.body) == 1
    assert isinstance(node.body[0], ast.Expr)
    assert isinstance(node.body[0].value, ast.Constant)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(HOSTILE, HOSTILE, max_size=4), HOSTILE, HOSTILE)
def test_a_hostile_definition_becomes_classes_and_nothing_else(fields: dict[str, str], kind: str, text: str) -> None:
    properties = {
        name: {"type": "string", "description": value, "default": value, "pattern": value or "a", "enum": [value]}
        for name, value in fields.items()
    }
    crd = minimal(properties={"spec": {"type": "object", "properties": properties, "title": text or "a"}})
    crd["spec"] |= {"group": text, "names": {"kind": kind, "plural": text, "shortNames": [text]}}
    source = types_of(crd)
    tree = ast.parse(source)
    for node in tree.body:
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | ast.Expr)
        if isinstance(node, ast.ClassDef):
            assert all(isinstance(each, ast.AnnAssign | ast.Expr | ast.Pass) for each in node.body)
    assert all(isinstance(node.value, ast.Constant) for node in ast.walk(tree) if isinstance(node, ast.Expr))
    assert "    spec: " in source
