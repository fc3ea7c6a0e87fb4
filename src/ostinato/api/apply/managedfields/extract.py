"""Extract the configuration that a field manager last applied from a live object."""

from __future__ import annotations

from typing import Any

from ostinato.api.apply.fieldpath.field_set import leaves, parse
from ostinato.api.apply.typed.merge import extract
from ostinato.api.apply.typed.merge_rules import rules_of
from ostinato.api.schema import Schema


def extract_applied(
    value: dict[str, Any], manager: str, schema: Schema | None, *, subresource: str = ""
) -> dict[str, Any] | None:
    """Return the fields of an object that `manager` applied, to modify and apply again; None if there are none.

    Name and namespace are not owned, so the result lacks them. Raises FieldSetError.
    """
    for entry in value.get("metadata", {}).get("managedFields") or ():
        found = (entry.get("manager", ""), entry.get("operation"), entry.get("subresource", ""))
        if found == (manager, "Apply", subresource):
            config = extract(value, leaves(parse(entry.get("fieldsV1"))), rules_of(schema)) or {}
            return {"apiVersion": value.get("apiVersion"), "kind": value.get("kind"), **config}
    return None
