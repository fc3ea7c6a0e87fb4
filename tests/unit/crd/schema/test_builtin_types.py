"""Built-in types inside custom resources have the schemas that controller-gen writes for them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from tests.unit.server.resources.custom.samples import DEFINITIONS, MERGE, WIDGETS, Api, run

from ostinato.api.intstr import IntOrString
from ostinato.api.markers import ListAtomic
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, MicroTime, Time
from ostinato.crd import crd_of, schema_of
from ostinato.kinds.core_v1 import PodSpec, SecretReference

Json = dict[str, Any]


class WidgetStatus(Struct):
    conditions: list[Condition] = []


class Widget(CustomResource, group="example.com", version="v1"):
    status: WidgetStatus | None = None


READY: Json = {
    "type": "Ready",
    "status": "True",
    "reason": "AllUp",
    "message": "",
    "lastTransitionTime": "2026-01-31T12:00:00Z",
}


def test_conditions_have_the_validation_of_controller_gen() -> None:
    conditions = schema_of(WidgetStatus)["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    item = conditions["items"]
    assert item["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]
    found = item["properties"]
    assert found["type"]["maxLength"] == 316
    assert found["type"]["pattern"].startswith("^([a-z0-9]([-a-z0-9]*[a-z0-9])?")
    assert found["status"] == {"type": "string", "enum": ["True", "False", "Unknown"]}
    assert found["reason"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    }
    assert found["message"] == {"type": "string", "maxLength": 32768}
    assert found["lastTransitionTime"] == {"type": "string", "format": "date-time"}
    assert found["observedGeneration"] == {"type": "integer", "format": "int64", "minimum": 0}


def test_a_marker_overrides_the_list_type_of_conditions() -> None:
    class Atomic(Struct):
        conditions: Annotated[list[Condition], ListAtomic()] = []

    found = schema_of(Atomic)["properties"]["conditions"]
    assert found["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in found


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "Ready!"}, "type"),
        ({"type": "a" * 317}, "type"),
        ({"status": "yes"}, "status"),
        ({"reason": ""}, "reason"),
        ({"reason": "all up"}, "reason"),
        ({"reason": "R" * 1025}, "reason"),
        ({"message": "m" * 32769}, "message"),
        ({"lastTransitionTime": "noon"}, "lastTransitionTime"),
        ({"observedGeneration": -1}, "observedGeneration"),
    ],
)
def test_the_server_rejects_invalid_conditions(change: Json, field: str) -> None:
    async def main(api: Api) -> None:
        await api.good("POST", DEFINITIONS, crd_of(Widget))
        await api.good("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        status = f"{WIDGETS}/a/status"
        await api.good("PATCH", status, {"status": {"conditions": [READY]}}, content_type=MERGE)
        rejected = await api("PATCH", status, {"status": {"conditions": [{**READY, **change}]}}, content_type=MERGE)
        assert rejected.code == 422
        assert any(cause.startswith(f"status.conditions[0].{field}:") for cause in rejected.causes)

    run(main)


def test_references_have_the_defaults_and_merge_keywords_of_the_go_markers() -> None:
    pod = schema_of(PodSpec)["properties"]
    container = pod["containers"]["items"]["properties"]
    sources = container["env"]["items"]["properties"]["valueFrom"]["properties"]
    assert sources["secretKeyRef"]["properties"]["name"] == {"type": "string", "default": ""}
    assert sources["configMapKeyRef"]["properties"]["name"] == {"type": "string", "default": ""}
    assert container["envFrom"]["items"]["properties"]["secretRef"]["x-kubernetes-map-type"] == "atomic"
    assert container["livenessProbe"]["properties"]["grpc"]["properties"]["service"]["default"] == ""
    volume = pod["volumes"]["items"]["properties"]
    assert volume["configMap"]["x-kubernetes-map-type"] == "atomic"
    assert volume["iscsi"]["properties"]["iscsiInterface"]["default"] == "default"


class Fields(Struct):
    port: IntOrString | None = None
    size: Quantity | None = None
    time: Time | None = None
    micro: MicroTime | None = None
    period: Duration | None = None
    secret: SecretReference | None = None
    metadata: ObjectMeta | None = None


def test_scalar_types_have_the_schemas_of_controller_gen() -> None:
    found = schema_of(Fields)["properties"]
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    assert found["port"] == either
    assert {**found["size"], "pattern": ""} == {**either, "pattern": ""}
    assert found["time"] == found["micro"] == {"type": "string", "format": "date-time"}
    assert found["period"]["type"] == "string"
    assert found["secret"]["x-kubernetes-map-type"] == "atomic"
    assert found["metadata"]["type"] == "object"
