from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod
from tests.unit.plane.scheduler.plugins.test_filters import expression

from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import StorageClass


def claim(name: str, **given: Any) -> Json:
    annotations = given.pop("annotations", {})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **given}
    return {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "spec": spec}


def volume(name: str, *nodes: str, size: str = "1Gi", labels: dict[str, str] | None = None, **given: Any) -> Json:
    spec: Json = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **given}
    if nodes:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [expression("kubernetes.io/hostname", "In", *nodes)]}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"phase": "Available"}}


def using(*claims: str) -> Json:
    return pod(volumes=[{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims])


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def test_a_bound_volume_restricts_nodes() -> None:
    fixture = SchedulerFixture(node("a"), node("b"))
    fixture.listers.put(PersistentVolumeClaim, claim("data", volumeName="disk", annotations=BOUND))
    assert fixture.message(using("data")) == '0/2 nodes are available: persistentvolume "disk" not found. not found'
    fixture.listers.put(PersistentVolume, volume("disk", "b"))
    assert fixture.reasons(using("data")) == {"a": ["node(s) didn't match PersistentVolume's node affinity"]}


def test_a_pod_waits_for_missing_and_unbound_claims() -> None:
    fixture = SchedulerFixture(node("a"))
    assert fixture.message(using("data")) == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    )
    fixture.listers.put(PersistentVolumeClaim, claim("data"))
    assert fixture.message(using("data")) == (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    )
    ephemeral = pod(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert fixture.message(ephemeral) == (
        "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "
        '"p-scratch". not found'
    )


def test_wait_for_first_consumer_needs_a_free_volume_or_a_provisioner() -> None:
    fixture = SchedulerFixture(node("a"), node("b"), node("c", labels={"zone": "x"}))
    waiting = {"volumeBindingMode": "WaitForFirstConsumer"}
    fixture.listers.put(
        StorageClass,
        {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **waiting},
        {
            "metadata": {"name": "made"},
            "provisioner": "example.com/maker",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["x"]}]}],
            **waiting,
        },
    )
    fixture.listers.put(
        PersistentVolumeClaim, claim("data", storageClassName="local"), claim("new", storageClassName="made")
    )
    fixture.listers.put(
        PersistentVolume,
        volume("small", "a", size="1Mi", storageClassName="local"),
        volume("fits", "b", storageClassName="local"),
        volume("taken", "c", storageClassName="local", claimRef={"namespace": "default", "name": "somebody"}),
    )
    none = ["node(s) didn't find available persistent volumes to bind"]
    assert fixture.reasons(using("data")) == {"a": none, "c": none}
    assert fixture.reasons(using("new")) == {"a": none, "b": none}


def test_a_volume_zone_restricts_nodes() -> None:
    zone = "topology.kubernetes.io/zone"
    fixture = SchedulerFixture(node("a", labels={zone: "x"}), node("b", labels={zone: "y"}), node("c"))
    fixture.listers.put(PersistentVolumeClaim, claim("data", volumeName="disk", annotations=BOUND))
    fixture.listers.put(PersistentVolume, volume("disk", labels={zone: "y__z"}))
    assert fixture.reasons(using("data")) == {"a": ["node(s) had no available volume zone"]}


def test_a_read_write_once_pod_claim_is_used_by_one_pod() -> None:
    fixture = SchedulerFixture(node("a"), node("b"))
    fixture.listers.put(
        PersistentVolumeClaim,
        claim("data", volumeName="disk", annotations=BOUND, accessModes=["ReadWriteOncePod"]),
    )
    fixture.listers.put(PersistentVolume, volume("disk"))
    assert fixture.fits(using("data")) == {"a", "b"}
    fixture.put(using("data"), "a")
    in_use = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod"
    )
    assert fixture.reasons(using("data")) == {"a": [in_use], "b": [in_use]}


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, True),
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            False,
        ),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, {"awsElasticBlockStore": {"volumeID": "d"}}, True),
        ({"iscsi": {"iqn": "d"}}, {"iscsi": {"iqn": "e"}}, False),
        (
            {"rbd": {"monitors": ["m", "n"], "pool": "p", "image": "i"}},
            {"rbd": {"monitors": ["n"], "pool": "p", "image": "i"}},
            True,
        ),
    ],
)
def test_a_disk_is_attached_once_per_node(one: Json, other: Json, conflict: bool) -> None:
    fixture = SchedulerFixture(node("a"), node("b"))
    fixture.put(pod("old", volumes=[{"name": "d", **one}]), "a")
    reasons = fixture.reasons(pod(volumes=[{"name": "d", **other}]))
    assert reasons == ({"a": ["node(s) had no available disk"]} if conflict else {})
