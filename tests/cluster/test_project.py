"""A generated project, from `ostinato init` to an operator that handles its sample."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.client import Client, Config, Unstructured
from ostinato.kinds.apps_v1 import Deployment
from tests.cluster.running import SECONDS, Running, running

OSTINATO = (sys.executable, "-m", "ostinato.cli")
SOURCE = str(Path(__file__).resolve().parents[2] / "src")


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    command(tmp_path, *OSTINATO, "init", "demo")
    return tmp_path / "demo"


def command(directory: Path, *arguments: str) -> str:
    ignored = ("MAKE", "MFLAGS", "PYTEST")  # of the command that runs these tests
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    if not entry_points(group="pytest11", name="ostinato"):  # an environment that is older than the plugin
        environment["PYTEST_ADDOPTS"] = "-p ostinato.testing.plugin"
    ran = subprocess.run(arguments, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def until_ready(program: Running, project: Path, sample: str) -> Deployment:
    """Create a sample, wait until its controller has reported it as ready, and return its Deployment."""
    instance: dict[str, Any] = yaml.safe_load((project / "samples" / sample).read_text())
    kubeconfig = Path(program.wait_for_output("--kubeconfig").split()[-1])
    program.wait_for_output("running ")

    def ready(found: Any) -> bool:
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    async def main() -> Deployment:
        async with Client.connect(Config.load(path=kubeconfig, namespace="default")) as client:
            async with asyncio.timeout(SECONDS):
                made = await client.create(instance)
                kind = Unstructured.of(made["apiVersion"], made["kind"])
                await client.wait_for(kind, made["metadata"]["name"], ready, timeout=SECONDS)
                return await client.get(Deployment, made["metadata"]["name"])

    return asyncio.run(main())


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_from_init_to_a_running_operator(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert " passed" in command(project, "make", "test", f"PYTHON={sys.executable}")
    monkeypatch.chdir(project)
    with running(tmp_path / "log", *OSTINATO[1:], "run", "--embedded") as program:
        deployment = until_ready(program, project, "demo_v1.yaml")
        assert deployment.spec.replicas == 2
        assert program.stop() == 0, program.log()
