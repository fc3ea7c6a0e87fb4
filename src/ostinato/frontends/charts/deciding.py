"""Rendering as a decider, so that it can be recorded and replayed without a cluster.

A request has the custom resource, and as data of its trigger the values, the revision and the capabilities of the
server. The children of the result are the objects of the chart. `lookup` finds nothing in a replay.
"""

from __future__ import annotations

from typing import Any

from ostinato.api import accessors as access
from ostinato.charts import Capabilities, Engine, Release, render_chart
from ostinato.frontends.charts.manifests import objects_of
from ostinato.frontends.charts.rendering import LoadedChart, typed
from ostinato.frontends.kernel.sync import SyncRequest, SyncResult, Trigger
from ostinato.world import World

Json = dict[str, Any]


def request_of(controller: str, instance: Json, values: Json, revision: int, capabilities: Capabilities) -> SyncRequest:
    """Return the request of a rendering."""
    data = {
        "values": values,
        "revision": revision,
        "kubeVersion": capabilities.kube_version,
        "apiVersions": list(capabilities.api_versions),
    }
    return SyncRequest(controller=controller, trigger=Trigger(type="Render", data=data), parent=instance)


class ChartDecider:
    """Renders the chart of a request."""

    def __init__(self, chart: LoadedChart) -> None:
        self._chart = chart

    async def __call__(self, request: SyncRequest) -> SyncResult:
        data, parent = request.trigger.data, request.parent or {}
        revision = int(data["revision"])
        release = Release(access.name(parent), access.namespace(parent), revision, revision > 1)
        capabilities = Capabilities(data["kubeVersion"], tuple(data["apiVersions"]))
        world = World.real()
        try:
            found = render_chart(self._chart.chart, typed(data["values"]), Engine(world), release, capabilities)
        finally:
            world.executor.close()
        texts = [each.content for each in found.manifests]
        return SyncResult(children=[each for text in texts for each in objects_of(text)])
