"""A chart operator beside the real Helm: the same objects, records that Helm reads, releases of Helm taken over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.running import Running, running
from tests.cluster.test_kubectl import Kubectl
from tests.cluster.test_packages import Helm
from tests.cluster.test_run import OSTINATO

Json = dict[str, Any]

VALUES = {"replicaCount": 2, "image": {"tag": "1.27"}, "service": {"port": 8080}, "autoscaling": {"enabled": False}}
KINDS = "deployment,service,serviceaccount,configmap,hpa,ingress"
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences")
ADDRESSES = ("clusterIP", "clusterIPs")


@pytest.fixture
def helm(package_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Helm:
    return Helm(package_programs / "helm", kubeconfig, namespace, tmp_path)


@pytest.fixture
def kubectl(go_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(str(go_programs / "kubectl"), kubeconfig, namespace, tmp_path)


@pytest.fixture
def chart(helm: Helm, tmp_path: Path) -> Path:
    """The chart that `helm create` writes, with a ConfigMap that has all of Helm's objects in it."""
    helm("create", str(tmp_path / "demo"))
    (tmp_path / "demo" / "templates" / "all.yaml").write_text(
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}-all"}\ndata:\n'
        '  chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}\n'
        "  values: {{ toYaml .Values.image | quote }}\n  kube: {{ .Capabilities.KubeVersion.Version | quote }}\n"
        '  has: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}\n'
    )
    return tmp_path / "demo"


@pytest.fixture
def operator(chart: Path, kubeconfig: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Running]:
    arguments = ["chart", "run", str(chart), "--kind", "Demo", "--group", f"{namespace}.example.com", "--install-crds"]
    with running(tmp_path / "log", *OSTINATO, *arguments, "-n", namespace, "--kubeconfig", str(kubeconfig)) as program:
        program.wait_for_output("running demo-controller")
        yield program
        kubectl("delete", "crd", f"demos.{namespace}.example.com", "--timeout=50s")


def demo(name: str, namespace: str, spec: Json) -> str:
    return yaml.safe_dump(
        {"apiVersion": f"{namespace}.example.com/v1", "kind": "Demo", "metadata": {"name": name}, "spec": spec}
    )


def deployed(kubectl: Kubectl, name: str, revision: int) -> None:
    """Wait until a revision is deployed."""
    kubectl("wait", "demo", name, "--for=condition=Deployed", "--timeout=50s")
    selector = f"owner=helm,name={name},version={revision},status=deployed"
    kubectl("wait", "secret", "-l", selector, "--for=create", "--timeout=50s")


def objects(kubectl: Kubectl, name: str) -> dict[str, Json]:
    """The objects of a release, without what differs between two releases of one chart."""
    found = json.loads(kubectl("get", KINDS, "-o", "json"))["items"]
    mine = [each for each in found if each["metadata"]["name"].startswith(name)]
    return {
        f"{each['kind']}/{each['metadata']['name'].replace(name, 'NAME')}": _comparable(each, name) for each in mine
    }


def _comparable(instance: Json, name: str) -> Json:
    metadata = {key: value for key, value in instance["metadata"].items() if key not in VOLATILE}
    metadata.get("labels", {}).pop("helm.sdk.operatorframework.io/chart", None)
    metadata.get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    spec = instance.get("spec")
    if isinstance(spec, dict):
        instance["spec"] = {key: value for key, value in spec.items() if key not in ADDRESSES}
    instance.pop("status", None)
    text = json.dumps({**instance, "metadata": metadata}, sort_keys=True)
    found: Json = json.loads(text.replace(name, "NAME"))
    return found


def test_helm_and_the_operator_make_the_same_objects_and_its_release_is_taken_over(
    helm: Helm, kubectl: Kubectl, chart: Path, operator: Running, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(VALUES))
    helm("install", "first", str(chart), "-f", str(tmp_path / "values.yaml"))
    kubectl("apply", "-f", "-", stdin=demo("other", namespace, VALUES))
    deployed(kubectl, "other", 1)
    ours, theirs = objects(kubectl, "other"), objects(kubectl, "first")
    assert len(ours) == 4
    assert ours == theirs
    assert helm("get", "manifest", "other").replace("other", "first") == helm("get", "manifest", "first")
    assert helm("get", "notes", "other").replace("other", "first") == helm("get", "notes", "first")
    kubectl("delete", "demo", "other", "--timeout=50s")

    kubectl("apply", "-f", "-", stdin=demo("first", namespace, VALUES))  # takes over the release of Helm
    kubectl("wait", "demo", "first", "--for=condition=Deployed", "--timeout=50s")
    history = json.loads(helm("history", "first", "-o", "json"))
    assert [(each["revision"], each["status"]) for each in history] == [(1, "deployed")]
    owners = kubectl("get", "deployment", "first-demo", "-o", "jsonpath={.metadata.ownerReferences[*].kind}")
    assert owners == "Demo"
    kubectl("apply", "-f", "-", stdin=demo("first", namespace, {**VALUES, "replicaCount": 1}))
    deployed(kubectl, "first", 2)
    assert kubectl("get", "deployment", "first-demo", "-o", "jsonpath={.spec.replicas}") == "1"
    kubectl("delete", "demo", "first", "--timeout=50s")
    assert json.loads(helm("list", "-a", "-o", "json")) == []


def test_helm_reads_the_records_and_drift_is_repaired(
    helm: Helm, kubectl: Kubectl, operator: Running, namespace: str
) -> None:
    kubectl("apply", "-f", "-", stdin=demo("mine", namespace, VALUES))
    deployed(kubectl, "mine", 1)
    kubectl("apply", "-f", "-", stdin=demo("mine", namespace, {**VALUES, "replicaCount": 3}))
    deployed(kubectl, "mine", 2)
    (listed,) = json.loads(helm("list", "-o", "json"))
    assert (listed["name"], listed["revision"], listed["status"]) == ("mine", "2", "deployed")
    assert (listed["chart"], listed["app_version"]) == ("demo-0.1.0", "1.16.0")
    history = json.loads(helm("history", "mine", "-o", "json"))
    assert [(each["revision"], each["status"], each["description"]) for each in history] == [
        (1, "superseded", "Install complete"),
        (2, "deployed", "Upgrade complete"),
    ]
    assert yaml.safe_load(helm("get", "values", "mine"))["replicaCount"] == 3
    assert "STATUS: deployed" in helm("status", "mine")
    kubectl("scale", "deployment", "mine-demo", "--replicas=7")
    kubectl("wait", "deployment", "mine-demo", "--for=jsonpath={.spec.replicas}=3", "--timeout=50s")
    kubectl("delete", "service", "mine-demo")
    kubectl("wait", "service", "mine-demo", "--for=create", "--timeout=50s")
    kubectl("delete", "demo", "mine", "--timeout=50s")
    assert json.loads(helm("list", "-a", "-o", "json")) == []
