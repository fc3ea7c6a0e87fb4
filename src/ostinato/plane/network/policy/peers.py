"""Pods, as network policies see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.api.object import Object
from ostinato.api.struct import BuiltinStruct


class PolicyPod(msgspec.Struct, frozen=True):
    """A Pod with a network of its own.

    - `addresses`: empty until it has some.
    - `ports`: numbers of the container ports, by name and protocol.
    """

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    addresses: tuple[str, ...]
    ports: Mapping[tuple[str, str], int]


class _Port(BuiltinStruct):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class _Container(BuiltinStruct):
    ports: list[_Port] = []


class _Spec(BuiltinStruct):
    host_network: bool = False
    containers: list[_Container] = []
    init_containers: list[_Container] = []


class _Address(BuiltinStruct):
    ip: str = ""


class _Status(BuiltinStruct):
    phase: str = ""
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    pod_ips: list[_Address] = msgspec.field(default_factory=list, name="podIPs")


class PodView(Object, version="v1", kind="Pod", plural="pods"):
    """The fields of a Pod that policies need."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


def shares_machine(pod: PodView) -> bool:
    """Whether a Pod that asks for a network of its own uses that of its node: policies cannot be enforced then."""
    host = pod.status.host_ip
    return bool(host) and not pod.spec.host_network and any(each.ip == host for each in pod.status.pod_ips)


def peer_of(pod: Any, admitted: Sequence[str] = ()) -> PolicyPod | None:
    """The Pod; None if it has ended, or uses the network of its node.

    - `pod`: a `PodView`, or a Pod.
    - `admitted`: the addresses that it is about to start with. Default to those of its status.
    """
    if pod.spec.host_network or pod.status.phase in ("Succeeded", "Failed"):
        return None
    known = tuple(each.ip for each in pod.status.pod_ips or () if each.ip)
    if not admitted and pod.status.host_ip in known:
        return None
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return PolicyPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        labels=pod.metadata.labels,
        addresses=tuple(dict.fromkeys((*known, *admitted))),
        ports={
            (port.name, port.protocol or "TCP"): port.container_port
            for container in containers
            for port in container.ports
            if port.name
        },
    )
