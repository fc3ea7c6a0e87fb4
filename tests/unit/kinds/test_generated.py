from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from ostinato import kinds
from ostinato.api import meta
from ostinato.api.object import Object, kind_of
from ostinato.api.schema import builtin_schemas
from ostinato.api.serializer.type_info import TypeInfo, fields_of, merge_rules_of
from ostinato.api.struct import Struct, wire_name
from ostinato.kinds.index import MODULES

ROOT = Path(__file__).parents[3]
RULES = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "enum",
)
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_kinds", ROOT / "scripts" / "generate_kinds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generator = load_generator()
DEFINITIONS: dict[str, Any] = json.loads((generator.DATA / "definitions.json").read_text())


def classes_of(module: ModuleType) -> list[type[Struct]]:
    return [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Struct) and each.__module__ == module.__name__
    ]


def definition_of(cls: type[Struct]) -> str:
    if cls.__module__ == meta.__name__:
        return META + cls.__name__
    module = cls.__module__.rpartition(".")[2]
    found = [
        name
        for name in DEFINITIONS
        if generator.place_of(name) == (module, cls.__name__) and name not in generator.LEAVES
    ]
    assert len(found) == 1, cls
    return found[0]


CLASSES = [cls for name in kinds.__all__ for cls in classes_of(getattr(kinds, name))] + classes_of(meta)
KINDS = [cls for cls in CLASSES if issubclass(cls, Object)]


def test_the_modules_are_what_the_generator_writes() -> None:
    wanted = generator.generate()
    found = {path.name: path.read_text() for path in generator.KINDS.glob("*.py") if path.name in wanted}
    assert found == wanted
    assert {path.name for path in generator.KINDS.glob("*_v*.py")} <= set(wanted)


def test_every_definition_except_lists_has_a_class() -> None:
    structs = [name for name in DEFINITIONS if generator.place_of(name) and name not in generator.LEAVES]
    lists = [name for name in structs if DEFINITIONS[name].get("properties", {}).get("items") and name.endswith("List")]
    assert {definition_of(cls) for cls in CLASSES if cls.__module__ != meta.__name__} == set(structs) - set(lists)
    assert len(KINDS) == len(MODULES) == 71


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("clusterIP", "cluster_ip"),
        ("clusterIPs", "cluster_ips"),
        ("podIPs", "pod_ips"),
        ("podCIDRs", "pod_cidrs"),
        ("nonResourceURLs", "non_resource_urls"),
        ("targetWWNs", "target_wwns"),
        ("fsType", "fs_type"),
        ("volumeID", "volume_id"),
        ("hostIPC", "host_ipc"),
        ("seLinuxOptions", "se_linux_options"),
        ("diskURI", "disk_uri"),
        ("jsonPath", "json_path"),
        ("fieldsV1", "fields_v1"),
        ("x-kubernetes-list-map-keys", "x_kubernetes_list_map_keys"),
        ("$ref", "ref_"),
        ("from", "from_"),
        ("not", "not_"),
        ("default", "default"),
        ("type", "type"),
        ("int", "int_"),
        ("bool", "bool_"),
    ],
)
def test_attributes_are_snake_case(wire: str, attribute: str) -> None:
    assert generator.snake_case(wire) == attribute


def test_the_generator_knows_which_wire_name_an_attribute_has() -> None:
    attributes = [field.attribute for cls in CLASSES for field in fields_of(cls)]
    assert [generator.wire_name(each) for each in attributes] == [wire_name(each) for each in attributes]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}")
def test_a_class_has_the_fields_and_rules_of_its_definition(cls: type[Struct]) -> None:
    definition = DEFINITIONS[definition_of(cls)]
    properties = dict(definition.get("properties", {}))
    if issubclass(cls, Object) or cls is meta.DeleteOptions:
        del properties["apiVersion"], properties["kind"]
    fields = {field.wire: field for field in fields_of(cls)}
    assert set(fields) == set(properties)
    assert merge_rules_of(cls) == {name: rule for name, value in properties.items() if (rule := rules_in(value))}
    assert cls.__atomic__ == (definition.get("x-kubernetes-map-type") == "atomic")
    for name, schema in properties.items():
        assert form_of(fields[name].type_info) == form_in(schema), name
        if name not in definition.get("required", ()):
            assert not fields[name].required or name in generator.NEVER_NONE, name
        elif cls.__module__ != meta.__name__ and not cls.__name__.endswith("Status"):
            assert fields[name].required or fields[name].empty_struct is not None, name


def rules_in(schema: dict[str, Any]) -> dict[str, Any]:
    rules = {name: schema[name] for name in RULES if name in schema}
    for inner in ("items", "additionalProperties"):
        if inner in schema and (found := rules_in(schema[inner])):
            rules[inner] = found
    return rules


def form_of(shape: TypeInfo) -> Any:
    """A type, for comparison: the class of a struct by name, the JSON type of everything else."""
    match shape.form:
        case "struct":
            return shape.type.__name__
        case "list" | "map":
            assert shape.inner is not None
            return shape.form, form_of(shape.inner)
        case "union":
            return tuple(map(form_of, shape.variants))
        case "any":
            return "any"
    return shape.type.__name__


def form_in(schema: dict[str, Any]) -> Any:
    if "$ref" in schema:
        target = schema["$ref"].rpartition(".")[2]
        props = "JSONSchemaProps"
        special: dict[str, Any] = {
            "IntOrString": ("int", "str"),
            "RawExtension": "any",
            "JSON": "any",
            "FieldsV1": ("map", "any"),
            "JSONSchemaPropsOrArray": (props, ("list", props)),
            "JSONSchemaPropsOrBool": (props, "bool"),
            "JSONSchemaPropsOrStringArray": (props, ("list", "str")),
        }
        return special.get(target, target)
    match schema["type"], schema.get("format"):
        case "array", _:
            return "list", form_in(schema["items"])
        case "object", _:
            return "map", form_in(schema["additionalProperties"])
        case "string", "byte":
            return "bytes"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[schema["type"]]


def test_every_kind_is_that_of_discovery() -> None:
    resources = generator.Data().resources
    for cls in KINDS:
        info = kind_of(cls)
        gvk = (info.gvk.group, info.gvk.version, info.gvk.kind)
        resource = resources[gvk]
        assert (info.plural, info.singular, info.namespaced) == (
            resource.plural,
            resource.singular,
            resource.namespaced,
        )
        assert (info.short_names, info.categories) == (resource.short_names, resource.categories)
        assert MODULES[gvk] == cls.__module__.rpartition(".")[2]
        assert builtin_schemas().of(info.gvk) is not None


def test_a_few_kinds_in_full() -> None:
    pods, nodes = kind_of(kinds.core_v1.Pod), kind_of(kinds.core_v1.Node)
    assert (str(pods.gvr), pods.short_names, pods.namespaced) == ("/v1, Resource=pods", ("po",), True)
    assert (str(nodes.gvr), nodes.namespaced) == ("/v1, Resource=nodes", False)
    assert kind_of(kinds.policy_v1.Eviction).plural == ""
    assert kind_of(kinds.core_v1.Endpoints).plural == "endpoints"
    assert kind_of(kinds.networking_v1.NetworkPolicy).plural == "networkpolicies"


def test_spec_and_status_are_there_without_being_given() -> None:
    service = kinds.core_v1.Service()
    assert service.spec == kinds.core_v1.ServiceSpec()
    assert service.status.conditions == []
    with pytest.raises(TypeError, match="Missing required argument 'spec'"):
        kinds.core_v1.Pod()  # type: ignore[call-arg]


def test_nothing_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, ostinato.kinds; from ostinato.kinds.builtin import builtin_scheme; builtin_scheme();"
        "found = sorted(name for name in sys.modules if name.startswith('ostinato.kinds.') and '_v' in name);"
        "assert not found, found; ostinato.kinds.batch_v1.Job; assert 'ostinato.kinds.batch_v1' in sys.modules;"
        "assert 'ostinato.kinds.apps_v1' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "src")})


def test_the_package_lists_its_modules() -> None:
    assert dir(kinds) == kinds.__all__
    with pytest.raises(AttributeError, match=r"module 'ostinato\.kinds' has no attribute 'core_v9'"):
        _ = kinds.core_v9


def test_an_attribute_never_hides_a_type() -> None:
    for cls in CLASSES:
        assert not generator.TAKEN & set(cls.__struct_fields__)
        msgspec.json.Decoder(cls, dec_hook=lambda *_: None)  # every annotation can be resolved
