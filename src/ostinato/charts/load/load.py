"""A chart from its files: which of them are metadata, values, templates, charts, and the rest."""

from __future__ import annotations

from pathlib import Path

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.charts.chart import Chart, ChartError, File
from ostinato.charts.load.archive import archive_files
from ostinato.charts.load.directory import directory_files
from ostinato.charts.metadata import Metadata, MetadataError
from ostinato.charts.values.documents import read_values


def load_chart(place: Path | str) -> Chart:
    """Load the chart in a directory or a `.tgz` archive. Raises ChartError."""
    path = Path(place)
    try:
        if path.is_dir():
            return load_files(directory_files(path))
        return load_files(archive_files(path.read_bytes(), str(place)))
    except ChartError as error:
        raise ChartError(f"{place}: {error}") from None
    except OSError as error:
        raise ChartError(f"{place}: {error.strerror or error}") from None


def load_files(files: list[File]) -> Chart:
    """Make a chart of its files. Raises ChartError."""
    metadata: Metadata | None = None
    for each in files:
        if each.name == "Chart.yaml":
            metadata = metadata or Metadata()
            _update(metadata, each)
            metadata.api_version = metadata.api_version or "v1"
    if metadata is None:
        raise ChartError("Chart.yaml file is missing")
    chart = Chart(metadata)
    contained: dict[str, list[File]] = {}
    for each in files:
        _place(chart, each, contained)
    try:
        metadata.validate()
    except MetadataError as error:
        raise ChartError(str(error)) from None
    # Helm's order of contained charts is that of a Go map, at random; by name it is the same each time.
    chart.adopt([_contained(chart, name, contained[name]) for name in sorted(contained) if name[0] not in "_."])
    return chart


def _place(chart: Chart, file: File, contained: dict[str, list[File]]) -> None:
    match file.name:
        case "Chart.yaml" | "Chart.lock":
            pass
        case "values.yaml":
            chart.values = read_values(file.data, "values.yaml")
        case "values.schema.json":
            chart.schema = file.data
        case "requirements.yaml" | "requirements.lock":
            if file.name == "requirements.yaml":
                _update(chart.metadata, file)
            if chart.metadata.api_version == "v1":
                chart.files.append(file)
        case name if name.startswith("templates/"):
            chart.templates.append(file)
        case name if name.startswith("charts/") and not name.endswith(".prov"):
            inner = name.removeprefix("charts/")
            contained.setdefault(inner.partition("/")[0], []).append(File(inner, file.data))
        case _:
            chart.files.append(file)


def _contained(chart: Chart, name: str, files: list[File]) -> Chart:
    try:
        if name.endswith(".tgz"):
            if files[0].name != name:
                raise ChartError(f"error unpacking subchart tar in {chart.name}: expected {name}, got {files[0].name}")
            return load_files(archive_files(files[0].data, name))
        return load_files([File(path, each.data) for each in files if (path := each.name.partition("/")[2])])
    except ChartError as error:
        raise ChartError(f"error unpacking subchart {name} in {chart.name}: {error}") from None


def _update(metadata: Metadata, file: File) -> None:
    try:
        metadata.update(decode_yaml(file.data))
    except (MetadataError, DecodeError) as error:
        raise ChartError(f"cannot load {file.name}: {error}") from None
