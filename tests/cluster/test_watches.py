"""`ostinato watches` with a chart and a role in one file: created, repaired, uninstalled."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cluster.running import running
from tests.cluster.test_kubectl import Kubectl
from tests.cluster.test_run import OSTINATO

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

TASKS = """
- ansible.builtin.set_fact:
    config: "{{ lookup('ansible.builtin.file', lookup('ansible.builtin.env', 'KUBECONFIG')) | from_json }}"
  no_log: true
- ansible.builtin.uri:
    url: "{{ config.clusters[0].cluster.server }}/api/v1/namespaces/{{ ansible_operator_meta.namespace }}/configmaps/\
{{ ansible_operator_meta.name }}?fieldManager=role&force=true"
    method: PATCH
    headers:
      Authorization: "Bearer {{ config.users[0].user.token }}"
      Content-Type: application/apply-patch+yaml
    status_code: [200, 201]
    body_format: json
    body:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ ansible_operator_meta.name }}"}
      data: {state: "{{ state | default('present') }}", size: "of {{ pool_size }}"}
"""
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-shop"}
data: {motto: {{ .Values.motto }}}
"""


@pytest.fixture
def kubectl(go_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(str(go_programs / "kubectl"), kubeconfig, namespace, tmp_path)


def project(directory: Path, group: str) -> None:
    """Write a project as operator-sdk lays it out."""
    entries = [
        {
            "group": group,
            "version": "v1",
            "kind": "Shop",
            "chart": "helm-charts/shop",
            "overrideValues": {"x": "$HOME"},
        },
        {
            "group": group,
            "version": "v1",
            "kind": "Cache",
            "role": "cache",
            "finalizer": {"name": f"{group}/finalizer", "vars": {"state": "absent"}},
        },
    ]
    files = {
        "watches.yaml": yaml.safe_dump(entries),
        "helm-charts/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
        "helm-charts/shop/values.yaml": "motto: hello\n",
        "helm-charts/shop/templates/map.yaml": TEMPLATE,
        "roles/cache/tasks/main.yml": TASKS,
        **{f"config/crd/bases/{kind}.yaml": yaml.safe_dump(_definition(group, kind)) for kind in ("Shop", "Cache")},
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def _definition(group: str, kind: str) -> object:
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def test_a_project_of_operator_sdk_runs_unchanged(
    kubeconfig: Path, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    group = f"{namespace}.example.com"
    project(tmp_path, group)
    objects = [
        {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
        for kind, spec in (("Shop", {"motto": "buy"}), ("Cache", {"poolSize": 3}))
    ]
    arguments = ["watches", str(tmp_path / "watches.yaml"), "--crds", str(tmp_path / "config"), "-n", namespace]
    environment = {"ANSIBLE_GATHERING": "explicit"}
    with running(
        tmp_path / "log", *OSTINATO, *arguments, "--kubeconfig", str(kubeconfig), environment=environment
    ) as program:
        program.wait_for_output("running shop-controller, cache-controller")
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        kubectl("wait", f"shops.{group}", "a", "--for=condition=Deployed", "--timeout=50s")
        kubectl("wait", f"caches.{group}", "a", "--for=condition=Successful", "--timeout=50s")
        assert kubectl("get", "cm", "a-shop", "-o", "jsonpath={.data.motto}") == "buy"
        assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.size}") == "of 3"
        for name, kind in (("a-shop", "Shop"), ("a", "Cache")):  # drift
            assert kubectl("get", "cm", name, "-o", "jsonpath={.metadata.ownerReferences[0].kind}") == kind
            kubectl("delete", "cm", name)
            kubectl("wait", "cm", name, "--for=create", "--timeout=50s")
        kubectl("delete", f"shops.{group}", "a", "--timeout=50s")
        kubectl("delete", f"caches.{group}", "a", "--timeout=50s")
        assert "NotFound" in kubectl("get", "cm", "a-shop", fails=True)
        assert program.stop() == 0
    kubectl("delete", "crd", f"shops.{group}", f"caches.{group}", "--timeout=50s")
