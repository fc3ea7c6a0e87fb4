"""Built-in structs inside a kind: Kubernetes' own schemas, made structural.

- References are inlined. `ObjectMeta` is reduced to name, namespace, labels, annotations and finalizers.
- Validation, defaults and merge keywords are those of controller-gen (`go_markers`), `Condition`'s among them.
- Enums of the published definitions are omitted, as controller-gen does: a definition outlives the Kubernetes version
  that it was generated for.
- A map list with an optional key becomes atomic, as definitions require.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Final

from ostinato.api.schema import builtin_schemas
from ostinato.crd.schema.place import Place
from ostinato.crd.schema.types.go_markers import CONDITION, GO_MARKERS, META
from ostinato.crd.schema.types.scalars import QUANTITY_PATTERN, int_or_string

_HOMES: Final = {
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration.",
}
_ANY_OBJECT: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
EMBEDDED_METADATA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
_LEAVES: Final[dict[str, dict[str, Any]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**int_or_string(), "pattern": QUANTITY_PATTERN},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": int_or_string(),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _ANY_OBJECT,
    META + "FieldsV1": _ANY_OBJECT,
    META + "ObjectMeta": EMBEDDED_METADATA,
}
_KEPT: Final = ("default", "format", "required", "type", "x-kubernetes-map-type", "x-kubernetes-list-type")


def builtin_schema(cls: type, at: Place) -> dict[str, Any] | None:
    """Return the schema of a class of `ostinato.kinds` or `ostinato.api.meta`; None for any other."""
    name = _definition(cls)
    if name is None or name not in builtin_schemas().definitions:
        return None
    try:
        return copy.deepcopy(_flat(name))
    except RecursionError:
        raise at.error(f"{cls.__name__} contains itself: use dict[str, Any]") from None


def is_condition(cls: Any) -> bool:
    """Whether a class is `Condition` of meta/v1, whose lists are maps by type."""
    return isinstance(cls, type) and _definition(cls) == CONDITION


def _definition(cls: type) -> str | None:
    if cls.__module__ == "ostinato.api.meta":
        return META + cls.__name__
    package, _, module = cls.__module__.rpartition(".")
    if package != "ostinato.kinds":
        return None
    group, _, version = module.rpartition("_")
    return f"{_HOMES.get(group, f'io.k8s.api.{group}.')}{version}.{cls.__name__}"


@cache
def _flat(name: str) -> dict[str, Any]:
    if name in _LEAVES:
        return _LEAVES[name]
    schema = _node(builtin_schemas().definitions[name])
    for field, keywords in GO_MARKERS.get(name, {}).items():
        at = schema["properties"][field] if field else schema
        at |= keywords
    return schema


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in raw:
        return {**_flat(raw["$ref"].removeprefix("#/definitions/")), **_own(raw)}
    schema = _own(raw)
    if "properties" in raw:
        schema["properties"] = {name: _node(below) for name, below in raw["properties"].items()}
    if "additionalProperties" in raw:
        schema["additionalProperties"] = _node(raw["additionalProperties"])
    if "items" in raw:
        schema["items"] = _node(raw["items"])
    if schema.get("x-kubernetes-list-type") == "map":
        keys = raw["x-kubernetes-list-map-keys"]
        if all(_always_set(key, schema["items"]) for key in keys):
            schema["x-kubernetes-list-map-keys"] = list(keys)
        else:
            schema["x-kubernetes-list-type"] = "atomic"
    return schema


def _own(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of the value itself."""
    return {word: sorted(raw[word]) if word == "required" else raw[word] for word in _KEPT if word in raw}


def _always_set(key: str, items: dict[str, Any]) -> bool:
    return key in items.get("required", ()) or "default" in items["properties"][key]
