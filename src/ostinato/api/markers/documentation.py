"""Documentation for `kubectl explain` and editors."""

from __future__ import annotations

from typing import Any

from ostinato.api.markers.marker import Marker, TextMarker


class Doc(TextMarker):
    """Description; replaces the docstring."""

    __slots__ = ()
    word = "description"


class Title(TextMarker):
    """Short title."""

    __slots__ = ()
    word = "title"


class Example(Marker):
    """Example value, JSON-compatible."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        super().__init__(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"example": self.arguments[0]}


class ExternalDocs(Marker):
    """Link to external documentation."""

    __slots__ = ()

    def __init__(self, url: str, description: str = "") -> None:
        super().__init__(url, **({"description": description} if description else {}))

    @property
    def schema(self) -> dict[str, Any]:
        return {"externalDocs": {"url": self.arguments[0], **self.keywords}}
