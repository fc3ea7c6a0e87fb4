"""Definitions: the CustomResourceDefinition of a kind, from the classes of its versions.

    crd_of(Widget)
    crd_of(WidgetV1, WidgetV1Beta1)  # one of them is marked Stored()

- Names, scope and group are the class keywords of the storage version, and must be equal in all versions.
- A field `status` adds the status subresource, unless the class is marked `NoStatus()`.
- Printer columns are those of the fields, in the order of the fields, then those of the class, in the order in which
  they are written; so `Age` on the class is last, as in `kubectl get` of the built-in kinds.
- Selectable fields are those of the class, then those of the fields.
- Dataclasses and pydantic models are kinds by `@resource(...)`.
- The result is a JSON-compatible dict, and deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from ostinato.api.gvk import GroupVersionKind, version_priority
from ostinato.api.markers import (
    Column,
    DefinitionMeta,
    Deprecated,
    Foreign,
    NoStatus,
    Scale,
    Selectable,
    Stored,
    Unserved,
    markers_on,
)
from ostinato.api.object import KindInfo, plural_of
from ostinato.api.validation import names
from ostinato.crd.schema.models import is_model
from ostinato.crd.schema.place import Place, SchemaError
from ostinato.crd.schema.schema import SchemaBuilder
from ostinato.crd.schema.selectable import align_selectable_fields

Json = dict[str, Any]
T = TypeVar("T", bound=type)

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "CustomResourceDefinition"
_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_LONGEST_WARNING: Final = 256
_MOST_SELECTABLE: Final = 8
_SCALED: Final = {  # allowed prefixes of the paths
    "specReplicasPath": (".spec.",),
    "statusReplicasPath": (".status.",),
    "labelSelectorPath": (".spec.", ".status."),
}
_PROTECTED: Final = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
APPROVAL: Final = "api-approved.kubernetes.io"
_ROOT_KEYWORDS: Final = frozenset(
    {"description", "example", "externalDocs", "properties", "required", "title", "type"}
    | {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}
)


def resource(
    *,
    group: str,
    version: str,
    kind: str = "",
    plural: str = "",
    singular: str = "",
    namespaced: bool = True,
    short_names: Iterable[str] = (),
    categories: Iterable[str] = (),
) -> Callable[[T], T]:
    """Declare a dataclass or a pydantic model as a kind, with the keywords of `CustomResource`."""

    def declare(cls: T) -> T:
        name = kind or cls.__name__
        cls.__kind__ = KindInfo(  # type: ignore[attr-defined]
            gvk=GroupVersionKind(group, version, name),
            plural=plural or plural_of(name),
            singular=singular or name.lower(),
            namespaced=namespaced,
            short_names=tuple(short_names),
            categories=tuple(categories),
            list_kind=f"{name}List",
        )
        return cls

    return declare


def crd_of(*versions: type, conversion: Mapping[str, Any] | None = None, descriptions: bool = True) -> Json:
    """Return the definition of a kind, given the class of each version. Raises SchemaError."""
    if not versions:
        raise SchemaError("crd_of needs the class of a kind")
    infos = [_info(cls) for cls in versions]
    stored = _stored(versions)
    info = infos[versions.index(stored)]
    _check_same(versions, infos)
    _check_names(stored, info)
    metadata: Json = {"name": f"{info.plural}.{info.gvk.group}"}
    for marker in markers_on(stored):
        if isinstance(marker, DefinitionMeta):
            metadata |= marker.keywords
    if _PROTECTED.fullmatch(info.gvk.group) and APPROVAL not in metadata.get("annotations", {}):
        raise _at(stored).error(
            f"the group {info.gvk.group} is reserved for Kubernetes: use another, or DefinitionMeta(annotations="
            f'{{"{APPROVAL}": ...}}) with the link to the approval'
        )
    version_specs = [
        _version(cls, is_stored=cls is stored, descriptions=descriptions)
        for cls in sorted(versions, key=lambda each: version_priority(_info(each).gvk.version))
    ]
    align_selectable_fields(version_specs, _at(stored))
    spec: Json = {
        "group": info.gvk.group,
        "names": _names(info),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "versions": version_specs,
    }
    if conversion is not None:
        spec["conversion"] = dict(conversion)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _at(cls: type) -> Place:
    return Place(cls.__name__)


def _info(cls: type) -> KindInfo:
    info = getattr(cls, "__kind__", None)
    if not isinstance(info, KindInfo) or not is_model(cls):
        raise SchemaError(
            f"{getattr(cls, '__name__', cls)!s} is not a kind: derive it from CustomResource (group, version), or "
            "use @resource(group=..., version=...)"
        )
    return info


def _stored(versions: tuple[type, ...]) -> type:
    marked = [cls for cls in versions if Stored() in markers_on(cls)]
    if len(versions) == 1:
        return versions[0]
    if len(marked) != 1:
        found = ", ".join(cls.__name__ for cls in marked) or "none"
        raise _at(versions[0]).error(
            f"one version must be marked Stored(), found {found}: write @marked(Stored()) above its class"
        )
    return marked[0]


def _check_same(versions: tuple[type, ...], infos: list[KindInfo]) -> None:
    first = infos[0]
    for cls, info in zip(versions[1:], infos[1:], strict=True):
        for word, one, other in (
            ("group", first.gvk.group, info.gvk.group),
            ("kind", first.gvk.kind, info.gvk.kind),
            ("plural", first.plural, info.plural),
            ("namespaced", first.namespaced, info.namespaced),
        ):
            if one != other:
                raise _at(cls).error(f"{word} is {other!r}, and {one!r} in {versions[0].__name__}: it must be the same")
    names_ = [info.gvk.version for info in infos]
    if len(set(names_)) < len(names_):
        raise _at(versions[-1]).error(f"several classes have the same version: {', '.join(names_)}")


def _check_names(cls: type, info: KindInfo) -> None:
    """Raise SchemaError for names that a server would reject."""
    if "." not in info.gvk.group or names.is_dns1123_subdomain(info.gvk.group):
        raise _at(cls).error(f"the group {info.gvk.group!r} must be a domain with a dot, e.g. example.dev")
    if info.gvk.kind[:1].islower() and Foreign() not in markers_on(cls):
        kind = info.gvk.kind[:1].upper() + info.gvk.kind[1:]
        raise _at(cls).error(f"kind {info.gvk.kind!r}: kinds begin with a capital letter; use {kind}")
    for word, text in (
        ("version", info.gvk.version),
        ("plural", info.plural),
        ("singular", info.singular),
        ("kind", info.gvk.kind.lower()),
        ("list_kind", info.list_kind.lower()),
        *(("short_names", text) for text in info.short_names),
        *(("categories", text) for text in info.categories),
    ):
        if names.is_dns1035_label(text):
            raise _at(cls).error(f"{word} {text!r}: must be a DNS-1035 label of up to 63 characters")
    if info.list_kind == info.gvk.kind:
        raise _at(cls).error(f"kind and list_kind are both {info.list_kind!r}: they must differ")


def _names(info: KindInfo) -> Json:
    found: Json = {
        "kind": info.gvk.kind,
        "listKind": info.list_kind,
        "plural": info.plural,
        "singular": info.singular,
    }
    if info.short_names:
        found["shortNames"] = list(info.short_names)
    if info.categories:
        found["categories"] = list(info.categories)
    return found


def _version(cls: type, *, is_stored: bool, descriptions: bool) -> Json:
    markers = markers_on(cls)
    builder = SchemaBuilder(descriptions=descriptions)
    schema = _object_schema(cls, builder)
    version: Json = {"name": _info(cls).gvk.version, "served": Unserved() not in markers, "storage": is_stored}
    for marker in markers:
        if isinstance(marker, Deprecated):
            version["deprecated"] = True
            if marker.warning:
                version["deprecationWarning"] = _warning(marker, cls)
    version["schema"] = {"openAPIV3Schema": schema}
    subresources: Json = {}
    if "status" in schema["properties"] and NoStatus() not in markers:
        subresources["status"] = {}
        if strange := sorted(schema.keys() - _ROOT_KEYWORDS):
            raise _at(cls).error(f"{strange[0]} is not allowed at the root of an object: put it on a field")
    for marker in markers:
        if isinstance(marker, Scale):
            subresources["scale"] = marker.paths if Foreign() in markers else _scale(marker, schema, cls)
    if subresources:
        version["subresources"] = subresources
    on_class = [(_at(cls), marker) for marker in markers if isinstance(marker, Column)]
    if columns := [_column(at, marker, schema) for at, marker in (*builder.columns, *on_class)]:
        version["additionalPrinterColumns"] = columns
    selectable = [(_at(cls), marker) for marker in markers if isinstance(marker, Selectable)]
    if paths := list(dict.fromkeys(_selectable(*each, schema) for each in (*selectable, *builder.selectable))):
        if len(paths) > _MOST_SELECTABLE:
            raise _at(cls).error(f"{len(paths)} fields are Selectable(), of {_MOST_SELECTABLE} at most")
        version["selectableFields"] = [{"jsonPath": path} for path in paths]
    return version


def _warning(marker: Deprecated, cls: type) -> str:
    if len(marker.warning.encode()) > _LONGEST_WARNING or not marker.warning.isprintable():
        raise _at(cls).error(f"{marker!r}: a warning is one line, of {_LONGEST_WARNING} bytes at most")
    return marker.warning


def _object_schema(cls: type, builder: SchemaBuilder) -> Json:
    schema = builder.struct(cls, _at(cls), skip=_EVERY_OBJECT)
    common = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema["properties"] = common | schema.get("properties", {})
    return schema


def _column(at: Place, marker: Column, schema: Json) -> Json:
    path = marker.path or at.path
    if not path:
        raise at.error(f"{marker!r} on a class needs a path, e.g. Column({marker.name or 'Ready'!r}, '.status.ready')")
    found = schema_at(schema, path)
    if (form := marker.keywords.get("format", "")) and form not in _COLUMN_FORMATS:
        raise at.error(f"{marker!r}: format is one of {', '.join(_COLUMN_FORMATS)}")
    name = marker.name or " ".join(part.capitalize() for part in at.field.split("_"))
    column: Json = {"name": name, "type": marker.keywords.get("type") or _column_type(path, found), "jsonPath": path}
    description = marker.keywords.get("description") or (found or {}).get("description")
    if description:
        column["description"] = description
    return column | {word: marker.keywords[word] for word in ("format", "priority") if word in marker.keywords}


def _column_type(path: str, found: Json | None) -> str:
    if path in (".metadata.creationTimestamp", ".metadata.deletionTimestamp"):
        return "date"
    if found is None:
        return "string"
    if found.get("format") == "date-time":
        return "date"
    kind: str = found.get("type", "string")
    return kind if kind in ("boolean", "integer", "number") else "string"


def _selectable(at: Place, marker: Selectable, schema: Json) -> str:
    path = marker.path or at.path
    found = schema_at(schema, path) if path else None
    if not path or found is None or found.get("type") not in ("string", "boolean", "integer"):
        raise at.error(f"{marker!r}: no string, boolean or integer field at {path!r}")
    return path


def _scale(marker: Scale, schema: Json, cls: type) -> Json:
    for word, path in marker.paths.items():
        found = schema_at(schema, path)
        wanted = "string" if word == "labelSelectorPath" else "integer"
        if found is None or found.get("type") != wanted:
            raise _at(cls).error(f"{marker!r}: no {wanted} field at {path}")
        if not path.startswith(_SCALED[word]):
            raise _at(cls).error(f"{marker!r}: {path} must be below {' or '.join(_SCALED[word])}")
    return marker.paths


def schema_at(schema: Json, path: str) -> Json | None:
    """Return the schema of the field at a path of plain names; None if there is no single one."""
    found: Any = schema
    for name in path.removeprefix(".").split("."):
        found = found.get("properties", {}).get(name)
        if found is None:
            return None
    return dict(found)
