"""Objects: a Python class per kind.

    class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
        spec: WidgetSpec
        status: WidgetStatus | None = None

- Group, version, resource, scope and other names of the kind are class data, `kind_of(Widget)`. `apiVersion` and
  `kind` are not fields, so that an object never lacks them.
- A decoded object keeps its JSON (`origin`), so that an update preserves the fields that its class does not know.
  Copies keep it too. It is neither compared nor encoded.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import msgspec

from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.meta import ListMeta, ObjectMeta
from ostinato.api.struct import BuiltinStruct, StructMeta

_M = TypeVar("_M", bound="ObjectMetaclass")


class KindInfo(msgspec.Struct, frozen=True, cache_hash=True):
    """Names and scope of a kind. `plural` is "" for kinds without a resource, such as Eviction."""

    gvk: GroupVersionKind
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.gvk.group, self.gvk.version, self.plural)


def plural_of(kind: str) -> str:
    """Return the default resource name of a kind, by the rules of controller-gen.

    "Proxy" is "proxies", "Gateway" is "gateways", "Ingress" is "ingresses" and "Mesh" is "meshes".
    """
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith(("s", "x", "ch", "sh")):
        return singular + "es"
    if singular.endswith("y") and not singular.endswith(("ay", "ey", "oy", "uy")):
        return singular[:-1] + "ies"
    return singular + "s"


_KIND_KEYWORDS = (
    "group",
    "version",
    "kind",
    "plural",
    "singular",
    "namespaced",
    "short_names",
    "categories",
    "list_kind",
    "atomic",
)
_STRUCT_KEYWORDS = {*inspect.signature(msgspec.defstruct).parameters, "atomic"} - {
    *("name", "fields", "bases", "module", "namespace")  # not keywords of a class
}


class ObjectMetaclass(StructMeta):
    """Sets `__kind__` from the class keywords."""

    __kind__: KindInfo | None

    def __new__(  # noqa: PYI019 - Self cannot be used in a metaclass
        mcls: type[_M],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        version: str | None = None,
        group: str = "",
        kind: str = "",
        plural: str | None = None,
        singular: str = "",
        namespaced: bool = True,
        short_names: Iterable[str] = (),
        categories: Iterable[str] = (),
        list_kind: str = "",
        **config: Any,
    ) -> _M:
        if unknown := sorted(config.keys() - _STRUCT_KEYWORDS):
            raise TypeError(f"class {name}: unknown keyword {unknown[0]!r}; keywords are {', '.join(_KIND_KEYWORDS)}")
        created = super().__new__(mcls, name, bases, namespace, **config)
        if taken := {"apiVersion", "kind"}.intersection(created.__struct_encode_fields__):
            raise TypeError(f"class {name}: {taken.pop()} cannot be a field; it follows from the class keywords")
        if version is not None:
            kind = kind or name
            created.__kind__ = KindInfo(
                gvk=GroupVersionKind(group, version, kind),
                plural=plural_of(kind) if plural is None else plural,
                singular=singular or kind.lower(),
                namespaced=namespaced,
                short_names=_texts("short_names", short_names),
                categories=_texts("categories", categories),
                list_kind=list_kind or kind + "List",
            )
        elif group or kind or plural or short_names or categories:
            raise TypeError(f"class {name}: a kind needs a version; add e.g. version='v1'")
        return created


def _texts(keyword: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"{keyword}: expected a list of names, got the string {given!r}")
    return tuple(given)


class Object(BuiltinStruct, metaclass=ObjectMetaclass):
    """Base class of all kinds."""

    __kind__: ClassVar[KindInfo | None] = None  # set in every class with a version

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            version: str | None = None,
            group: str = "",
            kind: str = "",
            plural: str | None = None,
            singular: str = "",
            namespaced: bool = True,
            short_names: Iterable[str] = (),
            categories: Iterable[str] = (),
            list_kind: str = "",
            atomic: bool = False,
            **config: Any,
        ) -> None: ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_same_origin(super().__deepcopy__(memo))

    def __replace__(self, **changes: Any) -> Self:
        """For `copy.replace`. `msgspec.structs.replace` drops the origin."""
        return self._with_same_origin(super().__replace__(**changes))

    def _with_same_origin(self, duplicate: Self) -> Self:
        data = origin(self)
        if data is not None:
            duplicate.__origin__ = data
        return duplicate


class CustomResource(Object):
    """Base class of custom kinds: `class Widget(CustomResource, group="example.dev", version="v1")`.

    - `plural`: defaults to `plural_of(kind)`: "widgets".
    - `namespaced`: defaults to True.
    """

    __records__: ClassVar[bool] = True


T = TypeVar("T", bound=Object)


class ObjectList(BuiltinStruct, Generic[T]):
    """A list response; a watch continues from `metadata.resource_version`."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] = msgspec.field(default_factory=list)


def kind_of(kind: type[Object] | Object) -> KindInfo:
    """Return names and scope of a kind. Raises TypeError for a class without a version."""
    info = kind.__kind__
    if info is None:
        cls = kind if isinstance(kind, type) else type(kind)
        raise TypeError(f"class {cls.__name__} is not a kind: it has no version; add e.g. version='v1'")
    return info


def origin(instance: Object) -> bytes | None:
    """Return the JSON that the object was decoded from; None if it was not decoded."""
    return getattr(instance, "__origin__", None)


def set_origin(instance: T, data: bytes) -> T:
    """Set the JSON of the object as the server sent it."""
    instance.__origin__ = data
    return instance
