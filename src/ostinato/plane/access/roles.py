"""RBAC rules of the components beyond the bootstrap roles of Kubernetes.

Some components write the same objects in another way than kube-controller-manager: they patch a status that it updates.
Each difference is a ClusterRole `ostinato:controller:NAME`, bound to the service account NAME in kube-system.
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
    """Allow patch for resources that the bootstrap role allows to update."""
    return PolicyRule(api_groups=[group], resources=list(resources), verbs=["patch"])


def _get(resource: str, name: str) -> PolicyRule:
    """Allow get of one name; kube-controller-manager watches the whole kind instead."""
    return PolicyRule(api_groups=[""], resources=[resource], resource_names=[name], verbs=["get"])


RULES: Final[dict[str, list[PolicyRule]]] = {
    "certificate-controller": [
        _patch("certificates.k8s.io", "certificatesigningrequests/approval", "certificatesigningrequests/status"),
        # kube-controller-manager does not approve kubelet serving certificates; this controller does.
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
    # Live reads before a Secret is deleted; kube-controller-manager reads its shared informers.
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
    # Schemas come from CustomResourceDefinitions; kube-controller-manager uses the published OpenAPI.
    "validatingadmissionpolicy-status-controller": [
        PolicyRule(api_groups=["apiextensions.k8s.io"], resources=["customresourcedefinitions"], verbs=["list"])
    ],
    "volumeattributesclass-protection-controller": [_patch("storage.k8s.io", "volumeattributesclasses")],
}


# For drivers of `ostinato up --csi-socket` alone: the rules of external-provisioner, -attacher and -resizer.
CSI_RULES: Final[dict[str, list[PolicyRule]]] = {
    "ostinato-csi": [
        PolicyRule(
            api_groups=[""],
            resources=["persistentvolumes"],
            verbs=["get", "list", "watch", "create", "patch", "delete"],
        ),
        PolicyRule(api_groups=[""], resources=["persistentvolumeclaims"], verbs=["get", "list", "watch", "patch"]),
        _patch("", "persistentvolumeclaims/status"),
        PolicyRule(api_groups=[""], resources=["nodes"], verbs=["get", "list", "watch"]),
        PolicyRule(api_groups=[""], resources=["secrets"], verbs=["get"]),
        PolicyRule(api_groups=["", "events.k8s.io"], resources=["events"], verbs=["create", "patch", "update"]),
        PolicyRule(
            api_groups=["storage.k8s.io"], resources=["storageclasses", "csinodes"], verbs=["get", "list", "watch"]
        ),
        PolicyRule(
            api_groups=["storage.k8s.io"], resources=["volumeattachments"], verbs=["get", "list", "watch", "patch"]
        ),
        _patch("storage.k8s.io", "volumeattachments/status"),
    ],
}


# The service proxy and the DNS server of a joined node watch Services and namespaces with the node's identity.
_OF_NODES: Final = [
    PolicyRule(api_groups=["discovery.k8s.io"], resources=["endpointslices"], verbs=["list", "watch"]),
    PolicyRule(api_groups=[""], resources=["namespaces"], verbs=["list", "watch"]),
]


async def ensure(client: Client, *, csi: bool = False) -> None:
    """Create or update the roles and their bindings. `csi`: also those for volumes of CSI drivers."""
    for account, rules in (RULES | CSI_RULES if csi else RULES).items():
        metadata = ObjectMeta(name=f"{_PREFIX}{account}")
        await create_or_update(client, ClusterRole(metadata=metadata, rules=rules))
        binding = ClusterRoleBinding(
            metadata=metadata,
            role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=metadata.name),
            subjects=[Subject(kind="ServiceAccount", name=account, namespace="kube-system")],
        )
        await create_or_update(client, binding)
    metadata = ObjectMeta(name="ostinato:node-services")
    await create_or_update(client, ClusterRole(metadata=metadata, rules=_OF_NODES))
    binding = ClusterRoleBinding(
        metadata=metadata,
        role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=metadata.name),
        subjects=[Subject(kind="Group", name="system:nodes", api_group=_GROUP)],
    )
    await create_or_update(client, binding)


async def ensure_page(client: Client, identity: str, *, writes: bool) -> None:
    """Create or update the role of the live page.

    It reads everything and the metrics of the API server; with `writes` it deletes and opens shells.
    """
    read = [
        PolicyRule(api_groups=["*"], resources=["*"], verbs=["get", "list", "watch"]),
        PolicyRule(non_resource_urls=["/metrics"], verbs=["get"]),
    ]
    change = [
        PolicyRule(api_groups=["*"], resources=["*"], verbs=["delete"]),
        PolicyRule(api_groups=[""], resources=["pods/exec"], verbs=["create"]),
    ]
    metadata = ObjectMeta(name=identity.removeprefix("system:"))
    await create_or_update(client, ClusterRole(metadata=metadata, rules=[*read, *(change if writes else ())]))
    binding = ClusterRoleBinding(
        metadata=metadata,
        role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=metadata.name),
        subjects=[Subject(kind="User", name=identity, api_group=_GROUP)],
    )
    await create_or_update(client, binding)


async def create_or_update(client: Client, wanted: Any) -> None:  # Any: a role or a binding
    """Create an object, or overwrite that of an older version."""
    try:
        await client.create(wanted)
    except AlreadyExists:
        await client.update(wanted)
