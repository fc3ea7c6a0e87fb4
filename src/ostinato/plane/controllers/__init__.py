"""The controllers of the plane, a module each, by the names that kube-controller-manager gives them.

    add_controllers(manager, Options(), without={"cronjob-controller"})

A module has a function `add_to(manager, options)` that adds its controllers to a manager. It is imported when it is
wanted: what is left out costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

import msgspec

from ostinato.manager import Manager

FIELD_MANAGER: Final = "kube-controller-manager"

CONTROLLERS: Final = {
    "bootstrap-signer-controller": "bootstrap.signer",
    "certificatesigningrequest-controller": "certificates.signing_requests",
    "clusterrole-aggregation-controller": "role_aggregation",
    "cronjob-controller": "workloads.cronjob.reconciler",
    "daemonset-controller": "workloads.daemonset",
    "deployment-controller": "workloads.deployment",
    "disruption-controller": "disruption",
    "endpoints-controller": "services.endpoints",
    "endpointslice-controller": "services.endpoint_slices",
    "endpointslice-mirroring-controller": "services.slice_mirroring",
    "ephemeral-volume-controller": "storage.ephemeral_volumes",
    "garbage-collector-controller": "garbage",
    "horizontal-pod-autoscaler-controller": "autoscaling",
    "job-controller": "workloads.job",
    "legacy-serviceaccount-token-cleaner-controller": "accounts.legacy_token_cleaner",
    "namespace-controller": "namespaces.deletion",
    "node-lifecycle-controller": "nodes.lifecycle",
    "persistentvolume-binder-controller": "storage.volume_binder",
    "persistentvolume-protection-controller": "storage.volume_protection",
    "persistentvolumeclaim-protection-controller": "storage.claim_protection",
    "pod-garbage-collector-controller": "garbage.pod_gc",
    "replicaset-controller": "workloads.replicaset.reconciler",
    "replicationcontroller-controller": "workloads.replicaset.replication_controller",
    "resourcequota-controller": "quota",
    "root-ca-certificate-publisher-controller": "certificates.root_ca",
    "serviceaccount-controller": "accounts.service_accounts",
    "serviceaccount-token-controller": "accounts.token_secrets",
    "statefulset-controller": "workloads.statefulset",
    "taint-eviction-controller": "nodes.taint_eviction",
    "token-cleaner-controller": "bootstrap.token_cleaner",
    "ttl-after-finished-controller": "workloads.ttl_after_finished",
    "validatingadmissionpolicy-status-controller": "policy_status",
}
"""The module of each controller."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What controllers cannot learn from the API server.

    - `ca_certificate`, `ca_key`: of the authority that signs certificates for nodes, and that `kube-root-ca.crt` tells
      of. Default to none: nothing is signed or told.
    - `volumes`: directory in which volumes for claims are made on this machine. Defaults to none: none are made.
    - `account_key`: private key of service account tokens, which is made if it is missing. Defaults to none: Secrets
      get no tokens.
    """

    ca_certificate: Path | None = None
    ca_key: Path | None = None
    volumes: Path | None = None
    account_key: Path | None = None


def ignore_warning(_warning: str) -> None:
    """What a server warns of when controllers of the plane ask it: they watch deprecated kinds, and know it."""


class _Module(Protocol):
    def add_to(self, manager: Manager, options: Options) -> None: ...


def add_controllers(manager: Manager, options: Options, *, without: Collection[str] = ()) -> None:
    """Add all controllers but some; a ValueError for a name that none has."""
    if unknown := sorted(set(without) - CONTROLLERS.keys()):
        raise ValueError(f"there is no controller {unknown[0]!r}; there are {', '.join(CONTROLLERS)}")
    for name, module in CONTROLLERS.items():
        if name not in without:
            cast("_Module", import_module(f"{__name__}.{module}")).add_to(manager, options)
