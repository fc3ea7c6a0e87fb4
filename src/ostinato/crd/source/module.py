"""Module generator: Python classes from CustomResourceDefinitions.

- One class per version of a kind, and one per nested object; equal objects share a class. The storage version has the
  name of the kind, others a suffix: WidgetV1beta1.
- Kinds are marked `Foreign()`: no manifests are generated for them.
- Optional lists and maps default to empty; other optional fields to None, or to the default of the schema.
- Enums become markers, so that objects of a newer definition can still be decoded.
- Descriptions become docstrings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api import markers
from ostinato.api.markers import (
    Column,
    DefinitionMeta,
    Deprecated,
    Foreign,
    MapAtomic,
    Marker,
    NoStatus,
    Nullable,
    Scale,
    Selectable,
    ServerDefault,
    Stored,
    Unserved,
)
from ostinato.api.object import plural_of
from ostinato.api.struct import wire_name
from ostinato.crd.definition import APPROVAL
from ostinato.crd.schema.defaults import filled, struct_default
from ostinato.crd.source.annotation import Annotation, annotation_of, markers_of
from ostinato.crd.source.names import attribute_names, class_name, kind_class_name, singular
from ostinato.crd.source.text import WIDTH, docstring, literal, wrapped

Json = dict[str, Any]

_MAX_DEPTH: Final = 60  # nested classes; real definitions have about ten
_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")
_PLAIN: Final = ("str", "int", "float", "bool", "int | str")
_HOMES: Final = {  # names to import, by module
    "ostinato.api.markers": frozenset(markers.__all__),
    "ostinato.api.meta": frozenset({"ObjectMeta"}),
    "ostinato.api.object": frozenset({"CustomResource"}),
    "ostinato.api.quantity": frozenset({"Quantity"}),
    "ostinato.api.struct": frozenset({"Struct"}),
    "ostinato.api.time": frozenset({"Duration", "Time"}),
}
_UNTOUCHED: Final = "# ruff: noqa\n# fmt: off\n"  # generated code
_FACTORIES: Final = {"[]": "list", "{}": "dict"}
_RESERVED: Final = frozenset({"Annotated", "Any"}).union(*_HOMES.values())


class TypesError(ValueError):
    """A definition is invalid."""


def types_of(*crds: Mapping[str, Any], version: str | None = None) -> str:
    """Return the Python source of the classes of kinds: of one version, or of all."""
    module = _Module()
    for crd in crds:
        spec = crd.get("spec") if isinstance(crd, Mapping) and crd.get("kind") == "CustomResourceDefinition" else None
        if not isinstance(spec, dict):
            raise TypesError("not a CustomResourceDefinition")
        name = (crd.get("metadata") or {}).get("name", "")
        if crd.get("apiVersion") != "apiextensions.k8s.io/v1":
            raise TypesError(
                f"only definitions of apiextensions.k8s.io/v1 can be read, {name!r} is of {crd.get('apiVersion')}"
            )
        try:
            module.add(spec, _chosen(spec, version), _approval(crd))
        except TypesError as error:
            raise TypesError(f"the definition {name!r}: {error}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise TypesError(f"the definition {name!r} is invalid: {error!r}") from error
    return module.text()


def _approval(crd: Mapping[str, Any]) -> list[Marker]:
    """Return the approval annotation, which protected groups require."""
    link = ((crd.get("metadata") or {}).get("annotations") or {}).get(APPROVAL)
    return [DefinitionMeta(annotations={APPROVAL: link})] if isinstance(link, str) else []


def _chosen(spec: Json, version: str | None) -> list[Json]:
    """Return the requested versions, the storage version first."""
    versions: list[Json] = spec.get("versions") or []
    stored = [each for each in versions if each.get("storage")]
    found = [each for each in versions if each["name"] == version] if version else stored
    if not found:
        known = ", ".join(str(each.get("name")) for each in versions) or "none"
        raise TypesError(f"no version {version or 'with storage'}; versions: {known}")
    return found if version else [*stored, *(each for each in versions if not each.get("storage"))]


class _Module:
    """The classes of a module, dependencies first."""

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._classes: list[str] = []
        self._made: dict[tuple[str, bytes], str] = {}  # class names by schema
        self._docs: dict[str, str] = {}  # of the classes
        self._used: set[str] = set()  # the names to import
        self._taken = set(_RESERVED)

    def add(self, spec: Json, versions: Sequence[Json], shared_markers: Sequence[Marker]) -> None:
        """Add a kind; `shared_markers`: markers of every version."""
        kind = spec["names"]["kind"]
        names = [kind, *(f"{kind} {version['name']}" for version in versions[1:])]
        classes = []
        for name in names:
            classes.append(kind_class_name(name, self._taken))
            self._taken.add(classes[-1])
        for version, name in zip(versions, classes, strict=True):
            stored = [Stored()] if len(versions) > 1 and version.get("storage") else []
            self._kind_class(spec, version, name, [Foreign(), *shared_markers, *stored])
        self._titles.append(f"{kind} of {spec['group']}/{', '.join(version['name'] for version in versions)}")

    def text(self) -> str:
        body = "\n\n\n".join(self._classes)
        title = self._titles[0] if len(self._titles) == 1 else "Kinds of others:\n\n- " + ",\n- ".join(self._titles)
        source = "its definition" if len(self._titles) == 1 else "their definitions"
        head = docstring(f"{title}.\n\nMade by `ostinato types` from {source}.", 0)
        return f"{_UNTOUCHED}{head}\n\n{self._imports()}\n\n\n{body}\n"

    def _imports(self) -> str:
        used = self._used
        blocks = ["from __future__ import annotations"]
        if typing := sorted(used & {"Annotated", "Any"}):
            blocks.append(f"from typing import {', '.join(typing)}")
        if "msgspec" in used:
            blocks.append("import msgspec")
        blocks.append("\n".join(_imported(home, used & names) for home, names in _HOMES.items() if used & names))
        return "\n\n".join(blocks)

    # The kind

    def _kind_class(self, spec: Json, version: Json, name: str, shared_markers: Sequence[Marker]) -> None:
        schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        properties = {n: s for n, s in (schema.get("properties") or {}).items() if n not in _EVERY_OBJECT}
        schema = {**schema, "properties": properties}
        fields = self._fields(schema, (name,))
        names, group = spec["names"], spec["group"]
        keywords = ["CustomResource", f"group={literal(group)}", f"version={literal(version['name'])}"]
        named = {"kind": (names["kind"], name)}
        named["plural"] = (names["plural"], plural_of(names["kind"]))
        named["singular"] = (names.get("singular") or names["kind"].lower(), names["kind"].lower())
        named["list_kind"] = (names.get("listKind") or f"{names['kind']}List", f"{names['kind']}List")
        keywords += [
            f"{word}={literal(shared_markers)}"
            for word, (shared_markers, usual) in named.items()
            if shared_markers != usual
        ]
        if spec["scope"] == "Cluster":
            keywords.append("namespaced=False")
        for word, values in (("short_names", names.get("shortNames")), ("categories", names.get("categories"))):
            if values:
                keywords.append(f"{word}={literal(values)}")
        shared_markers = [*shared_markers, *_kind_markers(version, properties), *self._class_markers(schema)]
        self._used.add("CustomResource")
        head = wrapped(f"class {name}(", keywords, "):", 0)
        self._classes.append(self._class_text(head, shared_markers, schema.get("description", ""), fields))

    # Structs

    def _make_class(self, schema: Json, way: tuple[str, ...]) -> str:
        if len(way) > _MAX_DEPTH:
            raise TypesError(f"the schema is nested too deeply: {'.'.join(way[:5])}...")
        shape = {word: value for word, value in schema.items() if word not in ("description", "nullable", "default")}
        key = (way[-1], msgspec.json.encode(shape, order="deterministic"))
        if key not in self._made:
            name = self._made[key] = class_name(way, self._taken)
            self._taken.add(name)
            self._docs[name] = schema.get("description", "")
            fields = self._fields(schema, way)
            shared_markers = self._class_markers(schema)
            self._used.add("Struct")
            atomic = ", atomic=True" if MapAtomic() in shared_markers else ""
            head = f"class {name}(Struct{atomic}):"
            shared_markers = [marker for marker in shared_markers if marker != MapAtomic()]
            self._classes.append(self._class_text(head, shared_markers, self._docs[name], fields))
        return self._made[key]

    def _class_markers(self, schema: Json) -> list[Marker]:
        ours = ("type", "description", "nullable", "default", "properties", "required")
        return markers_of({word: value for word, value in schema.items() if word not in ours}, "object")

    def _class_text(self, head: str, shared_markers: list[Marker], doc: str, fields: list[str]) -> str:
        parts = []
        if shared_markers:
            self._used |= {"marked", *(type(marker).__name__ for marker in shared_markers)}
            parts.append(wrapped("@marked(", shared_markers, ")", 0))
        parts.append(head)
        if doc.strip():
            parts.append(docstring(doc, 4) + ("\n" if fields else ""))
        parts += fields or ([] if doc.strip() else ["    pass"])
        return "\n".join(parts)

    def _fields(self, schema: Json, way: tuple[str, ...]) -> list[str]:
        required = schema.get("required") or ()
        properties: Json = schema.get("properties") or {}
        attributes = attribute_names(properties)
        lines = []
        for wire, below in properties.items():
            step = singular(wire) if below.get("items") or below.get("additionalProperties") else wire
            if wire == "metadata" and schema.get("x-kubernetes-embedded-resource") and not below.get("properties"):
                found = Annotation("ObjectMeta", [], {"ObjectMeta"})  # implied by embedded-resource
            else:
                found = annotation_of(below, (*way, step), self._make_class)
            lines.append(self._field(attributes[wire], wire, below, found, required=wire in required))
            doc = below.get("description", "")
            if doc.strip() and not (found.is_class and self._docs[found.core] == doc):
                lines.append(docstring(doc, 4))
        return lines

    def _field(self, attribute: str, wire: str, schema: Json, found: Annotation, *, required: bool) -> str:
        """Return the source of one attribute."""
        default = schema.get("default")
        nullable = bool(schema.get("nullable")) and found.core != "Any"
        none = nullable
        if default is not None:
            default_text = self._default_text(found, schema)
            none = none or default_text == "None"
            if default_text == "None" and nullable:
                found.markers.append(Nullable())
        elif required:
            default_text = ""
        elif found.core.startswith(("list[", "dict[")) and not nullable:
            default_text = "[]" if found.core.startswith("list[") else "{}"
        else:
            default_text = "None"
            none = found.core != "Any"
            if nullable:
                found.markers.append(Nullable())
        assigned = _assigned(default_text, wire, attribute)
        self._used |= found.names | ({"msgspec"} if "msgspec." in assigned else set())
        if not found.markers:
            return f"    {attribute}: {found.line(none=none)}{assigned}"
        core = f"{found.core} | None" if none else found.core
        return wrapped(f"{attribute}: Annotated[", [core, *found.markers], f"]{assigned}", 4)

    def _default_text(self, found: Annotation, schema: Json) -> str:
        """Return the default of the attribute; adds a ServerDefault if the server's differs."""
        default = schema["default"]
        if found.is_class and default in ({}, filled(schema, {})) and not schema.get("required"):
            if default != struct_default(schema):
                found.markers.append(ServerDefault(default))
            return f"{found.core}()"
        if found.core in _PLAIN and isinstance(default, str | int | float) and default != "":
            return literal(float(default) if found.core == "float" and not isinstance(default, bool) else default)
        found.markers.append(ServerDefault(default))
        if default == "" and found.core == "str":
            return '""'
        # With a non-empty server default, an empty value must be written explicitly.
        empty = {"list[": "[]", "dict[": "{}"}.get(found.core[:5], "None")
        return empty if default in ([], {}) else "None"


def _kind_markers(version: Json, properties: Json) -> list[Marker]:
    found: list[Marker] = []
    if not version.get("served"):
        found.append(Unserved())
    if version.get("deprecated"):
        found.append(Deprecated(version.get("deprecationWarning", "")))
    subresources = version.get("subresources") or {}
    if "status" in properties and subresources.get("status") is None:
        found.append(NoStatus())
    if scale := subresources.get("scale"):
        selector = scale.get("labelSelectorPath", "")
        found.append(Scale(scale["specReplicasPath"], scale["statusReplicasPath"], selector))
    found += [
        Column(
            each["name"],
            each["jsonPath"],
            type=each["type"],
            format=each.get("format", ""),
            description=each.get("description", ""),
            priority=each.get("priority", 0),
        )
        for each in version.get("additionalPrinterColumns") or ()
    ]
    return found + [Selectable(each["jsonPath"]) for each in version.get("selectableFields") or ()]


def _assigned(default: str, wire: str, attribute: str) -> str:
    if wire_name(attribute) == wire:
        return f" = msgspec.field({_given(default)})" if default.endswith("()") else f" = {default}" if default else ""
    name = f"name={literal(wire)}"
    if not default:
        return f" = msgspec.field({name})"
    return f" = msgspec.field({name}, {_given(default)})"


def _given(default: str) -> str:
    """Return a default as an argument of msgspec.field; mutable ones as a factory."""
    if default in _FACTORIES:
        return f"default_factory={_FACTORIES[default]}"
    return f"default_factory={default[:-2]}" if default.endswith("()") else f"default={default}"


def _imported(home: str, found: Iterable[str]) -> str:
    names = sorted(found, key=lambda name: (name.islower(), name.lower()))  # classes before functions
    line = f"from {home} import {', '.join(names)}"
    return line if len(line) <= WIDTH else wrapped(f"from {home} import (", names, ")", 0)
