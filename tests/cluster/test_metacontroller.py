"""Examples of metacontroller with their own hooks and test scripts, run by `ostinato meta`.

`OSTINATO_ORIGINALS` names a directory with `src/metacontroller`. Pods are simulated, except where a script reads logs.
Not here, as they configure metacontroller's own Pod: leader-election, pprof-profiling, prometheus-monitoring.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.metacontroller.examples import running_hooks
from tests.cluster.planes import PlaneProcess

ORIGINALS = os.environ.get("OSTINATO_ORIGINALS", "")
EXAMPLES = Path(ORIGINALS or "/missing") / "src" / "metacontroller" / "examples"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="OSTINATO_ORIGINALS does not name the originals")

_SECONDS = 120
_LONG = {"update-strategy": 200, "webhook-auth": 240}
_ALL = [
    "bluegreen",
    "catset",
    "clusteredparent",
    "configmap-list-v2",
    "configmappropagation",
    "crd-roles",
    "daemonjob",
    "globalconfigmap",
    "indexedjob",
    "namespace-list-v2",
    "secretpropagation",
    "service-per-pod",
    "service-per-pod-v2",
    "update-strategy",
    "webhook-auth",
]


@contextmanager
def plane(directory: Path, *options: str) -> Iterator[Path]:
    process = PlaneProcess(directory, *options)
    process.start()
    try:
        subprocess.run(
            ["kubectl", f"--kubeconfig={process.kubeconfig}", "create", "namespace", "metacontroller"], check=True
        )
        yield process.kubeconfig
    finally:
        process.stop()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with plane(tmp_path_factory.mktemp("simulated"), "--nodes", "1", "--runtime", "simulated") as kubeconfig:
        yield kubeconfig


@contextmanager
def meta(kubeconfig: Path, log: Path, *options: str) -> Iterator[None]:
    """`ostinato meta` in a process of its own."""
    command = [sys.executable, "-m", "ostinato.cli", "meta", "--kubeconfig", str(kubeconfig), "-v", *options]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            _wait_for_kinds(kubeconfig, log)
            yield
        finally:
            process.terminate()
            assert process.wait(30) == 0, log.read_text()[-2000:]


def _wait_for_kinds(kubeconfig: Path, log: Path) -> None:
    """Wait until the process runs, and the CustomResourceDefinitions are established."""
    names = [f"crd/{kind}.metacontroller.k8s.io" for kind in ("compositecontrollers", "decoratorcontrollers")]
    command = ["kubectl", f"--kubeconfig={kubeconfig}", "wait", "--for=condition=Established", *names]
    for _ in range(60):
        is_running = "running metacontroller" in log.read_text()
        if is_running and not subprocess.run(command, capture_output=True, check=False).returncode:
            return
        time.sleep(0.5)
    raise AssertionError("metacontroller's definitions are not established")


def run_script(example: Path, kubeconfig: Path, seconds: float) -> None:
    result = subprocess.run(
        ["bash", "test.sh"],
        cwd=example,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def check_tools(manifest: Path) -> None:
    if list(manifest.glob("*.js")) and shutil.which("node") is None:
        pytest.skip("node is not installed")
    if list(manifest.glob("*.jsonnet")) and importlib.util.find_spec("_jsonnet") is None:
        pytest.skip("the package jsonnet is not installed")


@pytest.mark.parametrize("name", _ALL)
def test_an_example_reaches_the_states_of_its_own_script(
    name: str, simulated: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    example = EXAMPLES / name
    check_tools(example / "manifest")
    if name == "indexedjob":  # reads the logs of its Pods
        if os.geteuid():
            pytest.skip("needs root for the Pods of the process runtime")
        with plane(tmp_path_factory.mktemp("processes")) as kubeconfig:
            play(example, kubeconfig, tmp_path)
        return
    play(example, simulated, tmp_path)


def play(example: Path, kubeconfig: Path, work: Path) -> None:
    with (
        running_hooks(example, example / "manifest", work, kubeconfig) as resolve,
        meta(kubeconfig, work / "meta.log", *resolve),
    ):
        run_script(example, kubeconfig, _LONG.get(example.name, _SECONDS))


def test_only_definitions_with_the_target_labels_run(simulated: Path, tmp_path: Path) -> None:
    """target-label-selector, without its change of metacontroller's own Pod."""
    example, secrets = EXAMPLES / "target-label-selector", EXAMPLES / "secretpropagation"
    kubectl = ["kubectl", f"--kubeconfig={simulated}"]
    applied = [[*kubectl, "apply", "-k", str(example / "manifest")]]
    applied.append([*kubectl, "apply", "-f", str(secrets / "example-secret.yaml")])
    found = "until kubectl get secret shareable -n alpha; do sleep 1; done"
    labels = "controller.kubernetes.io/group=something-else"
    try:
        with (
            running_hooks(secrets, secrets / "manifest", tmp_path, simulated) as resolve,
            meta(simulated, tmp_path / "meta.log", *resolve, f"--target-label-selector={labels}"),
        ):
            for command in applied:
                subprocess.run(command, check=True)
            assert "controller started" not in (tmp_path / "meta.log").read_text()
        with (
            running_hooks(secrets, secrets / "manifest", _made(tmp_path / "again"), simulated) as resolve,
            meta(simulated, tmp_path / "again.log", *resolve, "--target-label-selector", _selector(example)),
        ):
            environment = {**os.environ, "KUBECONFIG": str(simulated)}
            subprocess.run(["bash", "-c", found], env=environment, timeout=_SECONDS, check=True)
    finally:
        for command in reversed(applied):
            subprocess.run([each if each != "apply" else "delete" for each in command], check=False)


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _selector(example: Path) -> str:
    """The selector that the example gives to metacontroller."""
    text = (example / "instance" / "args.yaml").read_text()
    return next(line.partition("--target-label-selector=")[2].strip() for line in text.splitlines() if "target" in line)
