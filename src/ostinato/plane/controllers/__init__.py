"""The controllers of kube-controller-manager, under the names that it gives them.

    add_controllers(manager, Options(), without={"cronjob-controller"})

Each module has a function `add_to(manager, options)` that adds its controllers to a manager. A module is imported when
its controller is added.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from ostinato.plane.access import identities
from ostinato.plane.network.cidr_pool import PodRange
from ostinato.plane.network.pod_cidrs import Network

if TYPE_CHECKING:  # the names are used without it
    from ostinato.manager import Manager

FIELD_MANAGER: Final = identities.FIELD_MANAGER

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
    "node-ipam-controller": "nodes.ipam",
    "node-lifecycle-controller": "nodes.lifecycle",
    "persistentvolume-attach-detach-controller": "storage.attach_detach",
    "persistentvolume-binder-controller": "storage.volume_binder",
    "persistentvolume-csi-controller": "storage.csi",
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
    "volumeattributesclass-protection-controller": "storage.attributes_class_protection",
}
"""Controller name -> module."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the controllers.

    - `ca_certificate`, `ca_key`: CA that signs certificates and is published as `kube-root-ca.crt`. Default to None:
      nothing is signed or published.
    - `signing`: certificate and key of another CA that signs CertificateSigningRequests. Defaults to `ca_certificate`.
    - `volumes`: directory for dynamically provisioned volumes on this machine. Defaults to None: no volumes are
      provisioned.
    - `account_key`: private key of service account tokens; created if the file is missing. Defaults to None: token
      Secrets are not filled.
    - `csi`: sockets of CSI drivers on this machine whose volumes are provisioned, attached and expanded here. Defaults
      to none: drivers bring programs that do so.
    - `pod_ranges`: ranges of Pods that nodes get their Pod CIDRs from. Defaults to none: nodes get no Pod CIDRs.
    - `service_ranges`: ranges of Services, which are not used for Pods. Defaults to none.
    """

    ca_certificate: Path | None = None
    ca_key: Path | None = None
    signing: tuple[Path, Path] | None = None
    volumes: Path | None = None
    account_key: Path | None = None
    csi: tuple[Path, ...] = ()
    pod_ranges: tuple[PodRange, ...] = ()
    service_ranges: tuple[Network, ...] = ()


def ignore_warning(_warning: str) -> None:
    """Ignore warnings of the API server: controllers watch deprecated kinds on purpose."""


class _Module(Protocol):
    def add_to(self, manager: Manager, options: Options) -> None: ...


def add_controllers(manager: Manager, options: Options, *, without: Collection[str] = ()) -> None:
    """Add all controllers except those in `without`. Raises ValueError for an unknown name."""
    if unknown := sorted(set(without) - CONTROLLERS.keys()):
        raise ValueError(f"unknown controller {unknown[0]!r}; choose from {', '.join(CONTROLLERS)}")
    for name, module in CONTROLLERS.items():
        if name not in without:
            cast("_Module", import_module(f"{__name__}.{module}")).add_to(manager, options)
