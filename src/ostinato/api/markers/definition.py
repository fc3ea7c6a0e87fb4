"""What a kind's definition says beside its schema: columns, fields to select by, scale, versions.

They stand on the class of a kind, `@marked(Column("Ready", ".status.ready"))`; `Column` and `Selectable` also on a
field, whose path and type they then have.
"""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.api.markers.marker import SilentMarker

_COLUMN_TYPES = ("", "boolean", "date", "integer", "number", "string")


class Column(SilentMarker):
    """A column of `kubectl get`: `Annotated[int, Column("Replicas")]`, or with its path on the class.

    The type is that of the field. Columns with a priority above 0 are shown by `-o wide` alone.
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
        said = {"type": type, "format": format, "description": description, "priority": priority}
        positional = (name, _rooted(path)) if path else (name,) if name else ()
        super().__init__(*positional, **{word: value for word, value in said.items() if value})

    @property
    def name(self) -> str:
        return self.arguments[0] if self.arguments else ""

    @property
    def path(self) -> str:
        return self.arguments[1] if len(self.arguments) > 1 else ""


class Selectable(SilentMarker):
    """Objects can be selected by the field: `kubectl get widgets --field-selector spec.color=blue`."""

    __slots__ = ()

    def __init__(self, path: str = "") -> None:
        super().__init__(*((_rooted(path),) if path else ()))

    @property
    def path(self) -> str:
        return self.arguments[0] if self.arguments else ""


class Scale(SilentMarker):
    """`kubectl scale` and autoscalers work: where the replicas are, and a text with the selector of the Pods."""

    __slots__ = ()

    def __init__(self, spec: str, status: str, selector: str = "") -> None:
        super().__init__(_rooted(spec), _rooted(status), *((_rooted(selector),) if selector else ()))

    @property
    def paths(self) -> dict[str, str]:
        names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        return dict(zip(names, self.arguments, strict=False))


class NoStatus(SilentMarker):
    """The status is written with the rest of the object, and has no subresource."""

    __slots__ = ()


class _OfOneClass(SilentMarker):
    """Not for classes that derive from the one that says it."""

    __slots__ = ()
    inherited = False


class Stored(_OfOneClass):
    """The version in which objects are kept. One of several versions must say so."""

    __slots__ = ()


class Unserved(_OfOneClass):
    """The version is not served: objects are still kept in it, and nobody can ask for them in it."""

    __slots__ = ()


class Foreign(SilentMarker):
    """The kind is somebody else's, and so is its definition: no manifest is written of it."""

    __slots__ = ()


class Deprecated(_OfOneClass):
    """Whoever uses the version is warned, in these words or in the server's own."""

    __slots__ = ()

    def __init__(self, warning: str = "") -> None:
        super().__init__(*((warning,) if warning else ()))

    @property
    def warning(self) -> str:
        return self.arguments[0] if self.arguments else ""


class DefinitionMeta(SilentMarker):
    """Labels and annotations of the definition itself."""

    __slots__ = ()

    def __init__(
        self, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
    ) -> None:
        said = {"labels": labels, "annotations": annotations}
        super().__init__(**{word: dict(value) for word, value in said.items() if value})


def _rooted(path: str) -> str:
    """Paths begin with a dot; `spec.replicas` is taken for `.spec.replicas`."""
    return path if path.startswith(".") else f".{path}"
