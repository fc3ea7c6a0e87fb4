"""A front end in a manager, with the permissions that are derived for it, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.stage.kinds import Widget, definition, widget

from ostinato.api.gvk import GroupVersionKind
from ostinato.client import Client, MergePatch, Unstructured
from ostinato.controllers import Context, controller
from ostinato.frontends.kernel.controller import SyncController, SyncOptions
from ostinato.frontends.kernel.sync import Ready, SyncRequest, SyncResult
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import ClusterManager, Eventually, VirtualClock

GADGET = GroupVersionKind("example.dev", "v1", "Gadget")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def decide(request: SyncRequest) -> SyncResult:
    assert request.parent is not None
    name = request.parent["metadata"]["name"]
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": name}}
    ready = Ready(ready=bool(request.children["ConfigMap.v1"]), reason="Observed")
    return SyncResult(children=[child], status={"ready": 1}, ready=ready, resync_after=3600)


def syncs() -> SyncController:
    return SyncController("syncs", Widget, decide, SyncOptions(children=(CONFIG_MAP,)))


async def test_it_runs_beside_a_controller_with_derived_permissions_and_one_cache(
    manager: ClusterManager, client: Client, eventually: Eventually, clock: VirtualClock
) -> None:
    seen: list[str] = []

    @controller(ConfigMap)
    async def reading(each: ConfigMap, ctx: Context) -> None:
        seen.append(each.metadata.name)

    front_end = syncs()
    await manager.start(front_end, reading)
    await client.create(widget("a"))
    made = await eventually(ConfigMap, "a")
    assert made.data == {"of": "a"}
    found = await eventually(Widget, "a", _is_ready)
    assert found.status is not None
    assert found.status.observed_generation == 1
    assert "a" in seen
    assert len(manager.informers.all(CONFIG_MAP)) == 1
    assert front_end.has_synced
    await clock.advance(3700)
    assert manager.unread_errors() == []


def _is_ready(each: Any) -> bool:
    return bool(each.status and [one.status for one in each.status.conditions] == ["True"])


async def test_a_child_of_a_custom_kind_is_watched_with_derived_permissions(
    manager: ClusterManager, client: Client, eventually: Eventually, clock: VirtualClock
) -> None:
    async def gadgets(_: SyncRequest) -> SyncResult:
        child = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
        return SyncResult(children=[child])

    await client.create(definition("Gadget", "gadgets"))
    await manager.start(SyncController("syncs", Widget, gadgets, SyncOptions(children=(GADGET,))))
    await client.create(widget("a"))
    await eventually(Unstructured(GADGET), "g")
    await client.patch(Unstructured(GADGET), "g", MergePatch({"spec": {"size": 2}}))
    await clock.advance(5)
    await eventually(Unstructured(GADGET), "g", lambda each: each["spec"] == {"size": 1})
