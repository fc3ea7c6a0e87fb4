"""Charts as directories: what is read, what is ignored, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato.charts import ChartError, load_chart


def write(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_helmignore_leaves_out_files_and_directories(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "Chart.yaml": "name: x\nversion: 1.0.0\n",
            ".helmignore": "# comment\n*.bak\n/root.txt\nbuild/\na/?.txt\n",
            "a.bak": "",
            "deep/b.bak": "",
            "root.txt": "",
            "deep/root.txt": "kept",
            "build/x": "",
            "deep/build/x": "",
            "notes/build": "a file, kept",
            "a/1.txt": "",
            "a/12.txt": "kept",
            "templates/.hidden": "",
            "templates/kept.yaml": "",
        },
    )
    chart = load_chart(tmp_path)
    assert [each.name for each in chart.templates] == ["templates/kept.yaml"]
    assert [each.name for each in chart.files] == [".helmignore", "a/12.txt", "deep/root.txt", "notes/build"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"values.yaml": "a: 1"}, "Chart.yaml file is missing"),
        ({"Chart.yaml": "- a"}, "cannot load Chart.yaml: cannot unmarshal array"),
        ({"Chart.yaml": "name: x"}, "chart.metadata.version is required"),
        ({"Chart.yaml": "version: 1.0.0"}, "chart.metadata.name is required"),
        ({"Chart.yaml": "name: a/b\nversion: 1.0.0"}, 'chart.metadata.name "a/b" is invalid'),
        ({"Chart.yaml": "name: ..\nversion: 1.0.0"}, 'chart.metadata.name ".." is not allowed'),
        ({"Chart.yaml": "name: x\nversion: one"}, 'chart.metadata.version "one" is invalid'),
        ({"Chart.yaml": "name: x\nversion: 1.0.0\ntype: app"}, "type must be application or library"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0\nkeywords: {}"}, "into Go struct field Metadata.keywords of type"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0\ndependencies: [{name: a, alias: 'b c'}]"}, "disallowed characters"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0\ndependencies: [{name: a}, {name: a}]"}, "more than one dependency"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0", "values.yaml": "[]"}, "cannot load values.yaml"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0", "values.yaml": "a: b: c"}, "cannot load values.yaml"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0", ".helmignore": "**/x"}, "double-star"),
        ({"Chart.yaml": "name: x\nversion: 1.0.0", "charts/y/values.yaml": ""}, "error unpacking subchart y in x"),
    ],
)
def test_an_invalid_chart_is_refused_with_its_place_and_the_reason(
    files: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ChartError) as raised:
        load_chart(write(tmp_path, files))
    assert problem in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_loops_of_links_devices_and_missing_places_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "loop", {"Chart.yaml": "name: x\nversion: 1.0.0"})
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
    with pytest.raises(ChartError, match="symbolic link"):
        load_chart(tmp_path / "loop")
    write(tmp_path / "pipe", {"Chart.yaml": "name: x\nversion: 1.0.0"})
    os.mkfifo(tmp_path / "pipe" / "fifo")
    with pytest.raises(ChartError, match="cannot load irregular file"):
        load_chart(tmp_path / "pipe")
    with pytest.raises(ChartError, match="No such file"):
        load_chart(tmp_path / "nowhere")
