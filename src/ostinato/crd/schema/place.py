"""Places: where in a class something stands, for errors and for paths."""

from __future__ import annotations

import msgspec


class SchemaError(TypeError):
    """A class that no schema can be made of; the message names class and field, and says what to write instead."""


class Place(msgspec.Struct, frozen=True):
    """A class, or a field of it, or what is inside of that: `ports[]` are the items, `limits{}` the values."""

    owner: str  # the class
    field: str = ""  # its attribute
    path: str | None = ""  # from the top of the object, on the wire; None where there are many: in lists and maps
    correlated: bool = True  # whether a server knows which old value a new one replaces

    def of_class(self, owner: type) -> Place:
        """The class of what stands here."""
        return Place(owner.__name__, "", self.path, self.correlated)

    def of_field(self, attribute: str, wire: str) -> Place:
        """A field of the class that this is."""
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
