"""A chart: metadata, templates, default values and other files, and the charts that it contains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ostinato.charts.metadata import Metadata

_MANIFESTS: Final = (".yaml", ".yml", ".json")


class ChartError(Exception):
    """A chart cannot be loaded or rendered; the message names the chart, the file and the reason, as Helm does."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a chart: its path below the chart's directory, and its contents."""

    name: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


@dataclass(slots=True)
class Chart:
    """A chart as its files say it; `dependencies.resolve` makes of it the one that a set of values asks for."""

    metadata: Metadata
    templates: list[File] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    schema: bytes | None = None  # values.schema.json
    files: list[File] = field(default_factory=list)  # neither templates nor read by Helm: `.Files`
    dependencies: list[Chart] = field(default_factory=list)
    parent: Chart | None = None

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def full_path(self) -> str:
        """Path of the chart in the names of templates: `parent/charts/child`."""
        return f"{self.parent.full_path}/charts/{self.name}" if self.parent is not None else self.name

    @property
    def is_library(self) -> bool:
        return self.metadata.type.casefold() == "library"

    def adopt(self, dependencies: list[Chart]) -> None:
        """Replace the charts that this one contains."""
        self.dependencies = dependencies
        for each in dependencies:
            each.parent = self

    def copy(self) -> Chart:
        """Return a chart with metadata and dependencies of its own; files are shared, and the default values too."""
        made = replace(self, metadata=self.metadata.copy(), parent=None)
        made.adopt([each.copy() for each in self.dependencies])
        return made

    def crds(self) -> Iterator[tuple[str, File]]:
        """Iterate over the files of `crds/`, with their full paths; those of dependencies last."""
        for each in self.files:
            if each.name.startswith("crds/") and each.name.lower().endswith(_MANIFESTS):
                yield f"{self.full_path}/{each.name}", each
        for dependency in self.dependencies:
            yield from dependency.crds()
