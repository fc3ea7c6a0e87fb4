"""Tests of controllers: a cluster in this process, or a real one, for pytest, unittest and asyncio.

    async def test_a_widget_gets_a_deployment(manager, client, eventually):
        await manager.start(widgets)
        await client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(replicas=3)))
        await eventually(Deployment, "a", lambda each: each.spec.replicas == 3)

- `plugin` is the pytest plugin, with the fixtures `cluster`, `plane`, `client`, `manager`, `clock`, `events` and
  `eventually`. It runs `async def` tests that use them.
- `Cluster` is the same without pytest: `async with Cluster() as cluster:`; `ClusterTestCase` is for unittest.
- Each test has a cluster of its own. Controllers run with the permissions that `ostinato manifests` derives.
- `Cluster(kubeconfig=PATH)` and `pytest --cluster=PATH` run the same test on a real cluster, in a namespace of its own.

Names are imported on first use: the plugin is loaded by every run of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.lazy import lazy_names

if TYPE_CHECKING:
    from ostinato.testing.case import ClusterTestCase
    from ostinato.testing.clock import VirtualClock
    from ostinato.testing.cluster import Cluster
    from ostinato.testing.errors import NotOnThisCluster, UnexpectedErrors
    from ostinato.testing.events import Events, RecordedEvent
    from ostinato.testing.eventually import Eventually
    from ostinato.testing.faults import Fault
    from ostinato.testing.loading import load
    from ostinato.testing.manager import ClusterManager, ReconcileError
    from ostinato.testing.replaying import Recorded, recordings, replay

__all__ = [
    "Cluster",
    "ClusterManager",
    "ClusterTestCase",
    "Events",
    "Eventually",
    "Fault",
    "NotOnThisCluster",
    "ReconcileError",
    "Recorded",
    "RecordedEvent",
    "UnexpectedErrors",
    "VirtualClock",
    "load",
    "recordings",
    "replay",
]

_HOME = {
    "Cluster": "cluster",
    "ClusterManager": "manager",
    "ClusterTestCase": "case",
    "Events": "events",
    "Eventually": "eventually",
    "Fault": "faults",
    "NotOnThisCluster": "errors",
    "ReconcileError": "manager",
    "Recorded": "replaying",
    "RecordedEvent": "events",
    "UnexpectedErrors": "errors",
    "VirtualClock": "clock",
    "load": "loading",
    "recordings": "replaying",
    "replay": "replaying",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
