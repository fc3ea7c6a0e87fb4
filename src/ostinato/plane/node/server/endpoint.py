"""The API endpoint of a node, with kubelet's paths: stats, health, and the streams of `pod_streams`."""

from __future__ import annotations

from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.plane.node.server.stats import COUNTERS, SUMMARY, NodeStats
from ostinato.server.request import Answer, Request, Response, text_response


class NodeEndpoint:
    def __init__(self, name: str, streams: PodStreams, stats: NodeStats) -> None:
        self._name = name
        self._streams = streams
        self._stats = stats

    async def handle(self, request: Request) -> Answer:
        if request.path == SUMMARY:
            return Response(200, await self._stats.summary(self._name))
        if request.path == COUNTERS:
            return Response(200, await self._stats.counters(self._name), "text/plain; version=0.0.4")
        if request.path == "/healthz":
            return text_response(200, "ok")
        return await self._streams.handle(request)
