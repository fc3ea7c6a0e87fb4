"""Node graph: the objects that the Pods of each node reference.

Built with the first request of a node and updated by store events: a Pod counts from its durable binding to its
removal. Only references are decoded, when a Pod is bound or its references may have changed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ostinato.server.access.authorization.references import OfVolume, Reference, of_pod, of_volume

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.store.collection import Collection
    from ostinato.server.store.records import Entry, Event

# Substrings of the Pod fields whose references can change after binding.
_CHANGING = (b"phemeralContainers", b"esourceClaimStatus")


class NodeGraph:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._pods_collection = _collection(registry, "", "pods")
        self._volumes_collection = _collection(registry, "", "persistentvolumes")
        self._following = False
        self._pods: dict[str, _BoundPod] = {}  # by key
        self._nodes: dict[Reference, Counter[str]] = {}  # by object: number of referencing Pods per node
        self._volumes: dict[str, OfVolume] = {}  # by name; bound volumes only
        self._by_secret: dict[Reference, set[str]] = {}  # names of the volumes that need the Secret

    def needs(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether an object is related to a node, through its Pods or directly."""
        self._follow()
        if resource == "persistentvolumes":
            volume = self._volumes.get(name)
            return volume is not None and self._refers(node, volume.claim)
        if resource == "pods":
            entry = self._pods_collection.entries.get(f"{namespace}/{name}")
            return entry is not None and entry.fields["spec.nodeName"] == node
        if resource in _OF_NODES:
            return self._belongs(node, resource, name)
        reference = Reference(resource, name, namespace)
        if self._refers(node, reference):
            return True
        volumes = self._by_secret.get(reference, ())
        return any(self._refers(node, self._volumes[volume].claim) for volume in volumes)

    def _refers(self, node: str, reference: Reference) -> bool:
        nodes = self._nodes.get(reference)
        return nodes is not None and node in nodes

    def _belongs(self, node: str, resource: str, name: str) -> bool:
        """Whether an object names the node in its spec."""
        group, version = _OF_NODES[resource]
        found = self._registry.get(group, version, resource)
        entry = None if found is None or found.collection is None else found.collection.entries.get(name)
        if entry is None:
            return False
        named: bool = msgspec.json.decode(entry.data).get("spec", {}).get("nodeName") == node
        return named

    # Store events

    def _follow(self) -> None:
        if self._following:
            return
        self._following = True
        self._pods_collection.hub.listen(self._pod_event)
        self._volumes_collection.hub.listen(self._volume_event)
        for entry in self._pods_collection.entries.values():
            self._add_pod(entry)
        for entry in self._volumes_collection.entries.values():
            self._add_volume(entry)

    def _pod_event(self, event: Event) -> None:
        entry, previous = event.entry, event.previous
        if entry is None:
            self._remove_pod(event.key)
        elif not entry.fields["spec.nodeName"]:
            if event.key in self._pods:  # replaced by a Pod with the same name
                self._remove_pod(event.key)
        elif previous is None or self._may_differ(previous, entry):
            self._remove_pod(event.key)
            self._add_pod(entry)

    def _may_differ(self, previous: Entry, entry: Entry) -> bool:
        """Whether the references of a Pod may differ between two states: most are immutable."""
        if previous.uid != entry.uid or previous.fields["spec.nodeName"] != entry.fields["spec.nodeName"]:
            return True
        return self._pods[entry.key].changing or _is_changing(entry)

    def _add_pod(self, entry: Entry) -> None:
        node = entry.fields["spec.nodeName"]
        if not node:
            return
        namespace = entry.key.partition("/")[0]
        references = frozenset(each._replace(namespace=namespace) for each in of_pod(entry.data))
        self._pods[entry.key] = _BoundPod(node, references, _is_changing(entry))
        for reference in references:
            counts = self._nodes.get(reference)
            if counts is None:
                counts = self._nodes[reference] = Counter()
            counts[node] += 1

    def _remove_pod(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        node = pod.node
        for reference in pod.references:
            counts = self._nodes[reference]
            counts[node] -= 1
            if not counts[node]:
                del counts[node]
                if not counts:
                    del self._nodes[reference]

    def _volume_event(self, event: Event) -> None:
        old = self._volumes.pop(event.key, None)
        for secret in () if old is None else old.secrets:
            self._by_secret[secret].discard(event.key)
            if not self._by_secret[secret]:
                del self._by_secret[secret]
        if event.entry is not None:
            self._add_volume(event.entry)

    def _add_volume(self, entry: Entry) -> None:
        volume = of_volume(entry.data)
        if volume is None:
            return
        self._volumes[entry.key] = volume
        for secret in volume.secrets:
            self._by_secret.setdefault(secret, set()).add(entry.key)


# Group and version of the resources whose spec names the node.
_OF_NODES = {"volumeattachments": ("storage.k8s.io", "v1"), "resourceslices": ("resource.k8s.io", "v1")}


class _BoundPod(NamedTuple):
    node: str
    references: frozenset[Reference]
    changing: bool  # has mutable references


def _is_changing(entry: Entry) -> bool:
    return any(field in entry.data for field in _CHANGING)


def _collection(registry: Registry, group: str, name: str) -> Collection:
    resource = registry.get(group, "v1", name)
    assert resource is not None
    assert resource.collection is not None
    return resource.collection
