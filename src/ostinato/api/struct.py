"""Structs: the base class of everything inside typed objects.

- Attributes are snake_case in Python and camelCase in JSON: `available_replicas` is `availableReplicas`. A trailing
  underscore, for names that are Python keywords, is dropped: `from_` is `from`. `msgspec.field(name="clusterIP")`
  overrides the name.
- Arguments are keyword-only. Only fields that were set are encoded, so that an apply owns those and no others: given
  `replicas: int = 1`, `PoolSpec(replicas=1)` is encoded with the field, `PoolSpec()` without it. An assignment sets a
  field, None unsets it. Parts of built-in kinds omit zero values, as in Go.
- `copy.replace` carries over which fields were set; `msgspec.structs.replace` does not.
- Defaults from a factory other than list, dict or set are encoded: `ready: bool = msgspec.field(default_factory=bool)`.
- A field that defaults to an empty struct (`status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)`) is
  omitted as long as nothing in it is set.
- `class Reference(Struct, atomic=True)` is replaced as a whole by server-side apply, never merged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import msgspec

_M = TypeVar("_M", bound="StructMeta")
_EMPTIES: dict[Any, Any] = {list: [], dict: {}, set: set()}  # defaults of the factories that msgspec omits
_FACTORY: Any = type(
    msgspec.defstruct("_", [("field", list[int], msgspec.field(default_factory=list))]).__struct_defaults__[0]
)
_NOT_DEFAULTS = (FunctionType, property, classmethod, staticmethod, type)


def wire_name(attribute: str) -> str:
    """Return the JSON name of an attribute: camelCase, without the trailing underscore of `from_`."""
    first, *rest = attribute.removesuffix("_").split("_")
    return first + "".join([part[:1].upper() + part[1:] for part in rest])


class StructMeta(msgspec.StructMeta):
    """Makes every subclass keyword-only; msgspec does not inherit that."""

    def __new__(  # noqa: PYI019 - Self cannot be used in a metaclass
        mcls: type[_M],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        atomic: bool = False,
        **config: Any,
    ) -> _M:
        config.setdefault("kw_only", True)
        records = namespace.get("__records__", any(getattr(base, "__records__", False) for base in bases[:1]))
        if records and any(_is_value(value) for key, value in namespace.items() if not key.startswith("__")):
            mcls = _recording(mcls)
            config.setdefault("omit_defaults", False)  # msgspec would omit fields that were set to their default
        created: Any = super().__new__(mcls, name, bases, namespace, **config)
        if isinstance(created, _Recording):
            created.__value_defaults__ = _value_defaults(created)
            created.__setattr__ = _set_field  # type: ignore[method-assign, assignment]
        if atomic:
            created.__atomic__ = True
        return created  # type: ignore[no-any-return]

    __atomic__: bool
    __value_defaults__: Mapping[str, Any]


def _is_value(default: Any) -> bool:
    """Whether what stands in a class body may be the default of a field, other than None or a struct."""
    if type(default) is type(msgspec.field()):
        if default.default_factory is not msgspec.NODEFAULT:
            return default.default_factory in _EMPTIES
        default = default.default
    return (
        default is not None and default not in (msgspec.NODEFAULT, msgspec.UNSET) and type(default) not in _NOT_DEFAULTS
    )


def _value_defaults(cls: Any) -> dict[str, Any]:
    """Return the defaults of the fields that are encoded only if they were set; None is one of them."""
    # Not msgspec.structs.fields(): it resolves annotations, which may name classes that follow in the module.
    fields, defaults = cls.__struct_fields__, cls.__struct_defaults__
    found: dict[str, Any] = {}
    for name, default in zip(fields[len(fields) - len(defaults) :], defaults, strict=True):
        if type(default) is not _FACTORY:
            if default is not msgspec.NODEFAULT:
                found[name] = default
        elif default.factory in _EMPTIES:
            found[name] = _EMPTIES[default.factory]
    return found


class _Recording(type):
    """Metaclass mixin: records which fields were set to their default."""

    __value_defaults__: Mapping[str, Any]

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        created = super().__call__(*args, **fields)
        defaults = cls.__value_defaults__
        explicit = {name for name, value in fields.items() if _is_set_to(value, defaults.get(name))}
        if explicit:
            created.__explicit__ = explicit
        return created


_variants: dict[Any, Any] = {}  # recording variants of metaclasses


def _recording(mcls: Any) -> Any:  # Any: a metaclass
    if issubclass(mcls, _Recording):
        return mcls
    if mcls not in _variants:
        _variants[mcls] = type(f"Recording{mcls.__name__}", (_Recording, mcls), {})
    return _variants[mcls]


def is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _is_set_to(value: Any, default: Any) -> bool:
    """Whether a given value has to be recorded. None unsets a field; so does b"", which is not valid base64."""
    return value is not None and value != b"" and is_default(value, default)


class _Origin:
    """Slots beside the fields: the JSON of a decoded object, and the fields that were set to their default."""

    __slots__ = ("__explicit__", "__origin__")
    __explicit__: set[str]
    __origin__: bytes


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(
    msgspec.Struct, _Origin, metaclass=StructMeta, omit_defaults=True, repr_omit_defaults=True, rename=wire_name
):
    """Base class of everything inside an object."""

    __atomic__: ClassVar[bool] = False
    __records__: ClassVar[bool] = True  # whether subclasses record which fields were set
    __value_defaults__: ClassVar[Mapping[str, Any]] = {}  # only of classes with other defaults than None

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, atomic: bool = False, **config: Any) -> None: ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Several times faster than the default: structs are trees, and most leaves are immutable."""
        changes = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) not in _IMMUTABLE:
                changes[name] = _deep_copy(value, memo)
        return _with_same_explicit(self, msgspec.structs.replace(self, **changes))

    def __copy__(self) -> Self:
        return self.__replace__()

    def __replace__(self, **changes: Any) -> Self:
        """For `copy.replace`."""
        duplicate = _with_same_explicit(self, msgspec.structs.replace(self, **changes))
        for name, value in changes.items():
            record_explicit(duplicate, name, value)
        return duplicate


class BuiltinStruct(Struct):
    """Base class of the parts of built-in kinds: defaults are Go's zero values, which are never encoded."""

    __records__: ClassVar[bool] = False


def record_explicit(struct: Struct, name: str, value: Any) -> None:
    """Record that a field was set, if its value alone does not tell."""
    defaults = struct.__value_defaults__
    if name in defaults:
        explicit: set[str] = getattr(struct, "__explicit__", None) or set()
        explicit = explicit | {name} if _is_set_to(value, defaults[name]) else explicit - {name}
        msgspec.Struct.__setattr__(struct, "__explicit__", explicit)


def record_given(struct: Any, given: Any) -> None:
    """Record the fields that a decoded dict has, at all levels: those with their default value are encoded again."""
    if isinstance(struct, Struct) and isinstance(given, Mapping):
        if struct.__records__:
            for name, wire in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
                if wire in given:
                    value = getattr(struct, name)
                    record_explicit(struct, name, value)
                    record_given(value, given[wire])
    elif isinstance(struct, list) and isinstance(given, list) and len(struct) == len(given):
        for value, its in zip(struct, given, strict=True):
            record_given(value, its)
    elif isinstance(struct, dict) and isinstance(given, Mapping):
        for key, value in struct.items():
            record_given(value, given.get(key))


_S = TypeVar("_S", bound=Struct)


def _set_field(struct: Any, name: str, value: Any) -> None:
    """`__setattr__` of classes with defaults other than None."""
    msgspec.Struct.__setattr__(struct, name, value)
    record_explicit(struct, name, value)


def _with_same_explicit(struct: _S, duplicate: _S) -> _S:
    explicit = getattr(struct, "__explicit__", None)
    if explicit:
        duplicate.__explicit__ = explicit
    return duplicate


_IMMUTABLE = frozenset({str, int, bool, float, bytes, type(None)})


def _deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if kind is list:
        return [_deep_copy(item, memo) for item in value]
    if kind is dict:
        return {key: _deep_copy(item, memo) for key, item in value.items()}
    return copy.deepcopy(value, memo)
