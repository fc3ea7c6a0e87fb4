"""Charts are rendered as by the real Helm, built here.

The first variant of each chart of the unit tests; all of them with OSTINATO_CHART_VARIANTS=all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ostinato.cli.app import run
from tests.unit.charts.bundles import Bundle, bundles
from tests.unit.charts.record import helm_template


def ours(arguments: list[str], capsysbinary: pytest.CaptureFixture[bytes]) -> bytes:
    capsysbinary.readouterr()
    assert not run(["chart", "template", *arguments, "--name", "demo"])
    return capsysbinary.readouterr().out


@pytest.mark.parametrize("bundle", bundles(), ids=lambda bundle: bundle.name)
def test_charts_are_rendered_as_by_helm(
    bundle: Bundle, package_programs: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    bundle.write(tmp_path)
    wanted = list(bundle.variants)
    for variant in wanted if os.environ.get("OSTINATO_CHART_VARIANTS") == "all" else wanted[:1]:
        output, error = helm_template(package_programs / "helm", bundle, variant, tmp_path)
        options = [str(tmp_path / "chart"), *bundle.options(variant, tmp_path)]
        if error is None:
            assert output is not None
            assert ours(options, capsysbinary).decode() == output, variant
        else:
            assert run(["chart", "template", *options, "--name", "demo"]) == 1, variant


def test_a_new_chart_and_its_archive_are_rendered_as_by_helm(
    package_programs: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    helm = str(package_programs / "helm")
    subprocess.run([helm, "create", "shop"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([helm, "package", "shop"], cwd=tmp_path, check=True, capture_output=True)
    shutil.copytree(tmp_path / "shop", tmp_path / "parent")
    (tmp_path / "parent" / "charts").mkdir(exist_ok=True)
    shutil.copy(tmp_path / "shop-0.1.0.tgz", tmp_path / "parent" / "charts")
    (tmp_path / "parent" / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
    for name in ("shop", "shop-0.1.0.tgz", "parent"):
        options = [str(tmp_path / name), "--set", "ingress.enabled=true,replicaCount=3"]
        theirs = subprocess.run([helm, "template", "demo", *options], check=True, capture_output=True).stdout
        assert ours(options, capsysbinary) == theirs, name
