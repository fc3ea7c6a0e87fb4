"""An Example kind, and operators of handlers that can be killed and started again."""

from __future__ import annotations

from typing import Any

from ostinato.client import Unstructured

EXAMPLE = Unstructured.of("example.dev/v1", "Example")


def definition(*, status: bool = True, keeps: bool = True) -> dict[str, Any]:
    """Return the definition of the kind.

    - `status`: it has the status subresource.
    - `keeps`: the schema of its status keeps unknown fields.
    """
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shape = free if keeps else {"type": "object", "properties": {"message": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": free, "status": shape}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "examples.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"plural": "examples", "singular": "example", "kind": "Example", "shortNames": ["ex"]},
            "versions": [version | ({"subresources": {"status": {}}} if status else {})],
        },
    }


def example(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Example", "metadata": {"name": name}, "spec": spec}
