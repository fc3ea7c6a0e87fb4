"""Markers for the CustomResourceDefinition besides its schema: columns, selectable fields, scale, versions.

They are set on the class of a kind, `@marked(Column("Ready", ".status.ready"))`; `Column` and `Selectable` also on a
field, with its path and type.
"""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.api.markers.marker import SilentMarker

_COLUMN_TYPES = ("", "boolean", "date", "integer", "number", "string")


class Column(SilentMarker):
    """Printer column: `Annotated[int, Column("Replicas")]`, or on the class with its path.

    - `type`: defaults to that of the field.
    - `priority`: columns with a priority above 0 are shown only by `-o wide`. Defaults to 0.
    """

    __slots__ = ()

    def __init__(
        self,
        name: str = "",
        path: str = "",
        *,
        type: str = "",  # noqa: A002 - the word of the API
        format: str = "",  # noqa: A002
        description: str = "",
        priority: int = 0,
    ) -> None:
        if type not in _COLUMN_TYPES:
            raise ValueError(f"Column {name!r}: type is one of {', '.join(_COLUMN_TYPES[1:])}, not {type!r}")
        keywords = {"type": type, "format": format, "description": description, "priority": priority}
        positional = (name, _rooted(path)) if path else (name,) if name else ()
        super().__init__(*positional, **{word: value for word, value in keywords.items() if value})

    @property
    def name(self) -> str:
        return self.arguments[0] if self.arguments else ""

    @property
    def path(self) -> str:
        return self.arguments[1] if len(self.arguments) > 1 else ""


class Selectable(SilentMarker):
    """Selectable field: `kubectl get widgets --field-selector spec.color=blue`."""

    __slots__ = ()

    def __init__(self, path: str = "") -> None:
        super().__init__(*((_rooted(path),) if path else ()))

    @property
    def path(self) -> str:
        return self.arguments[0] if self.arguments else ""


class Scale(SilentMarker):
    """Scale subresource, for `kubectl scale` and autoscalers: paths of the replicas and of the selector of the Pods."""

    __slots__ = ()

    def __init__(self, spec: str, status: str, selector: str = "") -> None:
        super().__init__(_rooted(spec), _rooted(status), *((_rooted(selector),) if selector else ()))

    @property
    def paths(self) -> dict[str, str]:
        names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        return dict(zip(names, self.arguments, strict=False))


class NoStatus(SilentMarker):
    """No status subresource: the status is written with the rest of the object."""

    __slots__ = ()


class _OfOneClass(SilentMarker):
    """Base of markers that subclasses do not inherit."""

    __slots__ = ()
    inherited = False


class Stored(_OfOneClass):
    """The storage version. Needed on one of several versions."""

    __slots__ = ()


class Unserved(_OfOneClass):
    """The version is not served; stored objects may still have it."""

    __slots__ = ()


class Foreign(SilentMarker):
    """The definition of the kind is maintained elsewhere: no manifest is generated."""

    __slots__ = ()


class Deprecated(_OfOneClass):
    """The version is deprecated; clients get this warning, or the server's default."""

    __slots__ = ()

    def __init__(self, warning: str = "") -> None:
        super().__init__(*((warning,) if warning else ()))

    @property
    def warning(self) -> str:
        return self.arguments[0] if self.arguments else ""


class DefinitionMeta(SilentMarker):
    """Labels and annotations of the CustomResourceDefinition."""

    __slots__ = ()

    def __init__(
        self, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
    ) -> None:
        keywords = {"labels": labels, "annotations": annotations}
        super().__init__(**{word: dict(value) for word, value in keywords.items() if value})


def _rooted(path: str) -> str:
    """Return the path with a leading dot: `.spec.replicas` for `spec.replicas`."""
    return path if path.startswith(".") else f".{path}"
