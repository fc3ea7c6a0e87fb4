"""What the parts of a plane may do beyond the roles that Kubernetes ships.

They write the same objects as Kubernetes' own controllers, some in another way: a status is patched where those update
it, which reaches no further. Each difference stands here, as a ClusterRole `ostinato:controller:NAME` that a plane
creates and binds to the service account NAME of kube-system.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.errors import AlreadyExists
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.kinds.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject

_GROUP: Final = "rbac.authorization.k8s.io"
_PREFIX: Final = "ostinato:controller:"


def _patch(group: str, *resources: str) -> PolicyRule:
    """What Kubernetes' controller may update is patched."""
    return PolicyRule(api_groups=[group], resources=list(resources), verbs=["patch"])


def _get(resource: str, name: str) -> PolicyRule:
    """One name is read from the server, where Kubernetes' controller watches all of the kind."""
    return PolicyRule(api_groups=[""], resources=[resource], resource_names=[name], verbs=["get"])


RULES: Final[dict[str, list[PolicyRule]]] = {
    "certificate-controller": [
        _patch("certificates.k8s.io", "certificatesigningrequests/approval", "certificatesigningrequests/status"),
        # Serving certificates of nodes are approved here: Kubernetes leaves that to others.
        PolicyRule(
            api_groups=["certificates.k8s.io"],
            resources=["signers"],
            resource_names=["kubernetes.io/kubelet-serving"],
            verbs=["approve"],
        ),
        PolicyRule(api_groups=[""], resources=["nodes"], verbs=["get"]),
    ],
    "cronjob-controller": [_patch("batch", "cronjobs/status")],
    "daemon-set-controller": [_patch("apps", "daemonsets/status")],
    "default-storage-class": [
        PolicyRule(api_groups=["storage.k8s.io"], resources=["storageclasses"], verbs=["create"])
    ],
    "deployment-controller": [_patch("apps", "deployments/status")],
    "disruption-controller": [_patch("policy", "poddisruptionbudgets/status")],
    "endpoint-controller": [_patch("", "endpoints")],
    "endpointslice-controller": [_patch("discovery.k8s.io", "endpointslices")],
    "endpointslicemirroring-controller": [_patch("discovery.k8s.io", "endpointslices")],
    "horizontal-pod-autoscaler": [_patch("autoscaling", "horizontalpodautoscalers/status"), _patch("*", "*/scale")],
    "job-controller": [_patch("batch", "jobs/status")],
    # Read from the server before a Secret is deleted, where Kubernetes reads from the caches that controllers share.
    "legacy-service-account-token-cleaner": [
        PolicyRule(api_groups=[""], resources=["secrets", "serviceaccounts"], verbs=["get"]),
        PolicyRule(api_groups=[""], resources=["pods"], verbs=["list"]),
    ],
    "persistent-volume-binder": [
        _patch("", "persistentvolumes", "persistentvolumes/status"),
        _patch("", "persistentvolumeclaims", "persistentvolumeclaims/status"),
    ],
    "pv-protection-controller": [_patch("", "persistentvolumes")],
    "pvc-protection-controller": [_patch("", "persistentvolumeclaims")],
    "replicaset-controller": [_patch("apps", "replicasets/status")],
    "replication-controller": [_patch("", "replicationcontrollers/status")],
    "resourcequota-controller": [_patch("", "resourcequotas/status")],
    "root-ca-cert-publisher": [_get("configmaps", "kube-root-ca.crt")],
    "service-account-controller": [_get("serviceaccounts", "default")],
    "statefulset-controller": [_patch("apps", "statefulsets/status")],
    # Schemas are read from definitions, where Kubernetes reads the published OpenAPI.
    "validatingadmissionpolicy-status-controller": [
        PolicyRule(api_groups=["apiextensions.k8s.io"], resources=["customresourcedefinitions"], verbs=["list"])
    ],
}


# Services answer on every node that has joined, whose agent follows them in the name of the node.
_OF_NODES: Final = [
    PolicyRule(api_groups=["discovery.k8s.io"], resources=["endpointslices"], verbs=["list", "watch"]),
]


async def ensure(client: Client) -> None:
    """Have the roles and their bindings there, as they are above."""
    for account, rules in RULES.items():
        metadata = ObjectMeta(name=f"{_PREFIX}{account}")
        await _ensure(client, ClusterRole(metadata=metadata, rules=rules))
        binding = ClusterRoleBinding(
            metadata=metadata,
            role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=metadata.name),
            subjects=[Subject(kind="ServiceAccount", name=account, namespace="kube-system")],
        )
        await _ensure(client, binding)
    metadata = ObjectMeta(name="ostinato:node-services")
    await _ensure(client, ClusterRole(metadata=metadata, rules=_OF_NODES))
    binding = ClusterRoleBinding(
        metadata=metadata,
        role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=metadata.name),
        subjects=[Subject(kind="Group", name="system:nodes", api_group=_GROUP)],
    )
    await _ensure(client, binding)


async def _ensure(client: Client, wanted: Any) -> None:  # Any: a role or a binding
    try:
        await client.create(wanted)
    except AlreadyExists:
        await client.update(wanted)  # what an older version left
