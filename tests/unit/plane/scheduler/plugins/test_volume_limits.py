"""Limits of volumes per node, and capacities of storage."""

from __future__ import annotations

from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod

from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment

CSI = "dirs.csi"


def limited(count: int | None = 1) -> SchedulerFixture:
    """Two nodes; the driver permits `count` volumes on the first."""
    fixture = SchedulerFixture(node("a"), node("b"))
    fixture.listers.put(StorageClass, {"metadata": {"name": "dirs"}, "provisioner": CSI})
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    driver = {"name": CSI, "nodeID": "a", "topologyKeys": None} | allocatable
    fixture.listers.put(CSINode, {"metadata": {"name": "a"}, "spec": {"drivers": [driver]}})
    for name in ("v1", "v2"):
        csi = {"driver": CSI, "volumeHandle": name}
        fixture.listers.put(PersistentVolume, {"metadata": {"name": name}, "spec": {"csi": csi}})
        bound = {"volumeName": name, "storageClassName": "dirs"}
        metadata = {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        fixture.listers.put(PersistentVolumeClaim, {"metadata": metadata, "spec": bound})
    return fixture


def using(name: str, *claims: str) -> Json:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, volumes=volumes)


def reasons_on_a(fixture: SchedulerFixture, wanted: Json) -> list[str]:
    return fixture.reasons(wanted).get("a", [])


def test_a_node_takes_as_many_volumes_of_a_driver_as_its_csinode_permits() -> None:
    fixture = limited(1)
    assert reasons_on_a(fixture, using("p", "v1")) == []
    assert reasons_on_a(fixture, using("p", "v1", "v2")) == ["node(s) exceed max volume count"]
    fixture.put(using("old", "v1"), "a")
    assert reasons_on_a(fixture, using("p", "v2")) == ["node(s) exceed max volume count"]
    assert reasons_on_a(fixture, using("p", "v1")) == []  # it is there already
    assert fixture.where(using("p", "v2")) == "b"


def test_a_volume_that_is_still_attached_counts() -> None:
    fixture = limited(1)
    spec = {"attacher": CSI, "nodeName": "a", "source": {"persistentVolumeName": "v1"}}
    fixture.listers.put(VolumeAttachment, {"metadata": {"name": "csi-1"}, "spec": spec})
    assert reasons_on_a(fixture, using("p", "v2")) == ["node(s) exceed max volume count"]


def test_a_driver_without_a_limit_has_none() -> None:
    assert reasons_on_a(limited(None), using("p", "v1", "v2")) == []


def test_a_driver_can_prevent_scheduling_where_it_is_missing() -> None:
    fixture = limited(5)
    fixture.listers.put(
        CSIDriver, {"metadata": {"name": CSI}, "spec": {"preventPodSchedulingIfMissing": True, "attachRequired": True}}
    )
    assert fixture.where(using("p", "v1")) == "a"


def test_a_volume_is_provisioned_where_its_driver_has_capacity() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
    waiting = {"provisioner": CSI, "volumeBindingMode": "WaitForFirstConsumer"}
    fixture.listers.put(StorageClass, {"metadata": {"name": "dirs"}, **waiting})
    fixture.listers.put(CSIDriver, {"metadata": {"name": CSI}, "spec": {"storageCapacity": True}})
    for zone, size in (("x", "1Gi"), ("y", "10Gi")):
        metadata = {"name": f"in-{zone}", "namespace": "default"}
        topology = {"nodeTopology": {"matchLabels": {"zone": zone}}}
        capacity = {"metadata": metadata, "storageClassName": "dirs", "capacity": size, **topology}
        fixture.listers.put(CSIStorageCapacity, capacity)
    for name, size in (("large", "5Gi"), ("huge", "50Gi")):
        spec = {"storageClassName": "dirs", "resources": {"requests": {"storage": size}}}
        fixture.listers.put(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    assert fixture.where(using("p", "large")) == "b"
    assert fixture.reasons(using("p", "huge")) == {each: ["node(s) did not have enough free storage"] for each in "ab"}
