"""A cluster to test against: ours, or another with --cluster KUBECONFIG. What passes on one must on the other."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

GO = Path(__file__).resolve().parent / "go"
VERSION = "v1.36.4"  # of the modules that go/go.mod names
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    other = request.config.getoption("--cluster")
    return Path(other) if other else request.getfixturevalue("apiserver").kubeconfig


class Admin:
    """The user of a kubeconfig, with nothing but the standard library."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, self._user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = urllib.parse.urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in self._user:
            with tempfile.NamedTemporaryFile() as pem:
                for part in ("client-certificate-data", "client-key-data"):
                    pem.write(base64.b64decode(self._user[part]))
                pem.flush()
                self._tls.load_cert_chain(pem.name)

    def __call__(self, method: str, path: str, body: object = None) -> int:
        headers = {"Content-Type": "application/json"}
        if "token" in self._user:
            headers["Authorization"] = f"Bearer {self._user['token']}"
        connection = http.client.HTTPSConnection(
            self._url.hostname or "", self._url.port, context=self._tls, timeout=30
        )
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status


@pytest.fixture
def namespace(kubeconfig: Path) -> Iterator[str]:
    """A namespace of the test's own."""
    admin = Admin(kubeconfig)
    name = f"test-{os.getpid()}-{next(_numbers)}"
    assert admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}}) == 201
    yield name
    admin("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the Go programs are, built on first use; OSTINATO_GO_PROGRAMS names a place that outlives the run."""
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
