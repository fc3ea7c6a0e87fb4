"""Keys of objects in etcd."""

from __future__ import annotations

import pytest

from ostinato.server.resources.registry import Registry
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

LAYOUT = Layout("/registry")
KEYS = [
    ("pods", "default/a", b"/registry/pods/default/a"),
    ("services", "default/a", b"/registry/services/specs/default/a"),
    ("endpoints", "default/a", b"/registry/services/endpoints/default/a"),
    ("nodes", "a", b"/registry/minions/a"),
    ("ingresses.networking.k8s.io", "default/a", b"/registry/ingress/default/a"),
    ("leases.coordination.k8s.io", "default/a", b"/registry/leases/default/a"),
    ("apiservices.apiregistration.k8s.io", "v1.", b"/registry/apiregistration.k8s.io/apiservices/v1."),
    ("widgets.example.com", "default/a", b"/registry/example.com/widgets/default/a"),
    ("planets.example.com", "a", b"/registry/example.com/planets/a"),
    ("servicenodeports.ranges", "servicenodeports", b"/registry/ranges/servicenodeports"),
    ("masterleases", "192.0.2.1", b"/registry/masterleases/192.0.2.1"),
]


@pytest.mark.parametrize(("collection", "key", "place"), KEYS)
def test_keys_are_those_of_kube_apiserver(collection: str, key: str, place: bytes) -> None:
    assert LAYOUT.key(collection, key) == place
    assert LAYOUT.split(place) == (collection, key)


@pytest.mark.parametrize(
    "key",
    [
        b"/registry/peerserverleases/apiserver-a",
        b"/registry/pods",
        b"/registry/pods/",
        b"/registry/example.com/widgets",
        b"/registry/\xff/a",
        b"/registry/",
    ],
)
def test_other_keys_belong_to_no_collection(key: bytes) -> None:
    assert LAYOUT.split(key) is None


def test_every_stored_built_in_kind_has_a_place() -> None:
    world = Simulation(1)
    registry = Registry(LocalIndex(MemoryLog(), world.clock), world)
    unstored = {"componentstatuses"}
    for resource in registry:
        if resource.collection is not None and resource.gvr.resource not in unstored:
            stored = LAYOUT.stored(resource.collection.name)
            assert stored is not None, resource.collection.name
            assert stored.kind == resource.storage_gvk.kind
