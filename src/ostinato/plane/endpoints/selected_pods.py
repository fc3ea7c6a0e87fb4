"""The Pods of Services: which Services a Pod event concerns, and the Pods that a Service selects.

The cost of a change must not grow with the number of Pods of a Service, nor with the number of Services:

- A Pod is decoded once per resourceVersion (`SelectedPods`), and only if a Service selects it.
- An event that changes nothing of an endpoint enqueues nothing (`ForServices`): of the changes of a Pod's life, those
  that give it an address, change its readiness, or take it away.
- Pods are found by an index of their labels, which are equal for all Pods of a template.
- A large Service is reconciled at most once per period (`UpdateBatch`), like with kube-controller-manager's
  `--endpoint-updates-batch-period`; the period grows with its endpoints.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.api.selectors.labels import Selector
from ostinato.api.struct import BuiltinStruct
from ostinato.cache import Deleted, Entry, Event, IndexBy, Updated, by
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.store.entry import labels_from
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.kinds.core_v1 import Service
from ostinato.manager import Manager
from ostinato.plane.endpoints.pods import EndpointPod, service_selector
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.objects.pod_state import PodCondition, PodState
from ostinato.plane.ownership.event_handler import SelectingObjects
from ostinato.world import Clock

BY_LABELS: Final[IndexBy] = by("labels", lambda entry: f"{entry.key.namespace}/{entry.labels_json.decode()}")
"""Index: Pods by namespace and labels, as JSON."""

_FINISHED: Final = ("Succeeded", "Failed")
_SMALL: Final = 100  # endpoints up to which every change is written immediately
_PERIOD: Final = 0.00025  # seconds per endpoint between two reconciles of a larger Service


class SelectedPods:
    """Pods by the selectors of Services, each decoded once per resourceVersion."""

    def __init__(self, store: ReadableStore) -> None:
        """`store`: of the Pods, with the index `BY_LABELS`."""
        self._store = store
        self._known: dict[str, tuple[str, EndpointPod]] = {}  # by uid: (resourceVersion, Pod)

    def of(self, namespace: str, selector: Selector) -> list[EndpointPod]:
        """Return the Pods that a selector matches."""
        prefix = f"{namespace}/"
        start = len(prefix)
        return [
            self.at(entry)
            for value in self._store.index_values(BY_LABELS.name)
            if value.startswith(prefix) and selector.matches(labels_from(value[start:].encode()))
            for entry in self._store.by_index(BY_LABELS.name, value)
        ]

    def at(self, entry: Entry) -> EndpointPod:
        """Return a Pod in the state of a cache entry."""
        seen = self._known.get(entry.uid)
        if seen is not None and seen[0] == entry.resource_version:
            return seen[1]
        pod = _decoded(entry)
        self._known[entry.uid] = entry.resource_version, pod
        return pod

    def forget(self, entry: Entry) -> None:
        self._known.pop(entry.uid, None)

    def __len__(self) -> int:
        return len(self._known)


def selected_pods(manager: Manager) -> SelectedPods:
    """Return the Pods of a manager's informer, for one controller."""
    informer = manager.informers.of(PodState)
    ensure_index(informer, BY_LABELS)
    return SelectedPods(informer.store)


class ForServices(Handler):
    """Enqueues the Services that select a Pod, by its labels before and after the change.

    An event that changes no endpoint enqueues nothing.
    """

    def __init__(self, pods: SelectedPods) -> None:
        self._pods = pods
        self._selectors = SelectingObjects(Service, service_selector, version=_resource_version)

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._selectors.prepare(dependencies)

    def keys(self, event: Event) -> Keys:
        entry = event.object
        found = self._selectors.matching(entry)
        if isinstance(event, Updated):
            old = event.old
            if old.labels_json != entry.labels_json:
                return {*found, *self._selectors.matching(old)}
            if not found:
                return ()
            before = self._pods.at(old)
            after = self._pods.at(entry)
            return () if before == after or not (before.ips or after.ips) else found
        has_address = bool(found) and bool(self._pods.at(entry).ips)
        if isinstance(event, Deleted):
            self._pods.forget(entry)
        return found if has_address else ()


class UpdateBatch:
    """Limits how often a large Service is reconciled: changes within a period are written together."""

    def __init__(self) -> None:
        self._next: dict[NamespacedName, float] = {}  # when a large Service may be reconciled again

    def wait(self, service: NamespacedName, clock: Clock) -> float:
        """Return the seconds until the Service may be reconciled; 0 if it may now."""
        at = self._next.get(service)
        return 0.0 if at is None else max(0.0, at - clock.monotonic())

    def reconciled(self, service: NamespacedName, endpoints: int, clock: Clock) -> None:
        if endpoints > _SMALL:
            self._next[service] = clock.monotonic() + endpoints * _PERIOD
        else:
            self._next.pop(service, None)

    def forget(self, service: NamespacedName) -> None:
        self._next.pop(service, None)


def _resource_version(entry: Entry) -> str:
    return entry.resource_version  # Services have no generation


class _Port(BuiltinStruct):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class _Container(BuiltinStruct):
    ports: list[_Port] = []
    restart_policy: str = ""


class _Spec(BuiltinStruct):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []


class _Address(BuiltinStruct):
    ip: str = ""


class _Status(BuiltinStruct):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: list[_Address] = msgspec.field(name="podIPs", default_factory=list)
    conditions: list[PodCondition] = []


class _Pod(Object, version="v1", kind="Pod", plural="pods"):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


def _decoded(entry: Entry) -> EndpointPod:
    pod = entry.read(_Pod)
    spec, status = pod.spec, pod.status
    ready = next((each for each in status.conditions if each.type == "Ready"), None)
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    return EndpointPod(
        namespace=entry.key.namespace,
        name=entry.key.name,
        uid=entry.uid,
        node_name=spec.node_name,
        hostname=spec.hostname,
        subdomain=spec.subdomain,
        ips=tuple(each.ip for each in status.pod_ips) or ((status.pod_ip,) if status.pod_ip else ()),
        is_ready=ready is not None and ready.status == "True",
        is_terminating=entry.is_being_deleted,
        is_finished=status.phase in _FINISHED,
        ready_changed=None if ready is None else ready.last_transition_time,
        ports=tuple(
            (port.name, port.protocol, port.container_port)
            for container in (*spec.containers, *sidecars)
            for port in container.ports
        ),
    )
