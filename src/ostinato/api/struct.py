"""Structs: the classes that typed objects are made of.

- Attributes are snake_case in Python and camelCase on the wire: `available_replicas` is `availableReplicas`. A trailing
  underscore, which keeps a name off Python's keywords, is dropped: `from_` is `from`. `msgspec.field(name="clusterIP")`
  says otherwise where the rule does not give the wire name.
- Fields are given by keyword. What has its default is not written, so that applying an object claims only what was
  said. To have a default written, make it by a factory: `ready: bool = msgspec.field(default_factory=bool)`.
- A field that defaults to an empty struct (`status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)`) is
  left out as long as nothing in it is set.
- `class Reference(Struct, atomic=True)` is replaced as a whole by server-side apply, never merged.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import msgspec

_M = TypeVar("_M", bound="StructMeta")


def wire_name(attribute: str) -> str:
    """The name on the wire of an attribute: camelCase, without the trailing underscore of `from_`."""
    first, *rest = attribute.removesuffix("_").split("_")
    return first + "".join([part[:1].upper() + part[1:] for part in rest])


class StructMeta(msgspec.StructMeta):
    """Makes every subclass keyword-only, which msgspec does not hand down by itself."""

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
    """The base of everything that stands inside an object."""

    __atomic__: ClassVar[bool] = False

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, atomic: bool = False, **config: Any) -> None: ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Several times faster than the general way: structs are trees, and most leaves cannot change."""
        changes = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) not in _UNCHANGING:
                changes[name] = _deep_copy(value, memo)
        return msgspec.structs.replace(self, **changes)


_UNCHANGING = frozenset({str, int, bool, float, bytes, type(None)})


def _deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is list:
        return [_deep_copy(item, memo) for item in value]
    if kind is dict:
        return {key: _deep_copy(item, memo) for key, item in value.items()}
    return copy.deepcopy(value, memo)
