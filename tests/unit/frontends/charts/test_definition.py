"""CustomResourceDefinitions from the values of a chart, and release records."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.unit.frontends.charts.stage import make_chart

from ostinato.api.gvk import GroupVersionKind
from ostinato.crd.rbac import access_of
from ostinato.frontends.charts import Chart
from ostinato.frontends.charts.definition import definition_of
from ostinato.frontends.charts.releases.record import Info, RecordError, ReleaseRecord, record_of, secret_of
from ostinato.testing import Cluster

GVK = GroupVersionKind("example.com", "v1", "Shop")


def spec_of(schema: Any, values: Any) -> Any:
    version = definition_of(GVK, schema, values)["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_types_come_from_the_defaults() -> None:
    values = {"a": "x", "b": 1, "c": True, "d": 1.5, "e": [1], "f": {"g": "y"}, "h": None, "i": "", "j": {}}
    found = spec_of(None, values)["properties"]
    assert found["a"] == {"type": "string", "nullable": True}
    assert found["b"] == {"x-kubernetes-int-or-string": True, "nullable": True}
    assert found["c"] == {"type": "boolean", "nullable": True}
    assert found["d"] == {"type": "number", "nullable": True}
    assert found["e"]["items"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert found["f"]["properties"]["g"] == {"type": "string", "nullable": True}
    assert found["h"] == found["i"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert found["j"] == {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}


def test_a_schema_is_made_structural() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "size"},
            "b": {"type": ["string", "null"], "pattern": "^x", "format": "hostname"},
            "c": {"oneOf": [{"type": "string"}, {"type": "object"}]},
            "d": {"$ref": "#/definitions/x"},
            "e": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "f": {"type": "string", "enum": ["a", "b", None]},
        },
    }
    found = spec_of(schema, {})
    assert "required" not in found
    assert found["properties"] == {
        "a": {"type": "integer", "nullable": True, "description": "size", "minimum": 1},
        "b": {"type": "string", "nullable": True, "pattern": "^x"},
        "c": {"x-kubernetes-preserve-unknown-fields": True},
        "d": {"x-kubernetes-preserve-unknown-fields": True},
        "e": {"type": "array", "nullable": True, "maxItems": 3, "items": {"type": "string", "nullable": True}},
        "f": {"type": "string", "nullable": True, "enum": ["a", "b"]},
    }


async def test_the_server_accepts_definitions_of_odd_values(cluster: Cluster) -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = {"n": deep}
    await cluster.install(definition_of(GVK, None, {"deep": deep, "a.b/c": 1, "list": [[], {}]}))


def test_permissions_cover_the_kinds_of_the_defaults(tmp_path: Path) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n"
    controller = Chart(make_chart(tmp_path, {"role.yaml": role})).for_kind("Shop", group="example.com")
    resources = {each for rule in access_of(controller) for each in rule.resources}
    assert {"ingresses", "carts"}.isdisjoint(resources)
    assert {"configmaps", "clusterroles", "secrets", "shops", "shops/status"} <= resources


def test_permissions_cover_kinds_that_the_defaults_switch_off(tmp_path: Path) -> None:
    off = """{{- if .Values.ingress }}
apiVersion: {{ include "version" . }}
kind: Ingress
metadata: {name: a}
---
apiVersion: example.com/v2
kind: Cart
metadata: {name: {{ required "name" .Values.nothing }}}
{{- end }}
"""
    controller = Chart(make_chart(tmp_path, {"off.yaml": off})).for_kind("Shop", group="example.com")
    resources = {each for rule in access_of(controller) for each in rule.resources}
    assert {"configmaps", "ingresses", "carts"} <= resources


def record() -> ReleaseRecord:
    info = Info("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "", "deployed", "Install complete", "notes")
    return ReleaseRecord("a", info, {"metadata": {"name": "shop"}}, "---\n", 3, "default", {"x": 1}, digest="abc")


def test_a_record_survives_its_secret() -> None:
    secret = secret_of(record(), 17)
    assert secret["metadata"]["name"] == "sh.helm.release.v1.a.v3"
    assert secret["metadata"]["labels"] == {
        "name": "a",
        "owner": "helm",
        "status": "deployed",
        "version": "3",
        "modifiedAt": "17",
    }
    assert record_of(secret) == record()


@pytest.mark.parametrize("packed", [b"", b"{}", gzip.compress(b"[1]", mtime=0), b"\x1f\x8bx", None])
def test_a_malformed_record_is_an_error_that_names_the_secret(packed: bytes | None) -> None:
    secret = secret_of(record(), 17)
    inner = b"%%%" if packed is None else base64.b64encode(packed)
    secret["data"]["release"] = base64.b64encode(inner).decode()
    with pytest.raises(RecordError, match=r"^Secret sh\.helm\.release\.v1\.a\.v3: not a release record of Helm 3"):
        record_of(secret)


def test_a_record_that_unpacks_to_too_much_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.frontends.charts.releases.record._MAX_RECORD", 1000)
    secret = secret_of(record(), 17)
    bomb = gzip.compress(b" " * 1001)
    secret["data"]["release"] = base64.b64encode(base64.b64encode(bomb)).decode()
    with pytest.raises(RecordError, match="more than"):
        record_of(secret)
