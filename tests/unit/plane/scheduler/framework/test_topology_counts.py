"""Counts of matching Pods, and what is looked at for them."""

from __future__ import annotations

from tests.unit.plane.scheduler.fixture import SchedulerFixture, node, pod

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.topology_counts import TopologyCounts

HOSTNAME = "kubernetes.io/hostname"


class Watched(TopologyCounts):
    looked_at = 0

    def count(self, node: NodeInfo) -> int:
        self.looked_at += 1
        return super().count(node)


def of(app: str) -> Watched:
    return Watched(lambda shape: int(shape.labels.get("app") == app), HOSTNAME)


def test_the_pods_of_nodes_are_looked_at_only_if_one_counts() -> None:
    fixture = SchedulerFixture(node("a"), node("b"))
    fixture.put(pod("old", labels={"app": "old"}), "a")
    old, new = of("old"), of("new")
    for each in (old, new):
        each.update(fixture.snapshot)
    assert (old.looked_at, old.in_domain) == (1, {"a": 1, "b": 0})
    assert (new.looked_at, new.in_domain) == (0, {"a": 0, "b": 0})
    fixture.put(pod("new", labels={"app": "new"}), "b")
    new.update(fixture.snapshot)
    assert (new.looked_at, new.in_domain, new.total) == (0, {"a": 0, "b": 1}, 1)


def test_a_shape_without_pods_is_forgotten() -> None:
    fixture = SchedulerFixture(node("a"))
    fixture.put(pod("old", labels={"app": "old"}), "a")
    (info,) = fixture.snapshot.nodes[0].pods.values()
    assert fixture.snapshot.shapes == {info.shape: 1}
    fixture.snapshot.remove_pod(info.uid)
    assert not fixture.snapshot.shapes
