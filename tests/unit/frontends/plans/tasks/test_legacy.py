"""Manifests of dropped API versions are converted."""

from __future__ import annotations

from typing import Any

from ostinato.frontends.plans.tasks.legacy import replacement

SPEC: dict[str, Any] = {
    "group": "example.dev",
    "version": "v1",
    "names": {"kind": "A", "plural": "as"},
    "scope": "Namespaced",
    "subresources": {"status": {}},
    "additionalPrinterColumns": [{"name": "Age", "type": "date", "JSONPath": ".metadata.creationTimestamp"}],
}


def definition(**spec: Any) -> dict[str, Any]:
    found = replacement(
        {
            "apiVersion": "apiextensions.k8s.io/v1beta1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.example.dev"},
            "spec": {**SPEC, **spec},
        }
    )
    assert found is not None
    return found


def test_a_definition_gets_its_common_parts_in_each_version() -> None:
    found = definition()
    assert found["apiVersion"] == "apiextensions.k8s.io/v1"
    (version,) = found["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["additionalPrinterColumns"][0]["jsonPath"] == ".metadata.creationTimestamp"
    assert version["schema"]["openAPIV3Schema"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_structural_schema_is_kept_and_another_is_replaced() -> None:
    good = {"properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    bad = {"properties": {"spec": {"properties": {"a": {}}}}}
    kept = definition(validation={"openAPIV3Schema": good}, preserveUnknownFields=False)
    assert kept["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {**good, "type": "object"}
    replaced = definition(validation={"openAPIV3Schema": bad})
    assert "properties" not in replaced["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_workloads_get_a_selector_and_other_kinds_another_version() -> None:
    template = {"metadata": {"labels": {"app": "a"}}}
    found = replacement({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "spec": {"template": template}})
    assert found is not None
    assert (found["apiVersion"], found["spec"]["selector"]) == ("apps/v1", {"matchLabels": {"app": "a"}})
    role = replacement({"apiVersion": "rbac.authorization.k8s.io/v1beta1", "kind": "Role"})
    assert role == {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    assert replacement({"apiVersion": "apps/v1", "kind": "Deployment"}) is None
