"""Objects: a Python class per kind.

    class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
        spec: WidgetSpec
        status: WidgetStatus | None = None

- What a class says of its kind (group, version, resource, scope, other names) is class data, `kind_of(Widget)`, and
  never empty: `apiVersion` and `kind` are no fields, and an object cannot have lost them.
- An object that was read remembers the JSON it came from (`origin`), so that a later update keeps what its class does
  not know. Copies remember it too. It takes no part in comparisons and is never written by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import msgspec

from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.meta import ListMeta, ObjectMeta
from ostinato.api.struct import Struct, StructMeta

_M = TypeVar("_M", bound="ObjectMetaclass")


class KindInfo(msgspec.Struct, frozen=True, cache_hash=True):
    """What the server is told about a kind. `plural` is "" for kinds that are sent but have no resource (Eviction)."""

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
    """The resource name that a kind has if nobody says otherwise, as the tools that make definitions have it.

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


class ObjectMetaclass(StructMeta):
    """Takes what a class says of its kind from the class keywords."""

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
        created = super().__new__(mcls, name, bases, namespace, **config)
        if taken := {"apiVersion", "kind"}.intersection(created.__struct_encode_fields__):
            raise TypeError(f"class {name}: {taken.pop()} is said by the class, it cannot be a field")
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
            raise TypeError(f"class {name}: a kind needs a version, e.g. version='v1'")
        return created


def _texts(keyword: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"{keyword} is a list of names, got the text {given!r}")
    return tuple(given)


class _Remembering:
    """Room for the JSON an object came from, beside its fields."""

    __slots__ = ("__origin__",)
    __origin__: bytes


class Object(Struct, _Remembering, metaclass=ObjectMetaclass):
    """The base of all kinds."""

    __kind__: ClassVar[KindInfo | None] = None  # set in every class that names a version

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

    def __copy__(self) -> Self:
        return self.__replace__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._remembering(super().__deepcopy__(memo))

    def __replace__(self, **changes: Any) -> Self:
        """`copy.replace`. `msgspec.structs.replace` works as well, but forgets the origin."""
        return self._remembering(msgspec.structs.replace(self, **changes))

    def _remembering(self, duplicate: Self) -> Self:
        data = origin(self)
        if data is not None:
            duplicate.__origin__ = data
        return duplicate


class CustomResource(Object):
    """The base of users' kinds: `class Widget(CustomResource, group="example.dev", version="v1")`.

    Unless said otherwise, the plural is the lower-case kind with an "s" (or as `plural_of` has it) in a namespace.
    """


T = TypeVar("T", bound=Object)


class ObjectList(Struct, Generic[T]):
    """Objects of one kind as a LIST answers them; `metadata.resource_version` is where a watch goes on."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] = msgspec.field(default_factory=list)


def kind_of(kind: type[Object] | Object) -> KindInfo:
    """What a class says of its kind; a TypeError for a class that names no version."""
    info = kind.__kind__
    if info is None:
        cls = kind if isinstance(kind, type) else type(kind)
        raise TypeError(f"class {cls.__name__} is no kind: it names no version, e.g. version='v1'")
    return info


def origin(instance: Object) -> bytes | None:
    """The JSON that the object was read from; None if it was made here."""
    return getattr(instance, "__origin__", None)


def remember(instance: T, data: bytes) -> T:
    """Keep the JSON that the object was read from, or written to and answered."""
    instance.__origin__ = data
    return instance
