"""Base classes of markers, and the `marked` decorator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

T = TypeVar("T", bound=type)

_ADDED_UP = "x-kubernetes-validations"
_JOINED = "x-kubernetes-patch-strategy"
_EXCLUSIVE = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}  # reset by a later bound


class Marker:
    """Base class of markers. Other metadata in `Annotated` is ignored. Immutable, equal by arguments.

    `repr` is the source form; `keywords` are the keyword arguments that differ from their defaults.
    """

    __slots__ = ("arguments", "keywords")

    types: ClassVar[frozenset[str]] = frozenset()  # JSON types that it applies to; all if empty
    inherited: ClassVar[bool] = True  # whether subclasses inherit it

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.arguments = arguments
        self.keywords = keywords

    @property
    def schema(self) -> dict[str, Any]:
        """OpenAPI keywords of the marker, for any type."""
        raise NotImplementedError

    def schema_for(self, json_type: str) -> dict[str, Any]:  # noqa: ARG002 - for those that depend on the type
        """Return the OpenAPI keywords for a value of this JSON type."""
        return self.schema

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Marker) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))  # arguments may be lists or dicts

    def __repr__(self) -> str:
        positional = [repr(each) for each in self.arguments]
        return f"{type(self).__name__}({', '.join(positional + [f'{k}={v!r}' for k, v in self.keywords.items()])})"

    @property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.arguments, self.keywords


class TextMarker(Marker):
    """Marker with a string."""

    __slots__ = ()
    word: ClassVar[str]  # OpenAPI keyword

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text:
            raise TypeError(f"{type(self).__name__} needs a string, got {text!r}")
        super().__init__(text)

    @property
    def text(self) -> str:
        return str(self.arguments[0])

    @property
    def schema(self) -> dict[str, Any]:
        return {self.word: self.text}


class SilentMarker(Marker):
    """Marker without OpenAPI keywords; the schema generator evaluates it."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {}


def combined_schema(markers: Iterable[Marker]) -> dict[str, Any]:
    """Return the OpenAPI keywords of several markers; rules and patch strategies accumulate."""
    combined: dict[str, Any] = {}
    for marker in markers:
        add_to(combined, marker.schema)
    return combined


def add_to(schema: dict[str, Any], addition: dict[str, Any]) -> None:
    """Add the keywords of a marker to a schema, in place."""
    for name, value in addition.items():
        if name == _JOINED and name in schema:
            schema[name] = ",".join(sorted((schema[name], value)))
        elif name == _ADDED_UP and name in schema:
            schema[name] = [*schema[name], *value]
        else:
            schema[name] = value
            schema.pop(_EXCLUSIVE.get(name, ""), None)


def marked(*markers: Marker) -> Callable[[T], T]:
    """Set markers of a class: `@marked(Rule("self.min <= self.max"))`."""
    for marker in list[Any](markers):
        if not isinstance(marker, Marker):
            hint = f": write {marker.__name__}(...)" if isinstance(marker, type) and issubclass(marker, Marker) else ""
            raise TypeError(f"marked() takes markers, got {marker!r}{hint}")

    def mark(cls: T) -> T:
        cls.__markers__ = (*markers, *cls.__dict__.get("__markers__", ()))  # type: ignore[attr-defined]
        return cls

    return mark


def markers_on(cls: type) -> tuple[Marker, ...]:
    """Return the markers of a class, after the inherited ones."""
    found: list[Marker] = []
    for base in reversed(cls.__mro__):
        own: tuple[Marker, ...] = base.__dict__.get("__markers__", ())
        found += [marker for marker in own if base is cls or marker.inherited]
    return tuple(found)
