"""Clients in Python and in Go create, list, watch, patch and delete against the server, as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 90


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("client", ["official", "kubernetes_asyncio_client", "lightkube_client", "kr8s_client"])
def test_a_client_in_python(client: str, kubeconfig: Path, namespace: str) -> None:
    run(sys.executable, "-m", f"tests.cluster.programs.{client}", str(kubeconfig), namespace)


def test_client_go_typed_and_dynamic_in_json_and_protobuf(kubeconfig: Path, namespace: str, go_programs: Path) -> None:
    assert run(str(go_programs / "clients"), str(kubeconfig), namespace).count("ok") == 4
