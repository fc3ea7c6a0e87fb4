"""List types `set` and `map`: the requirements for their items."""

from __future__ import annotations

from typing import Any

from ostinato.crd.schema.annotations import read
from ostinato.crd.schema.defaults import json_of, python_default
from ostinato.crd.schema.models import MISSING, fields_of_model, is_model
from ostinato.crd.schema.place import Place

Json = dict[str, Any]


def check_list(schema: Json, item: Any, at: Place) -> None:
    """Raise SchemaError for a list that a server rejects; adds missing defaults of map keys. `item`: the item type."""
    items: Json = schema["items"]
    list_type = schema.get("x-kubernetes-list-type")
    if list_type in ("set", "map") and items.get("nullable"):
        raise at.error(f"items of a list that is a {list_type} cannot be None")
    if list_type == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        raise at.error(
            "items of a set are scalars, or structs with atomic=True: use ListMap with the fields that are keys"
        )
    if list_type == "set" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        raise at.error("items of a set cannot be merged themselves: use list[...] for the inner one, or ListAtomic()")
    if list_type == "map":
        _check_keys(schema["x-kubernetes-list-map-keys"], items, item, at)


def _check_keys(keys: list[str], items: Json, item: Any, at: Place) -> None:
    if items.get("type") != "object":
        raise at.error("items of a ListMap are structs: use ListSet for scalars")
    properties: Json = items.get("properties", {})
    core = read(item, at).core
    fields = {field.wire: field for field in fields_of_model(core, at)} if is_model(core) else {}
    if len(set(keys)) < len(keys):
        raise at.error(f"ListMap({', '.join(map(repr, keys))}): duplicate key")
    for key in keys:
        if key not in properties:
            wire = next((field.wire for field in fields.values() if field.attribute == key), None)
            raise at.error(
                f"ListMap({key!r}): items have no such field"
                + (f": it is {wire!r} on the wire" if wire else f", only {', '.join(properties)}")
            )
        below: Json = properties[key]
        if below.get("type") in ("array", "object") or "type" not in below:
            raise at.error(f"ListMap({key!r}): a key must be a scalar")
        if below.get("nullable"):
            raise at.error(f"ListMap({key!r}): a key cannot be None")
        if key in items.get("required", ()) or "default" in below:
            continue
        default = python_default(fields[key]) if key in fields else MISSING
        if default is MISSING or default is None:
            raise at.error(f"ListMap({key!r}): a key must be required or have a default")
        below["default"] = json_of(default)  # an empty default, which schemas omit otherwise
