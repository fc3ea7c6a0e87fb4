"""Places: positions in a class, for errors and field paths."""

from __future__ import annotations

import msgspec


class SchemaError(TypeError):
    """A class cannot be expressed as a schema; the message names class and field, and the fix."""


class Place(msgspec.Struct, frozen=True):
    """A class, a field of it, or its items (`ports[]`) or values (`limits{}`)."""

    owner: str  # the class
    field: str = ""  # its attribute
    path: str | None = ""  # wire path from the root; None inside lists and maps
    correlated: bool = True  # whether oldSelf is available in rules

    def of_class(self, owner: type) -> Place:
        """Return the place of the class of this field."""
        return Place(owner.__name__, "", self.path, self.correlated)

    def of_field(self, attribute: str, wire: str) -> Place:
        """Return the place of a field of this class."""
        path = None if self.path is None else f"{self.path}.{wire}"
        return Place(self.owner, attribute, path, self.correlated)

    def item(self, *, correlated: bool) -> Place:
        return Place(self.owner, f"{self.field}[]", None, self.correlated and correlated)

    def entry(self) -> Place:
        return Place(self.owner, f"{self.field}{{}}", None, self.correlated)

    def error(self, problem: str) -> SchemaError:
        return SchemaError(f"{self}: {problem}")

    def __str__(self) -> str:
        return f"class {self.owner}, field {self.field}" if self.field else f"class {self.owner}"
