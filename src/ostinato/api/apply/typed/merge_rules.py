"""Merge rules: the schema of a value for server-side apply. Corresponds to `schema.Atom` in structured-merge-diff.

- A value is a scalar, a list, a map, or one of several of these.
- Atomic lists and maps are owned and replaced as a whole. Granular maps are merged by field; associative lists are
  merged by item, identified by keys (list type `map`) or value (list type `set`).
- Without a schema the rules are deduced from the value: maps are granular, lists atomic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import msgspec

from ostinato.api.apply.fieldpath.elements import key_element, name_element, value_element
from ostinato.api.apply.typed.values import NESTED, shallow
from ostinato.api.schema import Schema, builtin_schemas

Scalar = Literal["numeric", "string", "boolean", "untyped"]


_EMPTY: dict[str | None, Any] = {"string": "", "integer": 0, "boolean": False}


class ItemError(ValueError):
    """An associative list cannot contain this item."""


class Rules:
    """The types that a value may have, and how it is merged."""

    __slots__ = ("fast_validator", "list", "map", "scalar", "walk")

    def __init__(self, scalar: Scalar | None, list_rules: ListRules | None, map_rules: MapRules | None) -> None:
        self.scalar = scalar
        self.list = list_rules
        self.map = map_rules
        self.fast_validator: Callable[[Any], bool] | None = None  # cache of `fast_validate`
        self.walk: Callable[[Any], dict[str, Any]] | None = None  # cache of `creation`

    def form(self, value: Any) -> Literal["map", "scalar", "list"]:
        """Return as what to treat a value: its own type if the rules allow it, else the type that they prefer."""
        if isinstance(value, dict):
            if self.map is not None:
                return "map"
        elif isinstance(value, list):
            if self.list is not None:
                return "list"
        elif value is not None and self.scalar is not None:
            return "scalar"
        if self.map is not None:
            return "map"
        return "scalar" if self.scalar is not None else "list"


class MapRules:
    """Merge rules of a map or struct."""

    def __init__(self, schema: Schema | None, *, atomic: bool, preserve: bool) -> None:
        self.atomic = atomic
        self._schema = schema  # None for deduced maps
        self._preserve = preserve  # x-kubernetes-preserve-unknown-fields, here and below
        self._declared: dict[str, Any] = dict(schema.raw.get("properties", {})) if schema is not None else {}
        self._fields: dict[str, Rules] = {}  # declared fields, filled on first use
        self.shapes: dict[tuple[str, ...], Any] = {}  # cache of `creation`, by the names of the fields

    @property
    def struct(self) -> bool:
        """Whether the schema declares any field."""
        return bool(self._declared)

    def declares(self, name: str) -> bool:
        """Whether the schema declares this field."""
        return name in self._declared

    def field(self, name: str) -> Rules | None:
        """Return the rules of a field or entry; None if the schema does not allow it."""
        found = self._fields.get(name)
        if found is not None:
            return found
        if name not in self._declared:
            return self.values
        assert self._schema is not None
        schema = self._schema.field(name)
        assert schema is not None
        found = self._fields[name] = rules_of(schema, preserve=self._preserve and "$ref" not in self._declared[name])
        return found

    @cached_property
    def values(self) -> Rules | None:
        """The rules of undeclared entries."""
        if self._schema is None:
            return UNTYPED_ATOMIC if self.atomic else DEDUCED
        additional = self._schema.raw.get("additionalProperties")
        if additional is None:
            return DEDUCED if self._preserve or not self._declared else None
        if isinstance(additional, dict):
            values = self._schema.values
            assert values is not None
            return rules_of(values, preserve=self._preserve and "$ref" not in additional)
        return DEDUCED if additional else None

    @property
    def deduced(self) -> bool:
        """Whether the schema does not specify the contents of the map."""
        if self._declared or self.values is None:
            return False
        if self.values is DEDUCED:
            return True
        additional = self._schema.raw.get("additionalProperties") if self._schema is not None else None
        return isinstance(additional, dict) and "$ref" not in additional and self.values.scalar == "untyped"


class ListRules:
    """Merge rules of a list: atomic, or by item, identified by `keys`, or by value if there are none."""

    def __init__(self, schema: Schema | None, *, atomic: bool, keys: tuple[str, ...], preserve: bool) -> None:
        self.atomic = atomic
        self.keys = keys
        self._sorted_keys = tuple(sorted(keys))
        self._schema = schema  # None for deduced lists
        self._preserve = preserve

    @cached_property
    def items(self) -> Rules:
        if self._schema is None or self._schema.items is None:
            return UNTYPED_ATOMIC
        return rules_of(self._schema.items, preserve=self._preserve and "$ref" not in self._schema.raw["items"])

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """The values of keys that an item omits. Required keys of Go structs are never absent: they are zero."""
        items = self._schema.items if self._schema is not None else None
        if self._schema is None or items is None:
            return {}
        found: dict[str, Any] = {}
        for key in self.keys:
            field = items.field(key)
            if field is None:
                continue
            if field.default is not msgspec.UNSET and field.default is not None:
                found[key] = field.default
            elif "$ref" in self._schema.raw["items"] and key in items.required and field.type in _EMPTY:
                found[key] = _EMPTY[field.type]
        return found

    def element(self, item: Any) -> str:
        """Return the path element of an item. Raises ItemError if the list cannot contain it."""
        if not self.keys:
            if isinstance(item, dict):
                raise ItemError("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise ItemError("not supported: associative list with lists as elements")
            if item is None:
                raise ItemError("associative list without keys has an element that's an explicit null")
            return value_element(item)
        if not isinstance(item, dict):
            kind = "a null element" if item is None else "non-map elements"
            raise ItemError(f"associative list with keys may not have {kind}")
        if len(self.keys) == 1 and isinstance(name := item.get(self.keys[0]), str):
            return name_element(self.keys[0], name)
        found = []
        for key in self._sorted_keys:
            if key in item:
                value = item[key]
                if isinstance(value, NESTED) and not shallow(value):
                    raise ItemError("associative list with keys has an element with nested keys")
                found.append((key, value))
            elif self.items.map is None:
                why = "associative list may not have non-map types"
                raise ItemError(f"couldn't find default value for {key}: {why}")
            elif key in self._defaults:
                found.append((key, self._defaults[key]))
        if not found:
            names = " ".join(f'"{key}"' for key in self.keys)
            raise ItemError(
                f"associative list with keys has an element that omits all key fields [{names}]"
                " (and doesn't have default values for any key fields)"
            )
        return key_element(found)


UNTYPED_ATOMIC = Rules(
    "untyped",
    ListRules(None, atomic=True, keys=(), preserve=False),
    MapRules(None, atomic=True, preserve=False),
)
DEDUCED = Rules(
    "untyped",
    ListRules(None, atomic=True, keys=(), preserve=False),
    MapRules(None, atomic=False, preserve=False),
)
_ANY_SCALAR = Rules("untyped", None, None)


def rules_of(schema: Schema | None, *, preserve: bool = False) -> Rules:
    """Return the rules of a schema; without one they are deduced. `preserve` keeps undeclared fields."""
    if schema is None:
        return DEDUCED
    preserve = preserve or schema.preserve_unknown
    found: Rules | None = schema.derived.get("apply.preserve" if preserve else "apply")
    if found is None:
        found = schema.derived["apply.preserve" if preserve else "apply"] = _read(schema, preserve=preserve)
    return found


def _read(schema: Schema, *, preserve: bool) -> Rules:
    raw = schema.raw
    builtin = builtin_schemas()
    if raw is builtin.by_name("io.k8s.apimachinery.pkg.api.resource.Quantity").raw:
        return _ANY_SCALAR  # "1" and 1 are both quantities
    if raw is builtin.by_name("io.k8s.apimachinery.pkg.runtime.RawExtension").raw:
        return UNTYPED_ATOMIC
    match raw.get("type"):
        case "object":
            return Rules(None, None, _map_rules(schema, preserve=preserve))
        case "array":
            return Rules(None, _list_rules(schema, preserve=preserve), None)
        case "integer" | "number":
            return Rules("numeric", None, None)
        case "boolean":
            return Rules("boolean", None, None)
        case "string":
            return Rules("string" if raw.get("format", "") in ("", "byte") else "untyped", None, None)
    return Rules("untyped", _list_rules(schema, preserve=preserve), _map_rules(schema, preserve=preserve))


def _map_rules(schema: Schema, *, preserve: bool) -> MapRules:
    return MapRules(schema, atomic=schema.map_type == "atomic", preserve=preserve)


def _list_rules(schema: Schema, *, preserve: bool) -> ListRules:
    atomic = True
    keys: tuple[str, ...] = ()
    match schema.raw.get("x-kubernetes-list-type"):
        case "set":
            atomic = False
        case "map":
            atomic, keys = False, schema.list_map_keys
        case None if "merge" in schema.patch_strategies:
            atomic, keys = False, () if schema.patch_merge_key is None else (schema.patch_merge_key,)
    return ListRules(schema, atomic=atomic, keys=keys, preserve=preserve)
