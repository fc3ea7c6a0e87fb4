"""The store with backups: a chart, a plan and a hook in one process, on one cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato import Client
from ostinato.client import MergePatch, Unstructured
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import ClusterManager, Eventually, VirtualClock, load

BACKUP = Unstructured.of("stores.example.dev/v1", "Backup")


@pytest.fixture
def operator() -> Any:
    return load(Path(__file__).resolve().parents[2] / "examples" / "store_with_backups" / "stores.py")


def store(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "stores.example.dev/v1", "kind": "Store", "metadata": {"name": name}, "spec": spec}


async def complete(client: Client, eventually: Eventually, name: str) -> None:
    """Complete a Job, as its controller does when its Pod has succeeded."""
    await eventually(Job, name)
    times = {"startTime": "2026-01-01T00:05:00Z", "completionTime": "2026-01-01T00:06:00Z"}
    conditions = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
    status = {"succeeded": 1, "conditions": conditions, **times}
    await client.patch(Job, name, MergePatch({"status": status}), subresource="status")


async def test_a_store_is_deployed_by_the_chart_and_backed_up_by_hook_and_plan(
    operator: Any, manager: ClusterManager, client: Client, eventually: Eventually, clock: VirtualClock
) -> None:
    await manager.start(operator.stores, operator.backups, operator.hourly_backups)
    await client.create(store("orders", replicas=2, backups={"target": "/far"}))
    await client.create(store("cache", backups={"enabled": False}))
    await eventually(Deployment, "orders", lambda each: each.spec.replicas == 2)
    await eventually(Deployment, "cache")
    assert (await client.get(ConfigMap, "orders-backups")).data == {"target": "/far"}
    assert await client.get(ConfigMap, "cache-backups", missing=None) is None
    assert len(manager.informers.all(operator.STORE)) == 1
    await clock.advance(6 * 60)
    made = await eventually(BACKUP, "orders-2026010100")
    assert made["spec"] == {"store": "orders", "target": "/far"}
    assert len(await client.list(BACKUP)) == 1

    await complete(client, eventually, "orders-2026010100-copy")
    assert await client.get(ConfigMap, "orders-last-backup", missing=None) is None
    await complete(client, eventually, "orders-2026010100-check")
    last = await eventually(ConfigMap, "orders-last-backup")
    assert last.data == {"path": "/far/orders-2026010100"}

    await clock.advance(3600)
    await eventually(BACKUP, "orders-2026010101")


async def test_a_deleted_store_is_uninstalled(
    operator: Any, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await manager.start(operator.stores)
    await client.create(store("orders"))
    await eventually(Deployment, "orders")
    await client.delete(Unstructured(operator.STORE), "orders")
    await eventually(Deployment, "orders", gone=True)
