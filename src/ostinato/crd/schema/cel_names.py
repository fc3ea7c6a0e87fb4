"""Names of fields in validation rules."""

from __future__ import annotations

from ostinato.cel.identifiers import escape
from ostinato.crd.schema.place import Place


def name_in_rules(wire: str, at: Place) -> str:
    """Return the escaped name of a field. Raises SchemaError if it cannot be escaped."""
    name = escape(wire)
    if name is None:
        raise at.error(f"{wire!r} cannot be escaped as a CEL identifier; rename the field, or remove the marker")
    return name
