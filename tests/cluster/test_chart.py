"""A rendered chart is installed with kubectl, upgraded, and pruned: as Helm does it, without Helm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cluster.test_kubectl import Kubectl

_LABELS = {"app.kubernetes.io/name": "kettle", "app.kubernetes.io/instance": "demo"}
_HOOK = "helm.sh/hook"


@pytest.fixture
def kubectl(request: pytest.FixtureRequest, kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(str(request.getfixturevalue("go_programs") / "kubectl"), kubeconfig, namespace, tmp_path)


def definition(group: str) -> dict[str, object]:
    columns = [{"name": "Litres", "type": "integer", "jsonPath": ".spec.litres"}]
    spec = {"type": "object", "properties": {"litres": {"type": "integer", "minimum": 1, "default": 2}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"kettles.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Kettle", "plural": "kettles", "shortNames": ["kt"]},
            "versions": [{**version, "additionalPrinterColumns": columns}],
        },
    }


def chart(namespace: str, group: str, version: str, *, metrics: bool) -> list[dict[str, object]]:
    """What `helm template` would print: accounts, rights, configuration, workloads, and hooks as Jobs."""

    def made(kind: str, api: str, name: str, **rest: object) -> dict[str, object]:
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": _LABELS}, **rest}

    rbac, role = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    pod = {
        "serviceAccountName": "kettle",
        "containers": [
            {
                "name": "kettle",
                "image": f"example.com/kettle:{version}",
                "ports": [{"name": "http", "containerPort": 8080}],
                "envFrom": [{"configMapRef": {"name": "kettle"}}],
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m"}},
            }
        ],
    }
    hook = made(
        "Job",
        "batch/v1",
        f"kettle-migrate-{version}",
        spec={
            "backoffLimit": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "example.com/m"}]}},
        },
    )
    hook["metadata"]["annotations"] = {_HOOK: "pre-upgrade", "helm.sh/hook-weight": "-5"}  # type: ignore[index]
    objects = [
        made("ServiceAccount", "v1", "kettle"),
        made("ConfigMap", "v1", "kettle", data={"VERSION": version}),
        made("Secret", "v1", "kettle", stringData={"key": "s3cret"}),
        made("Role", rbac, "kettle", rules=[{"apiGroups": [group], "resources": ["kettles"], "verbs": ["*"]}]),
        made(
            "RoleBinding",
            rbac,
            "kettle",
            roleRef={"apiGroup": role, "kind": "Role", "name": "kettle"},
            subjects=[{"kind": "ServiceAccount", "name": "kettle", "namespace": namespace}],
        ),
        made(
            "Service",
            "v1",
            "kettle",
            spec={"selector": _LABELS, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        ),
        made(
            "Deployment",
            "apps/v1",
            "kettle",
            spec={
                "replicas": 2,
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": pod},
            },
        ),
        made(
            "PodDisruptionBudget", "policy/v1", "kettle", spec={"minAvailable": 1, "selector": {"matchLabels": _LABELS}}
        ),
        made("Kettle", f"{group}/v1", "kitchen", spec={}),
        hook,
    ]
    if metrics:
        objects.append(made("ConfigMap", "v1", "kettle-dashboard", data={"board": "{}"}))
    return objects


def rendered(objects: list[dict[str, object]]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False)


def test_a_chart_is_installed_twice_upgraded_and_pruned(kubectl: Kubectl, namespace: str) -> None:
    group = f"{namespace}.example.com"
    selector = ",".join(f"{key}={value}" for key, value in _LABELS.items())
    prune = [
        f"--prune-allowlist={kind}"
        for kind in ("core/v1/ConfigMap", "core/v1/Service", "apps/v1/Deployment", "batch/v1/Job")
    ]
    kubectl("apply", "-f", "-", stdin=rendered([definition(group)]))
    try:
        kubectl("wait", "--for=condition=Established", f"crd/kettles.{group}", "--timeout=30s")
        first = rendered(chart(namespace, group, "1.0.0", metrics=True))
        made = kubectl("apply", "-f", "-", stdin=first)
        assert made.count(" created") == 11

        again = kubectl("apply", "-f", "-", stdin=first)
        assert again.count(" unchanged") + again.count(" configured") == 11
        # Two kinds are never unchanged: the server moves stringData, and kubectl replaces the selector of a budget
        changed = [line.split()[0] for line in again.splitlines() if line.endswith("configured")]
        assert sorted(changed) == ["poddisruptionbudget.policy/kettle", "secret/kettle"]

        second = rendered(chart(namespace, group, "1.1.0", metrics=False))
        upgraded = kubectl("apply", "-f", "-", "--prune", "-l", selector, *prune, stdin=second)
        assert "deployment.apps/kettle configured" in upgraded
        assert "job.batch/kettle-migrate-1.1.0 created" in upgraded
        assert "configmap/kettle-dashboard pruned" in upgraded
        assert "job.batch/kettle-migrate-1.0.0 pruned" in upgraded
        assert "service/kettle unchanged" in upgraded

        image = kubectl("get", "deploy", "kettle", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
        assert image == "example.com/kettle:1.1.0"
        table = kubectl("get", "kt")
        assert table.split() == ["NAME", "LITRES", "kitchen", "2"]
        left = json.loads(kubectl("get", "cm,job", "-l", selector, "-o", "json"))["items"]
        assert sorted(item["metadata"]["name"] for item in left) == ["kettle", "kettle-migrate-1.1.0"]
    finally:
        kubectl("delete", "crd", f"kettles.{group}", "--ignore-not-found")
