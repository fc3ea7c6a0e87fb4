"""kubectl, new and old, creates, lists, watches, patches, applies, explains and deletes against the server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, labels: {app: web}}
data: {k: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}]
"""


@pytest.fixture(params=["new", "old", "own"])
def kubectl(request: pytest.FixtureRequest, kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    """The newest kubectl, an old one (Debian's, 1.20), and whatever this machine has."""
    if request.param == "new":
        binary = str(request.getfixturevalue("go_programs") / "kubectl")
    elif request.param == "old":
        binary = os.environ.get("OSTINATO_OLD_KUBECTL", "")
        if not binary:
            pytest.skip("no old kubectl: OSTINATO_OLD_KUBECTL may name one, such as that of Debian's kubernetes-client")
    else:
        binary = shutil.which("kubectl") or ""
        if not binary:
            pytest.skip("no kubectl on PATH")
    return Kubectl(binary, kubeconfig, namespace, tmp_path)


class Kubectl:
    def __init__(self, binary: str, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._command = [binary, "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self._home = home

    def __call__(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={"HOME": str(self._home), "PATH": "/usr/bin:/bin"},
        )
        assert (done.returncode != 0) == fails, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout


def test_objects_are_created_listed_patched_and_deleted(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "a", "--from-literal=k=1") == "configmap/a created\n"
    assert "already exists" in kubectl("create", "configmap", "a", fails=True)
    assert kubectl("get", "configmap", "a", "-o", "jsonpath={.data.k}") == "1"
    assert "patched" in kubectl("patch", "configmap", "a", "--type", "merge", "-p", '{"data":{"k":"2"}}')
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}") == "2"
    assert kubectl("label", "configmap", "a", "x=y").rstrip().endswith("labeled")
    assert kubectl("get", "cm", "-l", "x=y", "-o", "name") == "configmap/a\n"
    assert 'configmap "a" deleted' in kubectl("delete", "configmap", "a")
    assert "NotFound" in kubectl("get", "configmap", "a", fails=True)


def test_a_manifest_is_applied_and_applied_again(kubectl: Kubectl) -> None:
    assert "deployment.apps/web created" in kubectl("apply", "-f", "-", stdin=MANIFEST)
    again = kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert "configmap/applied unchanged" in again
    assert "deployment.apps/web unchanged" in again
    changed = kubectl("apply", "-f", "-", stdin=MANIFEST.replace("web:1", "web:2"))
    assert "deployment.apps/web configured" in changed
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={..image}") == "web:2"
    assert "deployment.apps/web scaled" in kubectl("scale", "deployment", "web", "--replicas=3")
    assert "0/3" in kubectl("get", "deployments")


def test_a_wrong_manifest_is_refused(kubectl: Kubectl) -> None:
    said = kubectl("create", "-f", "-", stdin=MANIFEST.replace("data:", "dta:"), fails=True)
    assert "unknown field" in said
    assert "dta" in said


def test_kinds_are_explained(kubectl: Kubectl) -> None:
    assert "containers" in kubectl("explain", "pod.spec")
    assert "configmaps" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")


def test_changes_are_watched(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "w")
    command = [*kubectl._command, "get", "configmap", "w", "--watch", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "configmap/w\n"
        kubectl("annotate", "configmap", "w", "a=b")
        assert watching.stdout.readline() == "configmap/w\n"
        watching.terminate()
