"""Resource usage of Pods and nodes, from the node to metrics.k8s.io."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from tests.unit.plane.node.server.streaming import Stage, stage

from ostinato.api.selectors.labels import parse
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.controllers.autoscaling.metrics_client import MetricsClient, MetricsError
from ostinato.plane.node.runtimes import Runtime, Usage
from ostinato.plane.node.server.endpoint import NodeEndpoint
from ostinato.plane.node.server.stats import NodeStats, machine_usage
from ostinato.server.request import Peer, Request, Response

PODS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
NODES = "/apis/metrics.k8s.io/v1beta1/nodes"


class Measured:
    """A scene whose Pod uses half a core, and whose machine one."""

    def __init__(self, scene: Stage) -> None:
        self.scene = scene
        self.measurements = 0
        clock = scene.world.clock

        async def pods_of(node: str) -> Sequence[Pod]:
            self.measurements += 1
            scene.runtime.used = {"c": Usage(clock.monotonic() / 2, 3 << 20), "d": Usage(0.0, 0)}
            return [await scene.client.get(Pod, "p")]

        runtimes = {"n": cast("Runtime", scene.runtime)}
        stats = NodeStats(clock, runtimes, pods_of, lambda: Usage(clock.monotonic(), 5 << 20))
        self.endpoint = NodeEndpoint("n", scene.streams, stats)
        scene.server.nodes.add("n", self.endpoint.handle)
        scene.server.serve_usage()
        scene.server.serve_usage()

    async def get(self, path: str, query: str = "", accept: str = "application/json") -> Any:
        request = Request("GET", path, query, {"accept": accept})
        request.peer = Peer("admin", ("system:masters",))
        answer = await self.scene.server.handle(request)
        assert isinstance(answer, Response)
        return json.loads(answer.body)


def test_the_summary_has_the_usage_of_node_and_pods() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        measured = Measured(scene)
        began = scene.world.clock.monotonic()
        told = await measured.get(PODS)
        assert scene.world.clock.monotonic() - began == pytest.approx(1), "two measurements are compared"
        assert (told["kind"], told["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
        pod = told["items"][0]
        assert (pod["metadata"]["name"], pod["metadata"]["namespace"], pod["window"]) == ("p", "default", "15s")
        assert pod["containers"] == [
            {"name": "c", "usage": {"cpu": "500000000n", "memory": "3072Ki"}},
            {"name": "d", "usage": {"cpu": "0", "memory": "0Ki"}},
        ]
        node = await measured.get(f"{NODES}/n")
        assert (node["kind"], node["usage"]) == ("NodeMetrics", {"cpu": "1000000000n", "memory": "5120Ki"})
        assert measured.measurements == 2, "the second answer comes from the same measurement"
        await scene.world.clock.sleep(15)
        began = scene.world.clock.monotonic()
        assert (await measured.get(f"{PODS}/p"))["containers"][0]["usage"]["cpu"] == "500000000n"
        assert scene.world.clock.monotonic() == began, "what was measured before is compared with"

    stage(play)


def test_pods_are_selected_and_what_is_not_there_is_not_found() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        measured = Measured(scene)
        assert (await measured.get(PODS, "labelSelector=app%3Dweb"))["items"] == []
        assert len((await measured.get(PODS, "labelSelector=app%21%3Dweb"))["items"]) == 1
        assert (await measured.get(PODS.replace("default", "other")))["items"] == []
        missing = await measured.get(f"{PODS}/q")
        assert (missing["code"], missing["message"]) == (404, 'podmetrics.metrics.k8s.io "default/q" not found')
        assert (await measured.get(f"{NODES}/m"))["code"] == 404
        table = await measured.get(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert [row["cells"] for row in table["rows"]] == [["p", "500000000n", "3072Ki", "15s"]]

    stage(play)


def test_resource_metrics_are_counters() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        measured = Measured(scene)
        await scene.world.clock.sleep(10)
        answer = await measured.endpoint.handle(Request("GET", "/metrics/resource"))
        assert isinstance(answer, Response)
        found = {line.rpartition(" ")[0] for line in answer.body.decode().splitlines() if line[0] != "#"}
        assert {
            "node_cpu_usage_seconds_total 10",
            "node_memory_working_set_bytes 5242880",
            'container_cpu_usage_seconds_total{container="c",namespace="default",pod="p"} 5',
            'container_start_time_seconds{container="c",namespace="default",pod="p"} 1767225600',
            'pod_memory_working_set_bytes{namespace="default",pod="p"} 3145728',
        } <= found

    stage(play)


def test_the_autoscaler_reads_it() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        with pytest.raises(MetricsError, match="could not find the requested resource"):
            await MetricsClient(scene.client).of_resource("cpu", "default", parse(""), "")
        Measured(scene)
        samples = await MetricsClient(scene.client).of_resource("cpu", "default", parse(""), "c")
        assert samples["p"].value == 500

    stage(play)


def test_the_group_is_discovered_and_the_other_documents_are_as_before() -> None:
    async def play(scene: Stage) -> None:
        before = await _openapi(scene)
        measured = Measured(scene)
        groups = {group["name"] for group in (await measured.get("/apis"))["groups"]}
        assert "metrics.k8s.io" in groups
        listed = (await measured.get("/apis/metrics.k8s.io/v1beta1"))["resources"]
        assert [(each["name"], each["kind"], each["verbs"]) for each in listed] == [
            ("nodes", "NodeMetrics", ["get", "list"]),
            ("pods", "PodMetrics", ["get", "list"]),
        ]
        assert await _openapi(scene) == before

    stage(play)


async def _openapi(scene: Stage) -> bytes:
    request = Request("GET", "/openapi/v2")
    request.peer = Peer("admin", ("system:masters",))
    answer = await scene.server.handle(request)
    assert isinstance(answer, Response)
    return answer.body


def test_a_node_that_does_not_answer_is_left_out() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        measured = Measured(scene)

        async def hang(_: Request) -> Response:
            await scene.world.clock.sleep(1000)
            return Response(200, b"")

        async def babble(_: Request) -> Response:
            return Response(200, b'{"node": {"cpu": 1}}')

        for endpoint in (hang, babble):
            scene.server.nodes.add("n", endpoint)
            assert (await measured.get(NODES))["items"] == []

    stage(play)


def test_this_machine_uses_something() -> None:
    used = machine_usage()
    assert used.cpu > 0
    assert used.memory > 1 << 20
