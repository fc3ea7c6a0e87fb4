"""KUDO's own tests, unchanged: every directory of test/integration and test/e2e, with its steps and asserted states.

`OSTINATO_ORIGINALS` names a directory with KUDO's sources in `src/kudo`. The integration tests run on an API server
alone, as there; the end-to-end tests on a control plane with simulated nodes, and those that need failing processes on
one that runs processes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.kuttl import KuttlTest, directories
from tests.cluster.planes import PlaneProcess
from tests.cluster.running import running

ORIGINALS = os.environ.get("OSTINATO_ORIGINALS", "")
TESTS = Path(ORIGINALS, "src", "kudo", "test")
pytestmark = pytest.mark.skipif(not ORIGINALS, reason="OSTINATO_ORIGINALS does not name the originals")

MANIFESTS = ("configmap-operator", "test-operator", "toy-operator")  # of test/manifests; the other is KUDO's webhook
NEEDS_PROCESSES = ("terminal-failed-job",)  # its Jobs fail, and run into their deadline of a minute


def cases(suite: str) -> list[Path]:
    return list(directories(TESTS / suite)) if ORIGINALS else []


class Manager:
    """A cluster, and `ostinato kudo manager` on it."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._kubeconfig = kubeconfig
        self._directory = directory / "tests"
        shim = directory / "bin"
        shim.mkdir()
        kubectl = shim / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} -m ostinato.cli "$@"\n')  # only `kubectl kudo` is called
        kubectl.chmod(0o755)
        self._environment = {"PATH": f"{shim}:{os.environ['PATH']}"}

    def play(self, test: Path) -> None:
        copied = self._directory / test.name  # commands write into it
        shutil.copytree(test, copied)
        KuttlTest(copied, self._kubeconfig, f"kudo-{test.name}"[:60].rstrip("-"), self._environment).run()


def managed(directory: Path, *options: str) -> Iterator[Manager]:
    plane = PlaneProcess(directory, *options)
    plane.start()
    try:
        command = ["-m", "ostinato.cli", "kudo", "manager", "--install-crds", "--kubeconfig", str(plane.kubeconfig)]
        with running(directory / "manager.log", *command) as manager:
            manager.wait_for_output("running plans")
            yield Manager(plane.kubeconfig, directory)
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    for found in managed(tmp_path_factory.mktemp("bare"), "--bare"):
        kubeconfig = found._kubeconfig
        for name in MANIFESTS:
            _create(kubeconfig, TESTS / "manifests" / f"{name}.yaml")
        yield found


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    yield from managed(tmp_path_factory.mktemp("simulated"), "--runtime", "simulated", "--nodes", "2")


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    yield from managed(tmp_path_factory.mktemp("processes"), "--insecure-processes", "--pod-network-cidr", "none")


def _create(kubeconfig: Path, manifest: Path) -> None:
    import asyncio

    from ostinato.client import Client, Config

    documents = list(yaml.safe_load_all(manifest.read_text()))

    async def create() -> None:
        async with Client.connect(Config.load(path=kubeconfig)) as client:
            for document in documents:
                await client.in_namespace("default").create(document)

    asyncio.run(create())


@pytest.mark.parametrize("test", cases("integration"), ids=lambda path: path.name)
def test_integration(test: Path, bare: Manager) -> None:
    bare.play(test)


@pytest.mark.parametrize(
    "test", [each for each in cases("e2e") if each.name not in NEEDS_PROCESSES], ids=lambda path: path.name
)
def test_end_to_end(test: Path, simulated: Manager) -> None:
    simulated.play(test)


@pytest.mark.parametrize(
    "test", [each for each in cases("e2e") if each.name in NEEDS_PROCESSES], ids=lambda path: path.name
)
def test_end_to_end_with_processes(test: Path, processes: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cluster.kuttl.SECONDS", 180.0)
    processes.play(test)
