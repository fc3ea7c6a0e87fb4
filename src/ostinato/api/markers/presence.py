"""Presence: whether a value may be null, what it is by default, and what may stand where no type says it."""

from __future__ import annotations

from typing import Annotated, Any

from ostinato.api.markers.constraints import Format
from ostinato.api.markers.marker import Marker, SilentMarker


class Nullable(Marker):
    """Null is a value of its own, kept as such. Without it, a null in a field is the same as no field."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"nullable": True}


class ServerDefault(Marker):
    """What the server fills in, in JSON shape, where that is not the default of the class."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        super().__init__(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"default": self.arguments[0]}


class ClientDefault(SilentMarker):
    """The default of the class stays with the class: the server fills in nothing."""

    __slots__ = ()


class Inexact(SilentMarker):
    """A `float` is meant. Without it floats are refused: languages and encodings do not agree on their digits."""

    __slots__ = ()


class Schemaless(SilentMarker):
    """Anything may stand here, whatever the type says; also the way to end a type that contains itself."""

    __slots__ = ()


class PreserveUnknown(Marker):
    """Fields that the schema does not know are kept, on a field or a class."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-preserve-unknown-fields": True}


class EmbeddedResource(Marker):
    """The value is an object with apiVersion, kind and metadata, which the server checks."""

    __slots__ = ()
    types = frozenset({"object"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-embedded-resource": True}


class SchemaType(Marker):
    """The JSON type of a field whose Python type says nothing of it, e.g. one that a hook of yours reads."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        if name not in ("array", "boolean", "integer", "number", "object", "string"):
            raise ValueError(f"SchemaType: {name!r} is no JSON type")
        super().__init__(name)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": self.arguments[0]}


class RawSchema(Marker):
    """What no other marker says, in OpenAPI's words: `RawSchema({"not": {"enum": ["root"]}})`."""

    __slots__ = ()

    def __init__(self, schema: dict[str, Any]) -> None:
        if not isinstance(schema, dict):
            raise TypeError(f"RawSchema needs a dict, got {schema!r}")
        super().__init__(schema)

    @property
    def schema(self) -> dict[str, Any]:
        return dict(self.arguments[0])


Int32 = Annotated[int, Format("int32")]
Int64 = Annotated[int, Format("int64")]
AnyResource = Annotated[dict[str, Any], EmbeddedResource()]  # a whole object of any kind
