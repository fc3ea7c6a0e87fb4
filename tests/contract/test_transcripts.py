"""kubectl prints against the API server what it prints against a kube-apiserver: the share may only grow."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.contract import transcripts
from tests.contract.counts import best_of_two, hold

if TYPE_CHECKING:
    from tests.conftest import ApiServer


RECORDED = "1.32"  # the minor version of kubectl that printed what is recorded; others word some messages differently


def minor_version(binary: str) -> str:
    said = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True, check=False)
    if said.returncode:
        return ""
    return ".".join(json.loads(said.stdout)["clientVersion"]["gitVersion"].removeprefix("v").split(".")[:2])


@pytest.fixture(scope="module")
def kubectl(apiserver: ApiServer, request: pytest.FixtureRequest) -> transcripts.Kubectl:
    """The kubectl of the recordings if this machine has it, else the one that the tests build."""
    binary = shutil.which("kubectl")
    if binary is None or minor_version(binary) != RECORDED:
        binary = str(request.getfixturevalue("go_programs") / "kubectl")
    made = transcripts.Kubectl(binary, apiserver.kubeconfig)
    made.user = {"token": apiserver.token}  # as recorded: a certificate goes before what --token says
    return made


@pytest.mark.parametrize("group", transcripts.groups())
def test_kubectl_prints_as_recorded(group: str, kubectl: transcripts.Kubectl, request: pytest.FixtureRequest) -> None:
    cases = transcripts.transcripts(group)
    results = [transcripts.check(kubectl, *case) for case in cases]
    name = f"kubectl-{minor_version(kubectl.binary)}/{group}"
    results = best_of_two(name, results, lambda i: transcripts.check(kubectl, *cases[i]))
    hold(request, name, results, sum(len(expected) for _, expected in cases))
