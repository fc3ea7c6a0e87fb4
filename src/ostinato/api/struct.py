"""Structs: the base class of everything inside typed objects.

- Attributes are snake_case in Python and camelCase in JSON: `available_replicas` is `availableReplicas`. A trailing
  underscore, for names that are Python keywords, is dropped: `from_` is `from`. `msgspec.field(name="clusterIP")`
  overrides the name.
- Arguments are keyword-only. Fields with their default value are not encoded, so that an apply owns only the fields
  that were set. Defaults from a factory are encoded: `ready: bool = msgspec.field(default_factory=bool)`.
- A field that defaults to an empty struct (`status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)`) is
  omitted as long as nothing in it is set.
- `class Reference(Struct, atomic=True)` is replaced as a whole by server-side apply, never merged.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import msgspec

_M = TypeVar("_M", bound="StructMeta")


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
        created = super().__new__(mcls, name, bases, namespace, **config)
        if atomic:
            created.__atomic__ = True
        return created

    __atomic__: bool


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, metaclass=StructMeta, omit_defaults=True, repr_omit_defaults=True, rename=wire_name):
    """Base class of everything inside an object."""

    __atomic__: ClassVar[bool] = False

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, atomic: bool = False, **config: Any) -> None: ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Several times faster than the default: structs are trees, and most leaves are immutable."""
        changes = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) not in _IMMUTABLE:
                changes[name] = _deep_copy(value, memo)
        return msgspec.structs.replace(self, **changes)


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
