"""The store with backups: a chart and a hook in one process, on one cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato import Client
from ostinato.client import Unstructured
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import ClusterManager, Eventually, VirtualClock, load


@pytest.fixture
def operator() -> Any:
    return load(Path(__file__).resolve().parents[2] / "examples" / "store_with_backups" / "stores.py")


def store(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "stores.example.dev/v1",
        "kind": "Store",
        "metadata": {"name": name},
        "spec": spec,
    }


async def test_a_store_is_deployed_by_the_chart_and_backed_up_by_the_hook(
    operator: Any, manager: ClusterManager, client: Client, eventually: Eventually, clock: VirtualClock
) -> None:
    await manager.start(operator.stores, operator.hourly_backups)
    await client.create(store("orders", replicas=2))
    await client.create(store("cache", backups={"enabled": False}))
    await eventually(Deployment, "orders", lambda each: each.spec.replicas == 2)
    await eventually(ConfigMap, "orders-backups")
    await eventually(Deployment, "cache")
    assert await client.get(ConfigMap, "cache-backups", missing=None) is None
    assert await client.list(Job) == []
    assert len(manager.informers.all(operator.STORE)) == 1
    await clock.advance(6 * 60)
    made = await eventually(Job, "orders-2026010100")
    assert [each.metadata.name for each in await client.list(Job)] == ["orders-2026010100"]
    assert made.metadata.owner_references[0].name == "orders"
    await clock.advance(3600)
    await eventually(Job, "orders-2026010101")


async def test_a_deleted_store_is_uninstalled(
    operator: Any, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await manager.start(operator.stores, operator.hourly_backups)
    await client.create(store("orders"))
    await eventually(Deployment, "orders")
    await client.delete(Unstructured(operator.STORE), "orders")
    await eventually(Deployment, "orders", gone=True)
