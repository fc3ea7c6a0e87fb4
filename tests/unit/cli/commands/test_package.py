"""`ostinato package`: the files of each format, from a program and its overrides."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ostinato.cli.app import run

PROGRAM = """
from ostinato import CustomResource, controller
from ostinato.kinds.apps_v1 import Deployment

class Widget(CustomResource, group="example.dev", version="v1"):
    spec: dict[str, str] = {}

@controller(Widget, owns=[Deployment])
async def widgets(widget: Widget, ctx) -> None: ...
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packaged_shop.py").write_text(PROGRAM)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "overrides.yaml").write_text("name: shop\nimage: example.com/shop:1\nreplicas: 2\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if not name.startswith("ostinato"):
            del sys.modules[name]


def test_install_yaml_is_printed_or_written_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["package", "yaml", "packaged_shop"]) == 0
    printed = capsys.readouterr().out
    assert run(["package", "yaml", "packaged_shop", "-o", "dist/install.yaml"]) == 0
    assert capsys.readouterr().out == "dist/install.yaml\n"
    assert (place / "dist" / "install.yaml").read_text() == printed
    assert run(["package", "yaml", "packaged_shop", "-o", "dist/install.yaml", "--check"]) == 0
    assert run(["package", "yaml", "packaged_shop", "-o", "dist/install.yaml", "--check", "--image", "other:2"]) == 1
    answer = capsys.readouterr()
    assert "+        image: other:2" in answer.out
    assert "is out of date" in answer.err


def test_the_roles_are_those_of_the_program(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["package", "yaml", "packaged_shop"]) == 0
    objects = {
        f"{each['kind']}/{each['metadata']['name']}": each for each in yaml.safe_load_all(capsys.readouterr().out)
    }
    resources = {name for rule in objects["ClusterRole/shop"]["rules"] for name in rule["resources"]}
    assert resources == {"deployments", "events", "widgets", "widgets/finalizers", "widgets/status"}
    assert objects["Role/shop-leader-election"]["metadata"]["namespace"] == "shop-system"


def test_a_namespaced_operator_has_roles_in_its_own_namespace_alone(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "deploy" / "overrides.yaml").write_text("{name: shop, image: a, namespaced: true}")
    assert run(["package", "yaml", "packaged_shop"]) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert {each["metadata"]["namespace"] for each in objects if each["kind"] == "Role"} == {"shop-system"}
    assert not [each for each in objects if each["kind"] == "ClusterRoleBinding"]


def test_mistakes_are_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["package", "yaml", "packaged_shop", "--overrides", "absent.yaml"]) == 1
    assert capsys.readouterr().err == "ostinato package yaml: absent.yaml: cannot be read: No such file or directory\n"
    assert run(["package", "yaml", "packaged_shop", "--image", "No Image"]) == 1
    assert "deploy/overrides.yaml: image: image 'No Image' is not an image reference" in capsys.readouterr().err
    assert run(["package", "yaml", "packaged_shop", "--check"]) == 1
    assert "--check needs --output FILE" in capsys.readouterr().err
    (place / "occupied").write_text("")
    assert run(["package", "yaml", "packaged_shop", "-o", "occupied/install.yaml"]) == 1
    assert "ostinato package yaml: cannot write occupied" in capsys.readouterr().err


def test_the_scorecard_is_printed_and_decides_the_exit_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "packaged_shop", "--suite", "deployment"]) == 0
    assert capsys.readouterr().out.endswith("\n5 passed, 0 failed, 0 skipped, 0 suggestions\n")
    assert run(["score", "packaged_shop", "--suite", "basic", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (sample,) = [each for each in report["items"] if each["spec"]["labels"]["test"] == "basic-check-samples-test"]
    assert "no sample; add one" in sample["status"]["results"][0]["errors"][0]


@pytest.mark.parametrize(("name", "file"), [("helm", "Chart.yaml"), ("olm", "bundle.Dockerfile")])
def test_other_formats_are_directories(place: Path, name: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["package", name, "packaged_shop", "-o", "out"]) == 0
    assert f"out/{file}\n" in capsys.readouterr().out
    assert run(["package", name, "packaged_shop", "-o", "out", "--check"]) == 0


def test_samples_that_are_not_objects_are_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "samples").mkdir()
    (place / "samples" / "a.yaml").write_text("[1]")
    assert run(["package", "olm", "packaged_shop"]) == 1
    assert "samples/a.yaml: not an object; it needs apiVersion, kind and metadata" in capsys.readouterr().err
