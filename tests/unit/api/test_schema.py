"""Schemas: how lists and maps merge, and how references are followed."""

import msgspec
import pytest

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas

POD = GroupVersionKind("", "v1", "Pod")


def child(schema: Schema, *path: str) -> Schema:
    for name in path:
        found = schema.items if name == "*" else schema.field(name)
        assert found is not None, name
        schema = found
    return schema


def test_a_built_in_kind_is_found_by_its_name_and_by_its_group_version_and_kind() -> None:
    schemas = builtin_schemas()
    assert schemas.of(POD) is schemas.by_name("io.k8s.api.core.v1.Pod")
    assert schemas.of(GroupVersionKind("nowhere", "v1", "Pod")) is None
    assert POD in schemas.kinds


def test_references_are_followed_and_shared() -> None:
    pod = builtin_schemas().of(POD)
    template = builtin_schemas().by_name("io.k8s.api.core.v1.PodTemplateSpec")
    assert pod is not None
    assert child(pod, "spec") is child(template, "spec")
    assert child(pod, "spec", "containers", "*", "name").type == "string"


def test_lists_say_how_apply_and_strategic_merge_treat_them() -> None:
    pod = builtin_schemas().by_name("io.k8s.api.core.v1.Pod")
    ports = child(pod, "spec", "containers", "*", "ports")
    assert (ports.type, ports.list_type, ports.list_map_keys) == ("array", "map", ("containerPort", "protocol"))
    assert (ports.patch_strategies, ports.patch_merge_key) == ({"merge"}, "containerPort")
    volumes = child(pod, "spec", "volumes")
    assert volumes.patch_strategies == {"merge", "retainKeys"}
    assert child(pod, "metadata", "finalizers").list_type == "set"
    assert child(pod, "spec", "containers", "*", "args").list_type == "atomic"


def test_maps_say_whether_they_are_one_value() -> None:
    service = builtin_schemas().by_name("io.k8s.api.core.v1.ServiceSpec")
    assert child(service, "selector").map_type == "atomic"
    labels = child(builtin_schemas().by_name("io.k8s.api.core.v1.Pod"), "metadata", "labels")
    assert labels.map_type == "granular"
    assert child(labels, "any.name/at-all").type == "string"
    assert labels.values is not None


def test_keys_that_may_be_left_out_have_a_default() -> None:
    port = builtin_schemas().by_name("io.k8s.api.core.v1.ContainerPort")
    assert child(port, "protocol").default == "TCP"
    assert child(port, "hostIP").default is msgspec.UNSET


def test_unknown_fields_have_no_schema() -> None:
    pod = builtin_schemas().by_name("io.k8s.api.core.v1.Pod")
    assert pod.field("spce") is None
    assert child(pod, "spec", "nodeName").items is None
    assert "spec" in pod.field_names
    assert builtin_schemas().by_name("io.k8s.api.core.v1.Container").required == {"name"}


def test_an_int_or_string_has_no_one_type() -> None:
    port = builtin_schemas().by_name("io.k8s.api.core.v1.ServicePort")
    target = child(port, "targetPort")
    assert target.int_or_string
    assert target.type is None


def test_a_structural_schema_is_read_the_same_way() -> None:
    schema = Schema.of(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "replicas": {"type": "integer", "default": 1, "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True},
                "meta": {"$ref": "#/definitions/Meta", "nullable": True},
            },
        },
        {"Meta": {"type": "object", "properties": {"name": {"type": "string"}}}},
    )
    assert schema.preserve_unknown
    assert child(schema, "replicas").default == 1
    assert child(schema, "replicas").nullable
    assert child(schema, "port").int_or_string
    assert child(schema, "template").embedded_resource
    assert child(schema, "meta", "name").type == "string"
    assert child(schema, "meta").nullable
    assert schema.raw["type"] == "object"
    assert repr(child(schema, "meta", "name")) == "Schema({'type': 'string'})"


def test_a_reference_to_nothing_is_an_error() -> None:
    with pytest.raises(KeyError, match="Missing"):
        Schema.of({"$ref": "#/definitions/Missing"})
