"""The API endpoint of a node, with kubelet's paths.

| path | response |
|---|---|
| `/healthz`, `/healthz/ping`, `/healthz/syncloop` | `ok` |
| `/pods`, `/runningpods/` | the Pods of the node |
| `/stats/summary` | usage of the node, its Pods and containers, with rates |
| `/metrics`, `/metrics/resource`, `/metrics/cadvisor`, `/metrics/probes` | metrics in the Prometheus text format |
| `/configz` | configuration |
| others | logs and streams of Pods: `pod_streams` |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

from ostinato import metrics
from ostinato.plane.node.probes.probe_results import ProbeResults
from ostinato.plane.node.server import node_metrics, pod_lists
from ostinato.plane.node.server.configz import CONFIGZ, AgentConfig
from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.plane.node.server.stats import COUNTERS, SUMMARY, NodeStats
from ostinato.server.request import Answer, Request, Response, text_response

_HEALTHY: Final = ("/healthz", "/healthz/ping", "/healthz/syncloop")
_NO_CONFIG: Final = AgentConfig()


class NodeEndpoint:
    def __init__(
        self,
        name: str,
        streams: PodStreams,
        stats: NodeStats,
        probes: ProbeResults | None = None,
        config: AgentConfig = _NO_CONFIG,
    ) -> None:
        """`probes`: results of the node's probes. Defaults to none."""
        self._name = name
        self._streams = streams
        self._stats = stats
        self._probes = ProbeResults() if probes is None else probes
        self._config = config
        self._pages: dict[str, Callable[[], Awaitable[Response]]] = {
            SUMMARY: self._summary,
            COUNTERS: self._counters,
            node_metrics.AGENT: self._agent,
            node_metrics.CADVISOR: self._cadvisor,
            node_metrics.PROBES: self._results,
            pod_lists.PODS: self._all_pods,
            pod_lists.RUNNING_PODS: self._running_pods,
            CONFIGZ: self._configuration,
        }

    async def handle(self, request: Request) -> Answer:
        path = unquote(request.path).removesuffix("/")
        if path in _HEALTHY:
            return text_response(200, "ok")
        page = self._pages.get(path)
        if page is None:
            return await self._streams.handle(request)
        if request.method != "GET":
            return text_response(405, "405: Method Not Allowed")
        return await page()

    async def _summary(self) -> Response:
        return Response(200, await self._stats.summary(self._name))

    async def _counters(self) -> Response:
        return Response(200, await self._stats.counters(self._name), metrics.CONTENT_TYPE)

    async def _agent(self) -> Response:
        return _text(node_metrics.agent_metrics(self._name, await self._stats.pods(self._name)))

    async def _cadvisor(self) -> Response:
        return _text(node_metrics.cadvisor_metrics(await self._stats.measure(self._name)))

    async def _results(self) -> Response:
        return _text(metrics.text(self._probes.families()))

    async def _all_pods(self) -> Response:
        return Response(200, pod_lists.all_pods(await self._stats.pods(self._name)))

    async def _running_pods(self) -> Response:
        return Response(200, pod_lists.running_pods(await self._stats.pods(self._name)))

    async def _configuration(self) -> Response:
        return Response(200, self._config.page())


def _text(text: str) -> Response:
    return Response(200, text.encode(), metrics.CONTENT_TYPE)
