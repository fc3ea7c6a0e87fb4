"""The pages of a node's API: Pods, metrics, configuration, and commands that are run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from tests.unit.plane.node.server.streaming import Stage, stage

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.plane.node.probes.probe_results import ProbeResults
from ostinato.plane.node.runtimes import Runtime, Usage
from ostinato.plane.node.server.configz import AgentConfig
from ostinato.plane.node.server.endpoint import NodeEndpoint
from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.plane.node.server.stats import NodeStats
from ostinato.server.request import Request, Response


class Pages:
    def __init__(self, scene: Stage) -> None:
        async def pods_of(node: str) -> Sequence[Pod]:
            scene.runtime.used = {"c": Usage(1.5, 3 << 20)}
            return [await scene.client.get(Pod, "p")]

        stats = NodeStats(
            scene.world.clock, {"n": cast("Runtime", scene.runtime)}, pods_of, lambda: Usage(2.0, 5 << 20)
        )
        self.probes = ProbeResults()
        config = AgentConfig(address="192.0.2.1", port=10250)
        self.endpoint = NodeEndpoint("n", scene.streams, stats, self.probes, config)

    async def get(self, path: str, query: str = "", method: str = "GET") -> Response:
        answer = await self.endpoint.handle(Request(method, path, query))
        assert isinstance(answer, Response)
        return answer


def test_the_pods_of_the_node_are_listed_without_their_kind() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        pages = Pages(scene)
        found = json.loads((await pages.get("/pods")).body)
        assert (found["kind"], found["apiVersion"]) == ("PodList", "v1")
        [pod] = found["items"]
        assert pod["metadata"]["name"] == "p"
        assert pod["metadata"]["creationTimestamp"].endswith("Z")
        assert "kind" not in pod
        [running] = json.loads((await pages.get("/runningpods/")).body)["items"]
        assert [each["name"] for each in running["spec"]["containers"]] == ["c", "d"]
        assert (await pages.get("/pods", method="POST")).status == 405

    stage(play)


def test_metrics_have_the_names_of_kubelet_and_cadvisor() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        pages = Pages(scene)
        agent = (await pages.get("/metrics")).body.decode()
        assert 'kubelet_node_name{node="n"} 1' in agent
        assert "kubelet_running_pods 1" in agent
        assert 'kubelet_running_containers{container_state="running"} 2' in agent
        used = (await pages.get("/metrics/cadvisor")).body.decode()
        assert 'container_cpu_usage_seconds_total{container="c",cpu="total",id="/kubepods/pod' in used
        assert 'namespace="default",pod="p"} 3145728' in used
        assert "machine_cpu_cores" in used
        resource = (await pages.get("/metrics/resource")).body.decode()
        assert 'pod_memory_working_set_bytes{namespace="default",pod="p"} 3145728' in resource
        [pod] = json.loads((await pages.get("/stats/summary")).body)["pods"]
        assert pod["memory"]["workingSetBytes"] == 3 << 20

    stage(play)


def test_results_of_probes_are_counted_until_the_container_ends() -> None:
    async def play(scene: Stage) -> None:
        pod = await scene.begin()
        pages = Pages(scene)
        for result in ("success", "success", "failure"):
            pages.probes.count(pod, "c", "readiness", Outcome(result, ""))  # type: ignore[arg-type]  # literals
        text = (await pages.get("/metrics/probes")).body.decode()
        whose = f'container="c",namespace="default",pod="p",pod_uid="{pod.metadata.uid}",probe_type="Readiness"'
        assert f'prober_probe_total{{{whose},result="successful"}} 2' in text
        assert f'prober_probe_total{{{whose},result="failed"}} 1' in text
        pages.probes.forget(pod, "c")
        assert "prober_probe_total{" not in (await pages.get("/metrics/probes")).body.decode()

    stage(play)


def test_the_configuration_and_health_are_shown() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        pages = Pages(scene)
        shown = json.loads((await pages.get("/configz")).body)["kubeletconfig"]
        assert (shown["address"], shown["port"], shown["authorization"]["mode"]) == ("192.0.2.1", 10250, "Webhook")
        for path in ("/healthz", "/healthz/ping", "/healthz/syncloop"):
            assert (await pages.get(path)).body == b"ok"

    stage(play)


def test_a_command_is_run_and_its_output_returned() -> None:
    async def play(scene: Stage) -> None:
        await scene.begin()
        pages = Pages(scene)
        done = await pages.get("/run/default/p/c", "cmd=say%20hello", "POST")
        assert (done.status, done.body) == (200, b"helloaside")
        failed = await pages.get("/run/default/p/c", "cmd=exit%203", "POST")
        assert (failed.status, failed.body) == (500, b"command 'exit 3' exited with 3: failing\n")
        assert (await pages.get("/run/default/p/c", "cmd=nope", "POST")).status == 500
        assert (await pages.get("/run/default/p/other", "cmd=say", "POST")).status == 500
        assert (await pages.get("/run/default/p/c", "cmd=say")).status == 405
        assert all(session.closed for session in scene.runtime.sessions)

    stage(play)


def test_a_pod_of_another_node_is_not_served() -> None:
    """Who may use the API of one node may not reach the Pods of the others in this process."""

    async def play(scene: Stage) -> None:
        await scene.begin()
        other = PodStreams(scene.world, scene.find, {"other": cast("Runtime", scene.runtime)}, None)
        for path in ("/exec/default/p/c", "/attach/default/p/c", "/run/default/p/c", "/containerLogs/default/p/c"):
            answer = await other.handle(Request("POST", path, "cmd=id&command=id&output=1"))
            assert isinstance(answer, Response)
            assert answer.status == 404, path
        forwarded = await other.handle(Request("POST", "/portForward/default/p"))
        assert isinstance(forwarded, Response)
        assert forwarded.status == 404

    stage(play)
