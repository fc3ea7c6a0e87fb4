"""unittest: a test case with a cluster.

class WidgetTest(ClusterTestCase):
    async def test_a_widget_gets_a_deployment(self):
        await self.manager.start(widgets)
        await self.client.create(Widget(...))
        await self.eventually(Deployment, "a")
"""

from __future__ import annotations

import asyncio
import os
from typing import ClassVar
from unittest import IsolatedAsyncioTestCase

from ostinato.client.client import Client
from ostinato.testing.cluster import Cluster
from ostinato.testing.events import Events
from ostinato.testing.eventually import Eventually
from ostinato.testing.manager import ClusterManager

VARIABLE = "OSTINATO_TEST_CLUSTER"


class ClusterTestCase(IsolatedAsyncioTestCase):
    """Each test method has a cluster of its own.

    - `nodes`: with controllers, scheduler and so many simulated nodes. Defaults to None: the API server alone.
    - The environment variable OSTINATO_TEST_CLUSTER names the kubeconfig of a real cluster to use instead.
    """

    nodes: ClassVar[int | None] = None
    cluster: Cluster
    client: Client
    manager: ClusterManager
    events: Events
    eventually: Eventually

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)  # unittest's default; it is slow, and reports the server's start
        self.cluster = Cluster(kubeconfig=os.environ.get(VARIABLE) or None, nodes=self.nodes)
        self.client, self.events, self.eventually = self.cluster.client, self.cluster.events, self.cluster.eventually
        self.manager = self.cluster.manager()
        self.addAsyncCleanup(self.cluster.close)
        await self.cluster.start()
