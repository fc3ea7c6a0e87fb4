"""Suites of controller-runtime on the programs of `ostinato envtest`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ostinato.cli.envtest.assets import write_assets
from tests.conftest import GO, one_at_a_time

SECONDS = 60

# Packages of controller-runtime whose suites start the programs. client/apiutil also downloads an old kube-apiserver.
SUITES = [
    "builder",
    "cache",
    "client",
    "cluster",
    "controller",
    "controller/controllerutil",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "internal/testing/controlplane",
    "manager",
    "manager/internal/integration",
    "metrics/filters",
    "reconcile",
    "source",
    "webhook",
]
MODULE = "sigs.k8s.io/controller-runtime"


def _chosen_suites() -> list[str]:
    """OSTINATO_ENVTEST_SUITES: packages, separated by commas, or `all`."""
    chosen = os.environ.get("OSTINATO_ENVTEST_SUITES", "controller/controllerutil")
    return SUITES if chosen == "all" else chosen.split(",")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The source of controller-runtime, whose suites read files beside them."""
    if request.config.getoption("--cluster"):
        pytest.skip("the programs are this package's")
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go to build the suites with")
    found = subprocess.run(
        [go, "mod", "download", "-json", MODULE], cwd=GO, capture_output=True, text=True, timeout=300, check=False
    )
    if found.returncode:
        pytest.skip(f"controller-runtime cannot be downloaded: {found.stdout[-500:]}{found.stderr[-500:]}")
    source = tmp_path_factory.mktemp("controller-runtime") / "source"
    shutil.copytree(json.loads(found.stdout)["Dir"], source, copy_function=shutil.copyfile)
    for script in source.rglob("*.sh"):
        script.chmod(0o755)  # modules have no file modes
    return source


def _suite(package: str, place: Path) -> Path:
    """The suite of a package, built on first use."""
    suite = place / f"controller-runtime-{package.replace('/', '-')}.test"
    with one_at_a_time(suite.with_suffix(".lock")):
        if not suite.exists():
            target = f"{MODULE}/pkg/{package}"
            command = ["go", "test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", str(suite), target]
            built = subprocess.run(command, cwd=GO, capture_output=True, text=True, check=False)
            if built.returncode:
                pytest.skip(f"the suite cannot be built here: {built.stderr[-500:]}")
    return suite


@pytest.mark.parametrize("package", _chosen_suites())
def test_a_suite_of_controller_runtime_passes(package: str, module: Path, go_programs: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "KUBEBUILDER_ASSETS": str(write_assets(tmp_path)),
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": f"{SECONDS}s",
    }
    done = subprocess.run(
        [_suite(package, go_programs), "-ginkgo.no-color"],
        cwd=module / "pkg" / package,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(r"SUCCESS! -- [1-9]\d* Passed \| 0 Failed", done.stdout)
