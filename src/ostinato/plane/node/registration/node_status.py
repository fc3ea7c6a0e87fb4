"""The Node object of a machine, its status, and its Lease."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.api.time import MicroTime, Time
from ostinato.kinds.coordination_v1 import Lease, LeaseSpec
from ostinato.kinds.core_v1 import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    NodeSystemInfo,
)

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
VERSION: Final = "v1.36.4"
PORT: Final = 10250  # default port of a node's HTTPS API

_HEALTHY: Final = (  # type, status, reason, message
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY: Final = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")


POD_NETWORK_READY: Final = "PodNetworkReady"
"""Reason of the condition NetworkUnavailable if each Pod has a network of its own."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a machine that its Node reports."""

    name: str
    addresses: tuple[str, ...]  # one of each IP family
    runtime: str  # version of the container runtime
    capacity: dict[str, str]
    labels: dict[str, str] = {}
    kernel: str = "simulated"
    image: str = "Ostinato"
    architecture: str = "amd64"
    id: str = ""
    boot_id: str = ""
    port: int = PORT  # of the node's HTTPS API
    network: tuple[str, str] | None = None  # reason and message of the condition NetworkUnavailable, if it has one

    @property
    def address(self) -> str:
        return self.addresses[0]


def node_of(machine: Machine) -> Node:
    """Return the Node for its registration."""
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.architecture,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": machine.architecture,
    }
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    return Node(metadata=ObjectMeta(name=machine.name, labels=labels | machine.labels, annotations=annotations))


def status_of(machine: Machine, before: NodeStatus, now: Time, not_ready: str = "") -> NodeStatus:
    """Return the status of a healthy node; conditions whose status is unchanged keep their transition time.

    `not_ready`: why the node is not ready. Defaults to ready.
    """
    known = {each.type: each for each in before.conditions}
    conditions = []
    ready = ("Ready", "False", "KubeletNotReady", not_ready) if not_ready else _READY
    own_conditions = [*_HEALTHY, ready]
    # A kubelet does not report this condition, so neither does a node without anything to say about it.
    if machine.network is not None and (machine.network[0] != POD_NETWORK_READY or "NetworkUnavailable" in known):
        own_conditions.append(("NetworkUnavailable", "False", *machine.network))
    for name, status, reason, message in own_conditions:
        old = known.get(name)
        since = old.last_transition_time if old is not None and old.status == status else now
        conditions.append(
            NodeCondition(
                type=name,
                status=status,
                reason=reason,
                message=message,
                last_heartbeat_time=now,
                last_transition_time=since,
            )
        )
    own = {each.type for each in conditions}
    capacity = {name: Quantity(amount) for name, amount in machine.capacity.items()}
    return msgspec.structs.replace(
        before,
        volumes_attached=[],  # omitted from the patch: written by the attach/detach controller
        volumes_in_use=[],  # and by the volume manager
        addresses=[
            *(NodeAddress(type="InternalIP", address=each) for each in machine.addresses),
            NodeAddress(type="Hostname", address=machine.name),
        ],
        capacity=capacity,
        allocatable=dict(capacity),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=machine.port)),
        conditions=[*conditions, *(each for name, each in known.items() if name not in own)],
        node_info=NodeSystemInfo(
            architecture=machine.architecture,
            boot_id=machine.boot_id or machine.id,
            container_runtime_version=machine.runtime,
            kernel_version=machine.kernel,
            kube_proxy_version="",
            kubelet_version=VERSION,
            machine_id=machine.id,
            operating_system="linux",
            os_image=machine.image,
            system_uuid=machine.id,
        ),
    )


def lease_of(machine: Machine, now: MicroTime) -> Lease:
    spec = LeaseSpec(holder_identity=machine.name, lease_duration_seconds=LEASE_SECONDS, renew_time=now)
    return Lease(metadata=ObjectMeta(name=machine.name, namespace=LEASE_NAMESPACE), spec=spec)
