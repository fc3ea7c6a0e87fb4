"""Selectable fields of several versions, in a form that servers accept.

A server hoists what all versions have in common to the top level: the schema, and the selectable fields. It then looks
up the schema of selectable fields beside them, and rejects a definition in which only one of the two is hoisted.
The order of the fields makes them differ without a change of meaning.
"""

from __future__ import annotations

from typing import Any

from ostinato.crd.schema.place import Place

Json = dict[str, Any]


def align_selectable_fields(versions: list[Json], at: Place) -> None:
    """Make selectable fields differ exactly if schemas differ, in place. Raises SchemaError."""
    fields = [version.get("selectableFields", []) for version in versions]
    same_fields = all(each == fields[0] for each in fields)
    same_schemas = all(version["schema"] == versions[0]["schema"] for version in versions)
    if not any(fields) or same_fields == same_schemas:
        return
    if same_schemas:
        raise at.error(
            "versions with the same schema but different Selectable() fields are rejected by servers: "
            "make the same fields selectable in all of them"
        )
    if len(fields[0]) == 1:
        raise at.error(
            f"its versions have different schemas, and only {fields[0][0]['jsonPath']} is Selectable() in all of them, "
            "which servers reject: make another field selectable in one version, or none in a deprecated one"
        )
    versions[-1]["selectableFields"] = fields[-1][::-1]
