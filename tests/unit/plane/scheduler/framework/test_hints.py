from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plane.scheduler.fixture import Json, entry, node, pod
from tests.unit.plane.scheduler.plugins.test_filters import affinity, expression, must, near, spread

from ostinato.kinds.core_v1 import Node, PersistentVolumeClaim, Pod
from ostinato.plane.scheduler import default_plugins
from ostinato.plane.scheduler.cache.node_info import NodeFacts, read_node
from ostinato.plane.scheduler.cache.pod_info import PodInfo, PodReader
from ostinato.plane.scheduler.framework.events import CLAIM, NODE, POD, Action, ClusterEvent, node_changes, pod_changes

PLUGINS = {weighted.plugin.name: weighted.plugin for weighted in default_plugins()}
X, Y = {"labels": {"zone": "x"}}, {"labels": {"zone": "y"}}
IN_X = {"nodeSelector": {"zone": "x"}}
SPREAD = {"topologySpreadConstraints": [spread()]}
APART = {"affinity": must("podAntiAffinity", near("zone", {}))}
TOGETHER = {"affinity": must("podAffinity", near("zone", {}))}
HARD = {"key": "hard", "effect": "NoSchedule"}


def facts(**given: Any) -> NodeFacts:
    return read_node(entry(Node, node("a", **given)))


def info(where: str = "", **given: Any) -> PodInfo:
    return PodReader().read(entry(Pod, pod(**given))).on(where)


def is_worth(plugin: str, waiting: PodInfo, event: ClusterEvent) -> bool:
    return any(hint.is_worth_requeuing(waiting, event) for hint in PLUGINS[plugin].hints())


@pytest.mark.parametrize(
    ("plugin", "waiting", "comes", "worth"),
    [
        ("NodeUnschedulable", {}, {}, True),
        ("NodeUnschedulable", {}, {"unschedulable": True}, False),
        ("NodeName", {}, {}, True),
        ("NodePorts", {}, {}, True),
        ("TaintToleration", {}, {}, True),
        ("TaintToleration", {}, {"taints": [HARD]}, False),
        ("TaintToleration", {"tolerations": [{"operator": "Exists"}]}, {"taints": [HARD]}, True),
        ("NodeAffinity", IN_X, X, True),
        ("NodeAffinity", IN_X, Y, False),
        ("NodeAffinity", {"affinity": affinity(expression("gpu", "Exists"))}, {"labels": {"gpu": ""}}, True),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "8"}, True),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "2"}, False),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "8", "pods": "0"}, False),
        ("PodTopologySpread", SPREAD, {"labels": {"zone": "z"}}, True),
        ("PodTopologySpread", SPREAD, {}, False),
        ("InterPodAffinity", TOGETHER, {"labels": {"zone": "z"}}, True),
        ("InterPodAffinity", TOGETHER, {}, False),
        ("InterPodAffinity", APART, {}, True),
    ],
)
def test_hints_for_added_nodes(plugin: str, waiting: Json, comes: Json, worth: bool) -> None:
    assert is_worth(plugin, info(**waiting), ClusterEvent(NODE, Action.ADD, new=facts(**comes))) is worth


@pytest.mark.parametrize(
    ("plugin", "waiting", "before", "after", "worth"),
    [
        ("NodeUnschedulable", {}, {"unschedulable": True}, {}, True),
        ("TaintToleration", {}, {"taints": [HARD]}, {}, True),
        ("TaintToleration", {}, {}, {"taints": [HARD]}, False),
        ("TaintToleration", {}, X, Y, False),
        ("NodeAffinity", IN_X, {}, X, True),
        ("NodeAffinity", IN_X, X, {}, False),
        ("NodeAffinity", IN_X, X, {"labels": {"zone": "x", "a": "b"}}, False),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "2"}, {"cpu": "8"}, True),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "2"}, {"cpu": "3"}, False),
        ("NodeResourcesFit", {"cpu": "4"}, {"cpu": "8"}, {"cpu": "6"}, False),
        ("NodeResourcesFit", {"cpu": "4"}, {"memory": "1Gi"}, {"memory": "2Gi"}, False),
        ("NodeResourcesFit", {"cpu": "4"}, {"pods": "1"}, {"pods": "2"}, True),
        ("PodTopologySpread", SPREAD, X, Y, True),
        ("PodTopologySpread", SPREAD, {"labels": {"rack": "x"}}, {"labels": {"rack": "y"}}, False),
        ("InterPodAffinity", TOGETHER, {}, Y, True),
        ("InterPodAffinity", APART, Y, {}, True),
        ("InterPodAffinity", APART, {}, Y, False),
    ],
)
def test_hints_for_updated_nodes(plugin: str, waiting: Json, before: Json, after: Json, worth: bool) -> None:
    changes = node_changes(facts(**before), facts(**after))
    assert any(is_worth(plugin, info(**waiting), change) for change in changes) is worth


PORT = {"containers": [{"name": "app", "ports": [{"hostPort": 80}]}]}
CLAIMS = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
FAR = {"affinity": must("podAntiAffinity", near("zone", {"app": "web"}))}
WEB: dict[str, Any] = {"labels": {"app": "web"}}


@pytest.mark.parametrize(
    ("plugin", "waiting", "goes", "worth"),
    [
        ("NodeResourcesFit", {"cpu": "1"}, {}, True),
        ("NodePorts", PORT, PORT, True),
        ("NodePorts", PORT, {}, False),
        ("VolumeRestrictions", CLAIMS, CLAIMS, True),
        ("VolumeRestrictions", CLAIMS, {**CLAIMS, "namespace": "other"}, False),
        ("PodTopologySpread", SPREAD, WEB, True),
        ("PodTopologySpread", SPREAD, {}, False),
        ("PodTopologySpread", SPREAD, {**WEB, "namespace": "other"}, False),
        ("InterPodAffinity", FAR, WEB, True),
        ("InterPodAffinity", FAR, {}, False),
        ("InterPodAffinity", WEB, FAR, True),
        ("TaintToleration", {}, {}, False),
        ("NodeAffinity", {}, {}, False),
    ],
)
def test_hints_for_deleted_pods(plugin: str, waiting: Json, goes: Json, worth: bool) -> None:
    event = ClusterEvent(POD, Action.DELETE, old=info("a", **goes))
    assert is_worth(plugin, info(**waiting), event) is worth


@pytest.mark.parametrize(
    ("plugin", "waiting", "comes", "worth"),
    [
        ("InterPodAffinity", {"affinity": must("podAffinity", near("zone", {"app": "web"}))}, WEB, True),
        ("InterPodAffinity", {"affinity": must("podAffinity", near("zone", {"app": "web"}))}, {}, False),
        ("InterPodAffinity", FAR, WEB, False),
        ("PodTopologySpread", SPREAD, WEB, True),
        ("NodeResourcesFit", {"cpu": "1"}, {}, False),
    ],
)
def test_hints_for_added_pods(plugin: str, waiting: Json, comes: Json, worth: bool) -> None:
    event = ClusterEvent(POD, Action.ADD, new=info("a", **comes))
    assert is_worth(plugin, info(**waiting), event) is worth


def test_hints_for_pods_scaled_down() -> None:
    (change,) = pod_changes(info("a", cpu="2"), info("a", cpu="1"))
    assert change.action == Action.POD_SCALE_DOWN
    assert is_worth("NodeResourcesFit", info(cpu="1"), change)
    assert not is_worth("NodeResourcesFit", info(memory="1Gi"), change)
    assert pod_changes(info("a", cpu="1"), info("a", cpu="2")) == []


def test_hints_for_claims() -> None:
    made = entry(PersistentVolumeClaim, {"metadata": {"name": "data", "namespace": "default"}})
    event = ClusterEvent(CLAIM, Action.ADD, new=made)
    for plugin in ("VolumeRestrictions", "VolumeBinding", "VolumeZone"):
        assert is_worth(plugin, info(**CLAIMS), event)
        assert not is_worth(plugin, info(), event)


def test_node_heartbeats_trigger_no_hints() -> None:
    assert node_changes(facts(), facts()) == []
