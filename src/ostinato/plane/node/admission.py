"""Admission of Pods by a node: resources, node affinity and host ports, as kubelet's predicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.placement.node_selectors import matcher
from ostinato.plane.placement.resources import RequestsSpec, Resources, requests_of

_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not listened on


class Rejection(msgspec.Struct, frozen=True):
    """Why a Pod is rejected."""

    reason: str
    message: str


class NodeInfo(msgspec.Struct, frozen=True):
    """The properties of a node that admission checks."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, Quantity]


def selects_nodes(pod: Pod) -> bool:
    """Return whether a Pod can run only on nodes with certain labels."""
    affinity = pod.spec.affinity
    return bool(pod.spec.node_selector) or (affinity is not None and affinity.node_affinity is not None)


def rejection_of(pod: Pod, node: NodeInfo, others: Iterable[Pod]) -> Rejection | None:
    """Return why a Pod cannot run beside `others`; None if it can. Resources unknown to the node are ignored."""
    others = list(others)
    if (insufficient := insufficient_resource(pod, node, others)) is not None:
        return insufficient
    if not _fits(pod, node):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    taken_ports = {port for other in others for port in _ports(other)}
    if any(_clashes(port, each) for port in _ports(pod) for each in taken_ports):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def insufficient_resource(pod: Pod, node: NodeInfo, others: Iterable[Pod]) -> Rejection | None:
    """Return which resource of the node does not suffice for a Pod beside `others`."""
    others = list(others)
    requested, used = _requests(pod), Resources()
    for other in others:
        used.add(_requests(other), 1)
    amounts = {
        "pods": (1, len(others)),
        "cpu": (requested.cpu, used.cpu),
        "memory": (requested.memory, used.memory),
        "ephemeral-storage": (requested.storage, used.storage),
    }
    for name, (wanted, taken) in amounts.items():
        capacity = node.allocatable.get(name, Quantity(0))
        most = capacity.milli_value() if name == "cpu" else capacity.value()
        if wanted and wanted + taken > most:
            text = f"Node didn't have enough resource: {name}, requested: {wanted}, used: {taken}, capacity: {most}"
            return Rejection(f"OutOf{name}", text)
    return None


def requests_more(pod: Pod, before: Pod) -> bool:
    """Return whether a Pod requests more CPU or memory than before."""
    new, old = _requests(pod), _requests(before)
    return new.cpu > old.cpu or new.memory > old.memory


def _failed(predicate: str, text: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {text}")


def _requests(pod: Pod) -> Resources:
    return requests_of(msgspec.convert(to_dict(pod.spec), RequestsSpec))


def _fits(pod: Pod, node: NodeInfo) -> bool:
    if not pod.spec.node_selector.items() <= node.labels.items():
        return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return True
    return matcher(required.node_selector_terms)(node.labels, node.name)


def _ports(pod: Pod) -> list[tuple[str, str, int]]:
    containers = [*pod.spec.containers, *(each for each in pod.spec.init_containers if each.restart_policy == "Always")]
    return [
        (port.host_ip or "", port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port
    ]


def _clashes(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or one[0] in _ANY_ADDRESS or other[0] in _ANY_ADDRESS)
