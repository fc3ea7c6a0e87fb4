"""Order: what other objects depend on is applied first and deleted last.

The order of kinds is that of Helm. Kinds that are not in it, such as custom resources, are applied last and deleted
first. Objects of one kind keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject

A = TypeVar("A", bound=AnyObject)

_KINDS: Final = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANKS: Final = {kind: rank for rank, kind in enumerate(_KINDS)}


def rank_of(instance: AnyObject) -> int:
    """Return the position of an object's kind in the order."""
    gvk = access.gvk(instance)
    is_built_in = gvk.group.endswith(".k8s.io") or "." not in gvk.group
    return _RANKS.get(gvk.kind, len(_KINDS)) if is_built_in else len(_KINDS)


def install_order(instances: Iterable[A]) -> list[A]:
    """Return the objects in the order in which they are applied."""
    return sorted(instances, key=rank_of)


def uninstall_order(instances: Iterable[A]) -> list[A]:
    """Return the objects in the order in which they are deleted, the reverse."""
    return install_order(instances)[::-1]
