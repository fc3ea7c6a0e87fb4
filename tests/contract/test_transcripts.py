"""kubectl prints against the API server what it prints against a kube-apiserver: the share may only grow."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.contract import transcripts
from tests.contract.counts import hold

if TYPE_CHECKING:
    from tests.conftest import ApiServer


def find_kubectl() -> str | None:
    """A kubectl v1.36: other versions word some messages differently."""
    for candidate in (os.environ.get("OSTINATO_KUBECTL"), shutil.which("kubectl")):
        if candidate:
            said = subprocess.run([candidate, "version", "--client", "-o", "json"], capture_output=True, check=False)
            if said.returncode == 0 and json.loads(said.stdout)["clientVersion"]["gitVersion"].startswith("v1.36."):
                return candidate
    return None


@pytest.fixture(scope="module")
def kubectl(apiserver: ApiServer) -> transcripts.Kubectl:
    binary = find_kubectl()
    if binary is None:
        pytest.skip("no kubectl v1.36: name one in OSTINATO_KUBECTL")
    return transcripts.Kubectl(binary, apiserver.kubeconfig)


@pytest.mark.parametrize("group", transcripts.groups())
def test_kubectl_prints_as_recorded(group: str, kubectl: transcripts.Kubectl, request: pytest.FixtureRequest) -> None:
    cases = transcripts.transcripts(group)
    results = [transcripts.check(kubectl, *case) for case in cases]
    hold(request, f"kubectl/{group}", results, sum(len(expected) for _, expected in cases))
