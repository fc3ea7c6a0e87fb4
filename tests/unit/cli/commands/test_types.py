"""`ostinato types`: classes generated from definitions."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from ostinato.cli.app import run

DATA = Path(__file__).parents[3] / "data" / "crd"


def test_classes_are_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = (DATA / "kettle.py.txt").read_text()
    assert run(["types", str(DATA / "kettle.yaml")]) == 0
    assert capsys.readouterr().out == expected
    assert run(["types", str(DATA / "kettle.yaml"), "-o", str(tmp_path / "kettle.py")]) == 0
    assert (tmp_path / "kettle.py").read_text() == expected


def test_version_selects_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["types", str(DATA / "kettle.yaml"), "--version", "v1alpha1"]) == 0
    assert 'version="v1"' not in capsys.readouterr().out


def test_other_objects_are_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (
        b"kind: Service\n---\n- a list\n---\nkind: List\nitems:\n- kind: Pod\n---\n"
        + (DATA / "kettle.yaml").read_bytes()
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run(["types", "-"]) == 0
    assert "class Kettle(" in capsys.readouterr().out


def test_definitions_are_read_from_a_servers_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition = yaml.safe_load((DATA / "kettle.yaml").read_text())
    version, kind = definition.pop("apiVersion"), definition.pop("kind")
    listed = {"apiVersion": version, "kind": f"{kind}List", "items": [definition]}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    assert run(["types", str(tmp_path / "list.json")]) == 0
    assert "class Kettle(" in capsys.readouterr().out


def test_an_unknown_version_is_reported_with_the_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["types", str(DATA / "kettle.yaml"), "--version", "v9"]) == 1
    assert "the definition 'kettles.kitchen.example.org': no version v9; versions:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod", "found no CustomResourceDefinition"),
        ("kind: CustomResourceDefinition", "not a CustomResourceDefinition"),
        ("a: [", "yaml"),
    ],
)
def test_a_file_without_definitions_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert run(["types", str(tmp_path / "x.yaml")]) == 1
    assert message in capsys.readouterr().err


def test_a_missing_file_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["types", "/no/such.yaml"]) == 1
    assert capsys.readouterr().err == "ostinato types: cannot read /no/such.yaml: No such file or directory\n"
    assert run(["types", str(DATA / "kettle.yaml"), "-o", "/no/such/place.py"]) == 1
    assert "cannot write /no/such/place.py: No such file or directory" in capsys.readouterr().err
