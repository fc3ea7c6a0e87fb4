"""What the control plane spends on a Pod's life: requests, reconciles and decodings, counted instead of timed.

A larger number is a slower cluster. A change that needs more must say why.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api import codec
from ostinato.api.apply import FieldManager
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.object import Object
from ostinato.client.views import MetadataOf
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, Pod, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec
from ostinato.plane import scheduler
from ostinato.plane.controllers.services.endpoint_slices import EndpointSliceReconciler
from ostinato.plane.controllers.services.endpoints import EndpointsReconciler
from ostinato.plane.controllers.workloads.deployment import DeploymentReconciler
from ostinato.plane.controllers.workloads.replicaset.reconciler import ReplicaReconciler
from ostinato.plane.node import fleet
from ostinato.plane.node.agent import NodeAgent
from ostinato.server.core import Server
from ostinato.server.request import Answer, Request, body
from ostinato.server.resources.core.pods import strategy
from ostinato.server.store.collection import Collection
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.records import Event
from ostinato.server.verbs.patch import PatchChange

PODS = 300
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "garbage-collector-controller",
    "endpointslice-controller",
    "endpoints-controller",
    "node-lifecycle-controller",
)
RECONCILERS = (NodeAgent, DeploymentReconciler, ReplicaReconciler, EndpointsReconciler, EndpointSliceReconciler)


class Work:
    """Calls of functions that take long, by what they do; decoded Pods by class."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        self._patch = monkeypatch
        self._count(body, "read", lambda request, resource, *_: f"body of {resource.gvr.resource}")
        self._count(strategy, "validate_pod", lambda *_: "validation of a spec")
        self._count(strategy, "pod_warnings", lambda *_: "warnings of a spec")
        self._count(FieldManager, "_settle", lambda *_, **__: "field sets")
        self._count(PatchChange, "__call__", lambda _, old: f"patch of a {old['kind']}")
        self._count(codec, "_read", lambda cls, _: f"decoded {cls.__name__}" if _is_pod(cls) else "")

    def _count(self, owner: Any, name: str, what: Callable[..., str]) -> None:
        function = getattr(owner, name)

        @wraps(function)
        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls[what(*arguments, **options)] += 1
            return function(*arguments, **options)

        self._patch.setattr(owner, name, counted)

    def take(self) -> Counter[str]:
        """Return the counts since the last call."""
        found, self.calls = self.calls, Counter()
        return found


def _is_pod(cls: Any) -> bool:
    return issubclass(cls, Object) and cls.__kind__ is not None and cls.__kind__.gvk.kind == "Pod"


class Counts:
    """Requests by method and resource ("PATCH pods/status"), runs by reconciler, writes to the store by collection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        handle, enqueue = Server.handle, LocalIndex._enqueue

        async def counted(server: Server, request: Request) -> Answer:
            self.requests[_what(request)] += 1
            return await handle(server, request)

        def counted_write(index: LocalIndex, collection: Collection, event: Event) -> asyncio.Future[None]:
            self.writes[collection.name] += 1
            return enqueue(index, collection, event)

        monkeypatch.setattr(Server, "handle", counted)
        monkeypatch.setattr(LocalIndex, "_enqueue", counted_write)
        for each in RECONCILERS:
            monkeypatch.setattr(each, "reconcile", self._counting(each.__name__, each.reconcile))

    def _counting(self, name: str, reconcile: Any) -> Any:
        @wraps(reconcile)
        async def counted(reconciler: object, request: Any, ctx: Any) -> Any:
            self.runs[name] += 1
            return await reconcile(reconciler, request, ctx)

        return counted

    def take(self) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """Return the counts since the last call."""
        found = self.requests, self.runs, self.writes
        self.requests, self.runs, self.writes = Counter(), Counter(), Counter()
        return found


def _what(request: Request) -> str:
    parts = request.path.split("/")
    at = parts.index("namespaces") + 2 if "namespaces" in parts[:-2] else 2
    resource, *rest = parts[at:] or [""]
    return f"{request.method} {'/'.join([resource, *rest[1:]])}"


async def until_available(stage: Stage, count: int) -> None:
    async def all_available() -> bool:
        return ((await stage.client.get(Deployment, "web")).status.available_replicas or 0) == count

    await stage.until(all_available)
    await stage.settle()


def test_the_requests_and_reconciles_of_a_pods_life(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts(monkeypatch)
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="i")])
    )

    async def play(stage: Stage) -> None:
        stage.run(scheduler.add_to)
        stage.run(lambda manager: fleet.add_to(manager, 4, "simulated"), field_manager="kubelet")
        await stage.client.create(
            Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(selector=labels, ports=[ServicePort(port=80)]))
        )
        await stage.settle()
        counts.take()
        spec = DeploymentSpec(replicas=PODS, selector=LabelSelector(match_labels=labels), template=template)
        await stage.client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
        await until_available(stage, PODS)
        requests, runs, writes = counts.take()
        assert requests["POST pods"] == requests["POST pods/binding"] == requests["PATCH pods/status"] == PODS
        assert writes["pods"] == 3 * PODS, "created, bound, running"
        assert writes["events"] <= PODS + 30, "one of the scheduler; those of the ReplicaSet are combined"
        assert runs["NodeAgent"] == PODS, "one sync: the containers start immediately"
        assert requests["PATCH endpointslices"] + requests["POST endpointslices"] <= 20
        assert requests["PUT endpoints"] <= 10
        assert requests["PATCH replicasets/status"] <= 30
        assert requests["PATCH deployments/status"] <= 30
        assert max(runs["ReplicaReconciler"], runs["DeploymentReconciler"]) <= 30
        assert max(runs["EndpointsReconciler"], runs["EndpointSliceReconciler"]) <= PODS // 2, "most of them wait"

        await stage.client.delete(Deployment, "web", propagation="Background")

        async def all_gone() -> bool:
            return not await stage.client.list(Pod)

        await stage.until(all_gone)
        await stage.settle()
        requests, runs, writes = counts.take()
        assert requests["DELETE pods"] == 2 * PODS, "by the garbage collector, and by the kubelet"
        assert requests["PATCH pods/status"] == 0
        assert writes["pods"] == 3 * PODS, "marked as deleted, grace period set to 0, removed, as by kube-apiserver"
        assert writes["events"] <= 30
        assert runs["NodeAgent"] == PODS
        assert requests["PATCH endpointslices"] + requests["DELETE endpointslices"] <= 20
        assert requests["PUT endpoints"] <= 10

    on_stage(play, *CONTROLLERS)


def test_the_decodings_and_validations_of_a_pods_life(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="budget")])
    )

    async def play(stage: Stage) -> None:
        stage.run(scheduler.add_to)
        stage.run(lambda manager: fleet.add_to(manager, 4, "simulated"), field_manager="kubelet")
        other = ServiceSpec(ports=[ServicePort(port=80)])  # without a selector
        await stage.client.create(Service(metadata=ObjectMeta(name="other"), spec=other))
        await stage.settle()
        work.take()
        spec = DeploymentSpec(replicas=PODS, selector=LabelSelector(match_labels=labels), template=template)
        await stage.client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
        await until_available(stage, PODS)
        found = work.take()
        assert found["body of pods"] == 1, "the others have the same body"
        assert found["validation of a spec"] == found["warnings of a spec"] == 1
        assert found["field sets"] <= 30, "those of the Pods are cached, whatever their owner and their address"
        assert found["patch of a Pod"] <= 10, "the others have the same shape"
        assert found["decoded Pod"] == PODS, "by the kubelet, to start its containers"
        assert found["decoded NewPod"] == found["decoded _WrittenPod"] == PODS, "responses, without what is not needed"
        assert sum(count for what, count in found.items() if what.startswith("decoded")) == 3 * PODS
        await stage.client.delete(Deployment, "web", propagation="Background")

        async def all_gone() -> bool:
            return not await stage.client.list(MetadataOf(Pod))

        await stage.until(all_gone)
        await stage.settle()
        found = work.take()
        assert found["decoded Pod"] == PODS, "by the kubelet, to stop them"
        assert sum(count for what, count in found.items() if what.startswith("decoded")) == PODS

    on_stage(play, *CONTROLLERS, "resourcequota-controller")
