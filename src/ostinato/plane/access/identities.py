"""Identities of the components towards the API server.

- A controller is its service account in kube-system, as with kube-controller-manager's
  --use-service-account-credentials.
- Shared informers use `system:kube-controller-manager`.
- A node is `system:node:NAME`.
- The live page is `system:ostinato:page`, which reads everything and writes nothing, unless it was allowed to.
"""

from __future__ import annotations

from typing import Final

FIELD_MANAGER: Final = "kube-controller-manager"
MANAGER: Final = "system:kube-controller-manager"
SCHEDULER: Final = "system:kube-scheduler"
PROXY: Final = "system:kube-proxy"
PAGE: Final = "system:ostinato:page"  # the live page
PAGE_WRITES: Final = "system:ostinato:page-writes"  # the same, if it may delete objects and open shells

_ACCOUNT: Final = "system:serviceaccount:kube-system:"
_NODE: Final = "system:node:"

# Runnable name -> service account in kube-system.
_ACCOUNTS: Final = {
    "attachdetach-controller": "attachdetach-controller",
    "bootstrap-signer-controller": "bootstrap-signer",
    "clusterrole-aggregation-controller": "clusterrole-aggregation-controller",
    "cronjob-controller": "cronjob-controller",
    "csi-attacher": "ostinato-csi",
    "csi-deleter": "ostinato-csi",
    "csi-provisioner": "ostinato-csi",
    "csi-resizer": "ostinato-csi",
    "csrapproving-controller": "certificate-controller",
    "csrcleaner-controller": "certificate-controller",
    "csrsigning-controller": "certificate-controller",
    "daemonset-controller": "daemon-set-controller",
    "default-storage-class": "default-storage-class",
    "deployment-controller": "deployment-controller",
    "disruption-controller": "disruption-controller",
    "endpoint-controller": "endpoint-controller",
    "endpoint-slice-controller": "endpointslice-controller",
    "endpoint-slice-mirroring-controller": "endpointslicemirroring-controller",
    "ephemeral_volume": "ephemeral-volume-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "horizontal-pod-autoscaler": "horizontal-pod-autoscaler",
    "job-controller": "job-controller",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "namespace-controller": "namespace-controller",
    "node-controller": "node-controller",
    "node-ipam-controller": "node-controller",
    "persistentvolume-controller": "persistent-volume-binder",
    "persistentvolume-releaser": "persistent-volume-binder",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "pv-protection-controller": "pv-protection-controller",
    "pvc-protection-controller": "pvc-protection-controller",
    "replicaset-controller": "replicaset-controller",
    "replication-controller": "replication-controller",
    "resourcequota-controller": "resourcequota-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "serviceaccount-controller": "service-account-controller",
    "stale-disruption-controller": "disruption-controller",
    "statefulset-controller": "statefulset-controller",
    "taint-eviction-controller": "node-controller",
    "token-cleaner-controller": "token-cleaner",
    "ttl-after-finished-controller": "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller": "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller": "volumeattributesclass-protection-controller",
}
_OTHERS: Final = {
    "scheduler": SCHEDULER,
    "services": PROXY,
    "service-proxy": PROXY,
    "network-policies": PROXY,
    "network-policy-rules": PROXY,
}
# Runnables without an identity of their own: the node agent uses the identity of each node.
_AGENT: Final = frozenset({"kubelet", "node-heartbeat", "node-cleanup", "runtime-health"})
_OF_ONE_NODE: Final = ("static-pods-", "plugin-watcher-")
_OF_MANAGER: Final = frozenset({"serviceaccount-token-controller"})  # as in kube-controller-manager


def user_of_runnable(name: str) -> str:
    """Return the user of a runnable; "" stands for the controller manager's. Raises KeyError if it is unknown."""
    if name in _OTHERS:
        return _OTHERS[name]
    if name in _AGENT or name in _OF_MANAGER or name.startswith(_OF_ONE_NODE):
        return ""
    return f"{_ACCOUNT}{_ACCOUNTS[name]}"


def user_of_node(name: str) -> str:
    """Return the user of a node."""
    return f"{_NODE}{name}"


def family(identity: str) -> str:
    """Return the identity, or one for all nodes."""
    return _NODE if identity.startswith(_NODE) else identity


def is_known(identity: str) -> bool:
    """Whether a component of the control plane has this identity."""
    return (
        identity in (MANAGER, PAGE, PAGE_WRITES, *_OTHERS.values())
        or (identity.startswith(_NODE) and identity != _NODE)
        or (identity.startswith(_ACCOUNT) and identity.removeprefix(_ACCOUNT) in _ACCOUNTS.values())
    )


def user_and_groups(identity: str) -> tuple[str, tuple[str, ...]]:
    """Return user name and groups, as a client certificate would carry them."""
    return identity, _groups_of(identity)


def _groups_of(user: str) -> tuple[str, ...]:
    if user.startswith(_NODE):
        return ("system:nodes",)
    if user.startswith(_ACCOUNT):
        return ("system:serviceaccounts", "system:serviceaccounts:kube-system")
    return ()
