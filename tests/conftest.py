"""What several kinds of tests share: a running API server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

GO = Path(__file__).resolve().parent / "cluster" / "go"
VERSION = "v1.36.4"  # of the modules that go.mod names there
ADMIN_TOKEN = "admin-token-for-tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        metavar="KUBECONFIG",
        help="what tests/cluster and recorded situations are tried on, instead of ours",
    )
    parser.addoption("--over-http", action="store_true", help="the plays of tests/unit/plane go over HTTPS")
    parser.addoption(
        "--update-counts", action="store_true", help="raise the counts of tests/contract to what was reached"
    )


@dataclass
class ApiServer:
    """An `ostinato apiserver` in a process of its own."""

    url: str
    token: str
    ca: Path
    kubeconfig: Path


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    state = tmp_path_factory.mktemp("apiserver")
    tokens = state / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,admin-uid,"system:masters"\n')
    command = [
        sys.executable,
        "-m",
        "ostinato.cli",
        "apiserver",
        "--listen",
        "127.0.0.1:0",
        "--state",
        str(state / "state"),
    ]
    command += ["--store", "memory", "--token-auth-file", str(tokens)]
    with (state / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ})
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert "https://" in ready, f"no ready line but {ready!r}; log: {(state / 'log').read_text()[-2000:]}"
        url = next(word for word in ready.replace("(", " ").split() if word.startswith("https://")).rstrip(",.)")
        yield ApiServer(url, ADMIN_TOKEN, state / "state" / "ca.crt", state / "state" / "admin.kubeconfig")
        process.terminate()
        try:
            assert process.wait(10) == 0, f"it ended with {process.returncode}: {(state / 'log').read_text()[-2000:]}"
        finally:
            process.kill()
            process.stdout.close()


@pytest.fixture(scope="session")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl and the other Go programs are, built on first use.

    OSTINATO_GO_PROGRAMS names a place that outlives the run.
    """
    kept = os.environ.get("OSTINATO_GO_PROGRAMS")
    place = Path(kept) if kept else tmp_path_factory.mktemp("go")
    if (place / "kubectl").exists() and (place / "clients").exists():
        return place
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go to build the programs with")
    place.mkdir(parents=True, exist_ok=True)
    stamp = " ".join(
        f"-X k8s.io/component-base/version.{name}={value}"
        for name, value in (("gitVersion", VERSION), ("gitMajor", "1"), ("gitMinor", "36"))
    )
    command = [go, "build", "-trimpath", "-ldflags", f"-s -w {stamp}", "-o", f"{place}/", "./kubectl", "./clients"]
    built = subprocess.run(command, cwd=GO, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the Go programs cannot be built here: {built.stderr[-500:]}")
    return place
