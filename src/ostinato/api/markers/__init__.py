"""Markers: properties of fields and classes that types cannot express, as metadata of `Annotated`.

    containers: Annotated[list[Container], ListMap("name"), PatchMerge("name")]
    replicas: Annotated[int, Ge(0)] = 1

    @marked(Rule("self.min <= self.max"))
    class Range(Struct): ...

- `ListAtomic`, `ListSet`, `ListMap`, `MapAtomic` and `MapGranular`: merge strategy of server-side apply. `PatchMerge`,
  `PatchReplace` and `PatchRetainKeys`: merge strategy of strategic merge patch, for built-in kinds.
- `Ge` and the other constraints: validation. `Enum`: the known values.
- `Column`, `Selectable`, `Scale` and others: the CustomResourceDefinition besides its schema.

Decoding never validates markers, as a server may be newer than the class. `ostinato.crd` generates definitions from
them, which the server enforces. Each marker has its OpenAPI form (`schema`).
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
