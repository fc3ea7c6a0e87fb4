"""Archives of charts are not trusted."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from ostinato.charts import ChartError, load_chart
from ostinato.charts.load.archive import archive_files


def archive(files: dict[str, bytes], kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            entry.size = len(data) if kind == tarfile.REGTYPE else 0
            made.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def test_an_archive_is_loaded_with_the_charts_that_it_contains(tmp_path: Path) -> None:
    child = archive({"child/Chart.yaml": b"name: child\nversion: 1.0.0\n", "child/values.yaml": b"\xef\xbb\xbfa: 1\n"})
    data = archive(
        {
            "shop/Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.2.3\n",
            "shop/templates/x.yaml": b"a: b\n",
            "shop/charts/child-1.0.0.tgz": child,
            "shop/charts/child-1.0.0.tgz.prov": b"signature",
            "shop/README.md": b"read me",
        }
    )
    (tmp_path / "shop.tgz").write_bytes(data)
    chart = load_chart(tmp_path / "shop.tgz")
    assert (chart.name, chart.metadata.version) == ("shop", "1.2.3")
    assert [each.name for each in chart.templates] == ["templates/x.yaml"]
    assert [each.name for each in chart.dependencies] == ["child"]
    assert chart.dependencies[0].values == {"a": 1.0}
    assert chart.dependencies[0].full_path == "shop/charts/child"
    assert [each.name for each in chart.files] == ["charts/child-1.0.0.tgz.prov", "README.md"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("shop/../../etc/passwd", "chart illegally references parent directory"),
        ("shop/..", "chart illegally references parent directory"),
        ("shop//etc/passwd", "chart illegally contains absolute paths"),
        ("shop/c:/windows", "chart contains illegally named files"),
        ("shop\\..\\..\\x", "chart illegally references parent directory"),
        ("Chart.yaml", "chart illegally contains content outside the base directory"),
        ("shop/.", "chart illegally contains content outside the base directory"),
        ("Chart.yaml/x", "chart yaml not in base directory"),
    ],
)
def test_names_outside_the_chart_are_refused(name: str, problem: str) -> None:
    with pytest.raises(ChartError, match=problem):
        archive_files(archive({name: b"x"}), "x.tgz")


def test_links_have_no_contents() -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        files = archive_files(archive({"shop/values.yaml": b""}, kind, "/etc/passwd"), "x.tgz")
        assert [(each.name, each.data) for each in files] == [("values.yaml", b"")]


def test_large_files_and_bombs_are_refused_without_being_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.charts.load.archive.MAX_FILE", 50_000)
    monkeypatch.setattr("ostinato.charts.load.archive.MAX_CHART", 1_000_000)
    with pytest.raises(ChartError, match="larger than the maximum file size 50000"):
        archive_files(archive({"shop/big": bytes(50_001)}), "x.tgz")
    with pytest.raises(ChartError, match="larger than the maximum file size 1000000"):
        archive_files(archive({f"shop/{number}": bytes(50_000) for number in range(21)}), "x.tgz")
    entries = gzip.decompress(archive({"shop/a": b"x"}))[:1024]
    with pytest.raises(ChartError, match="larger than the maximum file size 1000000"):
        archive_files(gzip.compress(entries * 3000), "x.tgz")  # small files, large headers


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is not a gzipped archive"),
        (b"name: x", "is not a gzipped archive"),
        (b"\x1f\x8b\x08garbage", "is not a valid chart archive"),
        (gzip.compress(b"not a tar" * 100), "is not a valid chart archive"),
        (archive({"shop/Chart.yaml": b"name: x" * 500})[:60], "is not a valid chart archive"),
    ],
    ids=["empty", "text", "garbage", "not a tar", "cut"],  # the data has the time
)
def test_what_is_no_archive_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ChartError, match=problem):
        archive_files(data, "x.tgz")


def test_a_yaml_file_in_the_place_of_an_archive_is_named() -> None:
    with pytest.raises(ChartError, match="seems to be a YAML file"):
        archive_files(b"name: x", "values.yaml")
