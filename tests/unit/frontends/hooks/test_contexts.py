"""Binding contexts of executable hooks, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.frontends.hooks.stage import CONFIG_MAP, NAMESPACE, HookDirectory, config_map, short

from ostinato.client import Client, MergePatch
from ostinato.frontends.hooks import Hooks
from ostinato.testing import ClusterManager, VirtualClock

pytestmark = pytest.mark.ostinato(rbac=False)


@pytest.fixture
def hooks(tmp_path: Path) -> HookDirectory:
    return HookDirectory(tmp_path)


async def test_events_follow_the_first_list(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    hooks.add("a.sh", "{configVersion: v1, kubernetes: [{name: cms, kind: cm, labelSelector: {matchLabels: {t: a}}}]}")
    await client.create(config_map("first", labels={"t": "a"}))
    await client.create(config_map("other"))
    await manager.start(Hooks(hooks.root))
    await client.create(config_map("second", labels={"t": "a"}, key="1"))
    await clock.advance(1)
    await client.patch(CONFIG_MAP, "second", MergePatch({"data": {"key": "2"}}))
    await clock.advance(1)
    await client.patch(CONFIG_MAP, "second", MergePatch({"metadata": {"labels": {"t": None}}}))
    await clock.advance(1)
    found = hooks.contexts("a.sh")
    assert list(map(short, found)) == [
        "cms Synchronization first",
        "cms Added second",
        "cms Modified second",
        "cms Deleted second",
    ]
    assert found[0].keys() == {"binding", "type", "objects"}
    assert found[0]["objects"][0].keys() == {"object"}
    event = found[2]
    assert event.keys() == {"binding", "type", "watchEvent", "object"}
    assert event["type"] == "Event"
    assert (event["object"]["apiVersion"], event["object"]["kind"]) == ("v1", "ConfigMap")
    assert event["object"]["data"] == {"key": "2"}
    assert "managedFields" in event["object"]["metadata"]


async def test_an_empty_first_list_is_a_list(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager
) -> None:
    hooks.add(
        "a.sh", "{configVersion: v1, onStartup: 1, kubernetes: [{kind: Secret, nameSelector: {matchNames: [x]}}]}"
    )
    await manager.start(Hooks(hooks.root))
    await clock.advance(1)
    assert hooks.contexts("a.sh") == [
        {"binding": "onStartup"},
        {"binding": "kubernetes", "type": "Synchronization", "objects": []},
    ]


async def test_a_change_that_the_filter_does_not_show_is_no_event(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = """
configVersion: v1
kubernetes:
- name: cms
  kind: ConfigMap
  jqFilter: .data
  keepFullObjectsInMemory: false
  executeHookOnSynchronization: false
  includeSnapshotsFrom: [cms]
  nameSelector: {matchNames: [a]}
"""
    hooks.add("a.sh", config)
    await client.create(config_map("a", key="1"))
    await manager.start(Hooks(hooks.root))
    await client.patch(CONFIG_MAP, "a", MergePatch({"metadata": {"annotations": {"x": "y"}}}))
    await clock.advance(1)
    assert hooks.contexts("a.sh") == []
    await client.patch(CONFIG_MAP, "a", MergePatch({"data": {"key": "2"}}))
    await clock.advance(1)
    assert hooks.contexts("a.sh") == [
        {
            "binding": "cms",
            "type": "Event",
            "watchEvent": "Modified",
            "filterResult": {"key": "2"},
            "snapshots": {"cms": [{"filterResult": {"key": "2"}}]},
        }
    ]


async def test_contexts_of_a_group_become_the_last_with_all_snapshots(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = """
configVersion: v1
kubernetes:
- {name: ones, kind: ConfigMap, group: g, labelSelector: {matchLabels: {t: a}}}
- {name: twos, kind: Secret, group: g, nameSelector: {matchNames: [s]}}
schedule:
- {name: tick, crontab: "*/10 * * * * *", group: g}
"""
    hooks.add("a.sh", config)
    await manager.start(Hooks(hooks.root))
    assert hooks.contexts("a.sh") == [
        {"binding": "twos", "type": "Group", "groupName": "g", "snapshots": {"ones": [], "twos": []}}
    ]
    for name in "abc":
        await client.create(config_map(name, labels={"t": "a"}))
    await clock.advance(10)
    *events, tick = hooks.contexts("a.sh")[1:]
    assert [each["type"] for each in (*events, tick)] == ["Group"] * (len(events) + 1)
    assert tick["binding"] == "tick"
    assert [each["object"]["metadata"]["name"] for each in tick["snapshots"]["ones"]] == ["a", "b", "c"]


async def test_namespaces_follow_their_labels(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = """
configVersion: v1
kubernetes:
- name: cms
  kind: ConfigMap
  executeHookOnSynchronization: false
  namespace: {labelSelector: {matchLabels: {watch: "yes"}}}
schedule:
- {crontab: "@hourly", includeSnapshotsFrom: [cms]}
"""
    hooks.add("a.sh", config)
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await client.create(config_map("before", "team"))
    await manager.start(Hooks(hooks.root))
    await client.patch(NAMESPACE, "team", MergePatch({"metadata": {"labels": {"watch": "yes"}}}))
    await clock.advance(1)
    assert hooks.contexts("a.sh") == []  # objects that are there already are no events
    await client.create(config_map("during", "team"))
    await clock.advance(3600)
    added, tick = hooks.contexts("a.sh")
    assert short(added) == "cms Added during"
    assert [each["object"]["metadata"]["name"] for each in tick["snapshots"]["cms"]] == ["before", "during"]
    await client.patch(NAMESPACE, "team", MergePatch({"metadata": {"labels": {"watch": "no"}}}))
    await clock.advance(1)
    await client.create(config_map("after", "team"))
    await clock.advance(3600)
    assert hooks.contexts("a.sh")[2] == {"binding": "schedule", "type": "Schedule", "snapshots": {"cms": []}}


async def test_v0_contexts_name_the_object(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = '{"onStartup": 3, "onKubernetesEvent": [{"name": "e", "kind": "configmap", "event": ["add", "delete"]}]}'
    hooks.add("a.sh", config)
    await client.create(config_map("before"))
    await manager.start(Hooks(hooks.root))
    await client.create(config_map("a"))
    await client.patch(CONFIG_MAP, "a", MergePatch({"data": {"key": "2"}}))
    await client.delete(CONFIG_MAP, "a")
    await clock.advance(1)
    about = {"binding": "e", "resourceNamespace": "default", "resourceKind": "ConfigMap", "resourceName": "a"}
    assert hooks.contexts("a.sh") == [
        {"binding": "onStartup"},
        {**about, "resourceEvent": "add"},
        {**about, "resourceEvent": "delete"},
    ]


async def test_events_during_the_first_run_are_held_back(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = "{configVersion: v1, kubernetes: [{name: cms, kind: cm, labelSelector: {matchLabels: {t: a}}}]}"
    hooks.add("a.sh", config, "[[ $N -gt 1 ]]")  # fails twice
    await client.create(config_map("first", labels={"t": "a"}))
    await manager.start(Hooks(hooks.root))
    await client.create(config_map("second", labels={"t": "a"}))
    await clock.advance(6)
    await client.create(config_map("third", labels={"t": "a"}))
    await clock.advance(20)
    await client.create(config_map("fourth", labels={"t": "a"}))
    await clock.advance(1)
    assert list(map(short, hooks.contexts("a.sh"))) == [
        "cms Synchronization first",
        "cms Synchronization first,second",
        "cms Synchronization first,second,third",
        "cms Added fourth",
    ]
