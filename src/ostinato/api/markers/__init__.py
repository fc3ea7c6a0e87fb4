"""Markers: what a type alone cannot say, written beside it.

    containers: Annotated[list[Container], ListMap("name"), PatchMerge("name")]
    replicas: Annotated[int, Ge(0)] = 1

    @marked(Rule("self.min <= self.max"))
    class Range(Struct): ...

- `ListAtomic`, `ListSet`, `ListMap`, `MapAtomic` and `MapGranular` say how server-side apply merges the field;
  `PatchMerge`, `PatchReplace` and `PatchRetainKeys` say how strategic merge patch does, as the built-in kinds have it.
- `Ge` and the other constraints say which values there may be, and `Enum` which are known today.
- `Column` and those like it say what a kind's definition holds beside its schema.

Markers describe: they never make decoding fail, since a server may be newer than the class. `ostinato.crd` makes
definitions of them, which a server enforces.

A marker knows its OpenAPI form (`schema`), so that schemas are made from classes without a table of markers elsewhere.
"""

from ostinato.api.markers.constraints import (
    AtLeastOneOf,
    AtMostOneOf,
    Enum,
    ExactlyOneOf,
    Format,
    Ge,
    Gt,
    Immutable,
    Le,
    Len,
    Lt,
    MultipleOf,
    Pattern,
    Rule,
)
from ostinato.api.markers.definition import (
    Column,
    DefinitionMeta,
    Deprecated,
    Foreign,
    NoStatus,
    Scale,
    Selectable,
    Stored,
    Unserved,
)
from ostinato.api.markers.documentation import Doc, Example, ExternalDocs, Title
from ostinato.api.markers.marker import Marker, add_to, combined_schema, marked, markers_on
from ostinato.api.markers.merging import (
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    MapGranular,
    PatchMerge,
    PatchReplace,
    PatchRetainKeys,
)
from ostinato.api.markers.presence import (
    AnyResource,
    ClientDefault,
    EmbeddedResource,
    Inexact,
    Int32,
    Int64,
    Nullable,
    PreserveUnknown,
    RawSchema,
    Schemaless,
    SchemaType,
    ServerDefault,
)

__all__ = [
    "AnyResource",
    "AtLeastOneOf",
    "AtMostOneOf",
    "ClientDefault",
    "Column",
    "DefinitionMeta",
    "Deprecated",
    "Doc",
    "EmbeddedResource",
    "Enum",
    "ExactlyOneOf",
    "Example",
    "ExternalDocs",
    "Foreign",
    "Format",
    "Ge",
    "Gt",
    "Immutable",
    "Inexact",
    "Int32",
    "Int64",
    "Le",
    "Len",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "Lt",
    "MapAtomic",
    "MapGranular",
    "Marker",
    "MultipleOf",
    "NoStatus",
    "Nullable",
    "PatchMerge",
    "PatchReplace",
    "PatchRetainKeys",
    "Pattern",
    "PreserveUnknown",
    "RawSchema",
    "Rule",
    "Scale",
    "SchemaType",
    "Schemaless",
    "Selectable",
    "ServerDefault",
    "Stored",
    "Title",
    "Unserved",
    "add_to",
    "combined_schema",
    "marked",
    "markers_on",
]
