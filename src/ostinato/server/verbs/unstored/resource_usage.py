"""metrics.k8s.io: current resource usage of Pods and nodes, measured by node agents.

In a cluster, metrics-server collects this from kubelets; here the server requests it from the agents. Agents that do
not respond in time are omitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from ostinato.server.node_agents.endpoint import NodeAgents
from ostinato.server.request import Request, Response
from ostinato.server.request.context import Context, Handlers
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.options import list_options
from ostinato.server.request.present import list_response, object_response
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.store.records import Entry
from ostinato.server.verbs.selection import Selection

GROUP: Final = "metrics.k8s.io"
_SUMMARY: Final = "/stats/summary"
_TIMEOUT: Final = 10.0  # timeout of a request to an agent, in seconds
_MAX_CONCURRENT: Final = 32  # maximum concurrent requests to agents
_WINDOW: Final = "15s"  # the measurement interval of kubelets, approximately
_COLUMNS: Final = (("Name", "name"), ("cpu", ""), ("memory", ""), ("Window", ""))


Measure = Callable[[Context, str], Awaitable[list[Entry]]]
"""The objects of a request's scope, or the one of a name."""


def usage_resources(registry: Registry, nodes: NodeAgents) -> list[tuple[Resource, Handlers]]:
    """The resources of the group, each with its handlers."""
    all_nodes, all_pods = registry.get("", "v1", "nodes"), registry.get("", "v1", "pods")
    assert all_nodes is not None
    assert all_pods is not None
    usage = ResourceUsage(nodes, all_nodes, all_pods)
    node_metrics, pod_metrics = _Metrics("nodes", "NodeMetrics"), _Metrics("pods", "PodMetrics")
    return [
        (node_metrics, _handlers(node_metrics, usage.of_nodes)),
        (pod_metrics, _handlers(pod_metrics, usage.of_pods)),
    ]


class _Metrics(Resource):
    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            gvr=GroupVersionResource(GROUP, "v1beta1", name),
            gvk=GroupVersionKind(GROUP, "v1beta1", kind),
            namespaced=name == "pods",
            verbs=("get", "list"),
            strategy=Strategy(),
            schema=None,
            collection=None,
        )
        self.singular = ""
        self.described = False
        self.columns = [
            {"name": column, "type": "string", "format": form, "description": "", "priority": 0}
            for column, form in _COLUMNS
        ]
        self.row = _row


def _handlers(metrics: Resource, measure: Measure) -> Handlers:
    async def get(context: Context) -> Response:
        entries = await measure(context, context.route.name)
        if not entries:
            about = f"{context.prefix}{context.route.name}"
            raise NotFound.of(GroupResource(GROUP, metrics.gvk.kind.lower()), about)
        return object_response(metrics, entries[0].data, form_of(context.request, metrics))

    async def list_(context: Context) -> Response:
        selection = Selection(context, list_options(context.request))
        entries = [entry for entry in await measure(context, "") if selection.selects(entry)]
        return await list_response(context, metrics, entries, {}, form_of(context.request, metrics))

    name = metrics.gvr.resource
    return {(GROUP, name, "", "get"): get, (GROUP, name, "", "list"): list_}


class _Cpu(msgspec.Struct):
    time: str
    usage: int = msgspec.field(name="usageNanoCores", default=0)


class _Memory(msgspec.Struct):
    usage: int = msgspec.field(name="workingSetBytes", default=0)


class _Measured(msgspec.Struct):
    """Usage of a node or a container."""

    cpu: _Cpu
    memory: _Memory
    name: str = ""

    def usage(self) -> Json:
        return {"cpu": f"{self.cpu.usage}n" if self.cpu.usage else "0", "memory": f"{self.memory.usage // 1024}Ki"}


class _Reference(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Pod(msgspec.Struct):
    about: _Reference = msgspec.field(name="podRef")
    containers: list[_Measured] = []


class _Summary(msgspec.Struct):
    """The decoded part of an agent's /stats/summary."""

    node: _Measured
    pods: list[_Pod] = []


class ResourceUsage:
    """Collects usage from the agents."""

    def __init__(self, nodes: NodeAgents, all_nodes: Resource, all_pods: Resource) -> None:
        self._nodes = nodes
        self._all_nodes = all_nodes
        self._all_pods = all_pods

    async def of_nodes(self, context: Context, name: str) -> list[Entry]:
        """The usage of one node, or of all if there is no name."""
        assert self._all_nodes.collection is not None
        entries = self._all_nodes.collection.entries
        summaries = await self._ask(context, [name] if name else list(entries))
        return [
            _entry(node, entries[node], {"usage": summary.node.usage()}, summary.node.cpu.time)
            for node, summary in summaries.items()
            if node in entries
        ]

    async def of_pods(self, context: Context, name: str) -> list[Entry]:
        """The usage of one Pod, or of all in the request's scope."""
        assert self._all_pods.collection is not None
        collection = self._all_pods.collection
        scope = collection.select(context.prefix)
        known = {entry.key: entry for entry in scope if not name or entry.key == f"{context.prefix}{name}"}
        hosts = {entry.fields.get("spec.nodeName", "") for entry in known.values()} - {""}
        found = []
        for summary in (await self._ask(context, sorted(hosts))).values():
            for pod in summary.pods:
                key = f"{pod.about.namespace}/{pod.about.name}"
                entry = known.get(key)
                if entry is not None and entry.uid == pod.about.uid and pod.containers:
                    containers = [{"name": each.name, "usage": each.usage()} for each in pod.containers]
                    found.append(_entry(key, entry, {"containers": containers}, pod.containers[0].cpu.time))
        return sorted(found, key=lambda entry: entry.key)

    async def _ask(self, context: Context, names: Sequence[str]) -> dict[str, _Summary]:
        """The summaries of the agents that respond, by node."""
        limit = asyncio.Semaphore(_MAX_CONCURRENT)

        async def ask(name: str) -> _Summary | None:
            async with limit:
                return await self._summary(context, name)

        summaries = await asyncio.gather(*map(ask, names))
        return {name: summary for name, summary in zip(names, summaries, strict=True) if summary is not None}

    async def _summary(self, context: Context, name: str) -> _Summary | None:
        assert self._all_nodes.collection is not None
        node = self._all_nodes.collection.entries.get(name)
        if node is None:
            return None
        try:
            async with context.world.clock.timeout(_TIMEOUT):
                answer = await self._nodes.send(self._all_nodes.object(node.data), Request("GET", _SUMMARY))
                if not isinstance(answer, Response) or answer.status != 200:
                    return None
                return msgspec.json.decode(answer.body, type=_Summary)
        except (TimeoutError, APIError, msgspec.DecodeError):
            return None


def _entry(key: str, about: Entry, usage: Json, time: str) -> Entry:
    """An object of the group, with the name and labels of its Pod or node."""
    namespace, _, name = key.rpartition("/")
    metadata: Json = {"name": name, "creationTimestamp": time}
    if namespace:
        metadata["namespace"] = namespace
    if about.labels:
        metadata["labels"] = dict(about.labels)
    obj = {"metadata": metadata, "timestamp": time, "window": _WINDOW, **usage}
    return Entry(key, 0, msgspec.json.encode(obj), about.labels, {}, "")


def _row(obj: Json) -> list[Any]:
    usages = [each["usage"] for each in obj["containers"]] if "containers" in obj else [obj["usage"]]
    cpu = sum(int(usage["cpu"].rstrip("n")) for usage in usages)
    memory = sum(int(usage["memory"].removesuffix("Ki")) for usage in usages)
    return [obj["metadata"]["name"], f"{cpu}n" if cpu else "0", f"{memory}Ki", obj["window"]]
