"""Null values, defaults, and schemas for values without a type."""

from __future__ import annotations

from typing import Annotated, Any

from ostinato.api.markers.constraints import Format
from ostinato.api.markers.marker import Marker, SilentMarker


class Nullable(Marker):
    """Null is a value and is kept. Without this marker a null field is the same as an absent one."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"nullable": True}


class ServerDefault(Marker):
    """Default that the server sets, JSON-compatible, if it differs from the default of the class."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        super().__init__(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"default": self.arguments[0]}


class ClientDefault(SilentMarker):
    """The default of the class is not part of the schema: the server does not set it."""

    __slots__ = ()


class Inexact(SilentMarker):
    """Allow a `float`. Without this marker floats are rejected, as encodings differ in precision."""

    __slots__ = ()


class Schemaless(SilentMarker):
    """Allow any value, regardless of the type; also ends the schema of a recursive type."""

    __slots__ = ()


class PreserveUnknown(Marker):
    """Unknown fields are preserved, below a field or class."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-preserve-unknown-fields": True}


class EmbeddedResource(Marker):
    """The value is an object with apiVersion, kind and metadata, which the server validates."""

    __slots__ = ()
    types = frozenset({"object"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-embedded-resource": True}


class SchemaType(Marker):
    """JSON type of a field whose Python type does not determine it, e.g. with a custom decoding hook."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        if name not in ("array", "boolean", "integer", "number", "object", "string"):
            raise ValueError(f"SchemaType: {name!r} is not a JSON type")
        super().__init__(name)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": self.arguments[0]}


class RawSchema(Marker):
    """OpenAPI keywords without a marker: `RawSchema({"not": {"enum": ["root"]}})`."""

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
AnyResource = Annotated[dict[str, Any], EmbeddedResource()]  # an object of any kind
