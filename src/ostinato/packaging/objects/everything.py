"""All objects of a package, in the order in which they are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ostinato.packaging.manifest import Manifest, extended
from ostinato.packaging.objects import access, monitoring, network, webhooks, workload
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.package import Package

Json = dict[str, Any]


def all_objects(inputs: Inputs) -> list[Manifest]:
    return [
        _namespace(inputs),
        *webhooks.definitions(inputs),
        access.service_account(inputs),
        *access.operator_roles(inputs),
        *access.user_roles(inputs),
        access.metrics_reader(inputs),
        *webhooks.certificates(inputs),
        network.metrics_service(inputs),
        *network.webhook_services(inputs),
        workload.deployment(inputs),
        workload.disruption_budget(inputs),
        network.network_policy(inputs),
        *monitoring.monitoring_objects(inputs),
        *webhooks.configurations(inputs),
    ]


def features_of(package: Package) -> Callable[[str], bool]:
    """Return the switches of a package as it is configured."""
    chosen, features = package.overrides, package.overrides.features
    switches = {
        "": True,
        "namespace": features.namespace,
        "crds": features.crds,
        "serviceAccount": chosen.service_account.create,
        "rbac": features.rbac,
        "rbacForLeaderElection": features.rbac and package.elects,
        "leaderElection": package.elects,
        "userRoles": features.user_roles,
        "podDisruptionBudget": features.pod_disruption_budget,
        "networkPolicy": features.network_policy,
        "metrics": features.metrics,
        "secureMetrics": features.secure_metrics,
        "plainMetrics": not features.secure_metrics,
        "rbacForSecureMetrics": features.rbac and features.secure_metrics,
        "serviceMonitor": features.service_monitor,
        "alerts": features.alerts,
        "dashboard": features.dashboard,
    }
    return lambda feature: switches[feature]


def _namespace(inputs: Inputs) -> Manifest:
    labels = extended(inputs.labels, {"pod-security.kubernetes.io/enforce": "restricted"})
    metadata = {**inputs.metadata(inputs.namespace, namespaced=False), "labels": labels}
    return Manifest("namespace.yaml", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, "namespace")
