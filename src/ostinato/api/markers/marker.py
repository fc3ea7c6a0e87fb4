"""What a marker is, and how markers are put on classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

T = TypeVar("T", bound=type)

_ADDED_UP = "x-kubernetes-validations"
_JOINED = "x-kubernetes-patch-strategy"
_ANEW = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}  # a later bound says anew whether it counts


class Marker:
    """The base of all markers; other metadata in `Annotated` is passed over. Immutable, equal by what it says.

    It prints as it is written. `keywords` has only those that are not at their default.
    """

    __slots__ = ("arguments", "keywords")

    types: ClassVar[frozenset[str]] = frozenset()  # the JSON types that it is for, all if empty
    inherited: ClassVar[bool] = True  # whether a class has it from its bases

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.arguments = arguments
        self.keywords = keywords

    @property
    def schema(self) -> dict[str, Any]:
        """What the marker adds to the OpenAPI schema, whatever the type."""
        raise NotImplementedError

    def schema_for(self, json_type: str) -> dict[str, Any]:  # noqa: ARG002 - for those that depend on the type
        """What it adds to the schema of a value of this JSON type."""
        return self.schema

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Marker) and self._said == other._said

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))  # what it says may be a list or a dict

    def __repr__(self) -> str:
        positional = [repr(each) for each in self.arguments]
        return f"{type(self).__name__}({', '.join(positional + [f'{k}={v!r}' for k, v in self.keywords.items()])})"

    @property
    def _said(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.arguments, self.keywords


class TextMarker(Marker):
    """A marker with one text."""

    __slots__ = ()
    word: ClassVar[str]  # of the schema

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text:
            raise TypeError(f"{type(self).__name__} needs a text, got {text!r}")
        super().__init__(text)

    @property
    def text(self) -> str:
        return str(self.arguments[0])

    @property
    def schema(self) -> dict[str, Any]:
        return {self.word: self.text}


class SilentMarker(Marker):
    """A marker that adds nothing to a schema by itself: whoever makes the schema reads it."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {}


def combined_schema(markers: Iterable[Marker]) -> dict[str, Any]:
    """The OpenAPI form of several markers: rules and the strategies of strategic merge patch add up."""
    combined: dict[str, Any] = {}
    for marker in markers:
        add_to(combined, marker.schema)
    return combined


def add_to(schema: dict[str, Any], addition: dict[str, Any]) -> None:
    """Add what one marker says to a schema, in place."""
    for name, value in addition.items():
        if name == _JOINED and name in schema:
            schema[name] = ",".join(sorted((schema[name], value)))
        elif name == _ADDED_UP and name in schema:
            schema[name] = [*schema[name], *value]
        else:
            schema[name] = value
            schema.pop(_ANEW.get(name, ""), None)


def marked(*markers: Marker) -> Callable[[T], T]:
    """Put markers on a class, struct or kind: `@marked(Rule("self.min <= self.max"))`."""
    for marker in list[Any](markers):
        if not isinstance(marker, Marker):
            hint = f": write {marker.__name__}(...)" if isinstance(marker, type) and issubclass(marker, Marker) else ""
            raise TypeError(f"marked() takes markers, got {marker!r}{hint}")

    def mark(cls: T) -> T:
        cls.__markers__ = (*markers, *cls.__dict__.get("__markers__", ()))  # type: ignore[attr-defined]
        return cls

    return mark


def markers_on(cls: type) -> tuple[Marker, ...]:
    """The markers of a class: those of its bases first, but for what is said of one class alone."""
    found: list[Marker] = []
    for base in reversed(cls.__mro__):
        said: tuple[Marker, ...] = base.__dict__.get("__markers__", ())
        found += [marker for marker in said if base is cls or marker.inherited]
    return tuple(found)
