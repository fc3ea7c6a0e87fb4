"""The Deployment, within the restricted Pod security standard, and its PodDisruptionBudget."""

from __future__ import annotations

from typing import Any, Final

from ostinato.packaging.manifest import Manifest, When, extended, formatted, given
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.package import HEALTH_PORT, METRICS_PORT, Package

Json = dict[str, Any]

CONTAINER: Final = "operator"
POD_NAMESPACE: Final = "POD_NAMESPACE"
_RESTRICTED: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_GRACE_SECONDS: Final = 45  # more than Manager's graceful_shutdown


def deployment(inputs: Inputs) -> Manifest:
    spec = {
        "replicas": inputs.replicas,
        "strategy": inputs.strategy,
        "selector": {"matchLabels": inputs.selector},
        "template": {
            "metadata": given({"labels": inputs.pod_labels, "annotations": inputs.pod_annotations}),
            "spec": given(
                {
                    "serviceAccountName": inputs.account,
                    "automountServiceAccountToken": True,
                    "terminationGracePeriodSeconds": _GRACE_SECONDS,
                    "securityContext": extended(inputs.pod_security_context, _RESTRICTED),
                    "imagePullSecrets": inputs.image_pull_secrets,
                    "nodeSelector": inputs.node_selector,
                    "tolerations": inputs.tolerations,
                    "affinity": inputs.affinity,
                    "topologySpreadConstraints": inputs.topology_spread_constraints,
                    "priorityClassName": inputs.priority_class_name,
                    "containers": [_container(inputs)],
                    "volumes": [*_volumes(inputs), *inputs.volumes],
                }
            ),
        },
    }
    metadata = inputs.metadata(inputs.name)
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return Manifest("deployment.yaml", found)


def disruption_budget(inputs: Inputs) -> Manifest:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": inputs.selector}}
    metadata = inputs.metadata(inputs.name)
    found = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    return Manifest("pod-disruption-budget.yaml", found, "podDisruptionBudget")


def _container(inputs: Inputs) -> Json:
    package = inputs.package
    ports: list[Any] = [
        {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        When("metrics", {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}),
        *({"name": port_name(port), "containerPort": port, "protocol": "TCP"} for port in webhook_ports(package)),
    ]
    return given(
        {
            "name": CONTAINER,
            "image": inputs.image,
            "imagePullPolicy": inputs.image_pull_policy,
            "command": ["ostinato", "run", *package.program],
            "args": _arguments(inputs),
            "env": [*_own_environment(package), *inputs.env],
            "envFrom": inputs.env_from,
            "ports": ports,
            "startupProbe": {**_probe("/healthz"), "periodSeconds": 2, "failureThreshold": 60},
            "livenessProbe": {**_probe("/healthz"), "periodSeconds": 20},
            "readinessProbe": {**_probe("/readyz"), "periodSeconds": 10},
            "resources": inputs.resources,
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
            "volumeMounts": [*_mounts(package), *inputs.volume_mounts],
        }
    )


def _arguments(inputs: Inputs) -> list[Any]:
    package = inputs.package
    found: list[Any] = [
        f"--health=:{HEALTH_PORT}",
        "--log-format=json",
        When("metrics", f"--metrics=:{METRICS_PORT}"),
        When("secureMetrics", "--metrics-secure"),
    ]
    if not package.operator.lease:
        found.append(When("leaderElection", formatted("--leader-election=%s", inputs.lease)))
    if package.operator.certificate_option:
        found.append(f"--webhook-certificates={package.operator.certificate_option}")
    if package.overrides.namespaced:
        found.append(f"--namespace=$({POD_NAMESPACE})")
    return [*found, *inputs.args]


def _own_environment(package: Package) -> list[Json]:
    field = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return [{"name": POD_NAMESPACE, "valueFrom": field}] if package.overrides.namespaced else []


def _probe(path: str) -> Json:
    return {"httpGet": {"path": path, "port": "health", "scheme": "HTTP"}, "timeoutSeconds": 5}


def webhook_ports(package: Package) -> list[int]:
    return sorted({server.port for server in package.operator.webhooks})


def port_name(port: int) -> str:
    return f"webhook-{port}"


def certificate_secret(inputs: Inputs) -> Any:
    """Return the name of the Secret with the certificate for webhook servers that read files."""
    return inputs.package.overrides.certificates.secret or inputs.named("webhook-certificate")


def _directories(package: Package) -> list[str]:
    """Return the directories from which webhook servers read their certificates."""
    return sorted({server.certificates for server in package.operator.webhooks if server.certificates})


def _volumes(inputs: Inputs) -> list[Json]:
    package = inputs.package
    found: list[Json] = [
        {"name": f"writable-{index}", "emptyDir": {}} for index, _ in enumerate(package.overrides.writable_directories)
    ]
    if _directories(package):
        found.append({"name": "webhook-certificate", "secret": {"secretName": certificate_secret(inputs)}})
    return found


def _mounts(package: Package) -> list[Json]:
    writable: list[Json] = [
        {"name": f"writable-{index}", "mountPath": path}
        for index, path in enumerate(package.overrides.writable_directories)
    ]
    certificates = [
        {"name": "webhook-certificate", "mountPath": path, "readOnly": True} for path in _directories(package)
    ]
    return [*writable, *certificates]
