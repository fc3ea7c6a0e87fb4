"""What people do with kubectl, against `ostinato up` with three simulated nodes; and a plane that is killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.planes import PlaneProcess

PATIENCE = 60.0


class Kubectl:
    """kubectl with the administrator's kubeconfig, in a namespace of its own."""

    def __init__(self, binary: str, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._command = [binary, "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self._home = home

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={"HOME": str(self._home), "PATH": "/usr/bin:/bin"},
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what} did not come about: {self('get', 'all')}"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def binary() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on PATH")
    return found


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    process = PlaneProcess(
        tmp_path_factory.mktemp("plane"), "--nodes", "3", "--runtime", "simulated", "--store", "memory"
    )
    process.start()
    yield process
    assert process.stop() == 0, process.log()[-2000:]


@pytest.fixture
def kubectl(binary: str, plane: PlaneProcess, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    namespace = f"t-{abs(hash(request.node.name)) % 10**8}"
    admin = Kubectl(binary, plane.kubeconfig, "default", tmp_path)
    admin("create", "namespace", namespace)
    admin("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    yield Kubectl(binary, plane.kubeconfig, namespace, tmp_path)
    admin("delete", "namespace", namespace, "--wait=false")


def image_of(kubectl: Kubectl) -> str:
    return kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def test_a_deployment_is_created_scaled_and_waited_for(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=4", "deployment/web", "--timeout=60s")
    pods = kubectl.json("get", "pods")["items"]
    assert len(pods) == 4
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    assert "4/4" in kubectl("get", "deployment", "web")


def test_a_rollout_has_a_history_and_can_be_undone_paused_and_restarted(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("set", "image", "deployment/web", "web=web:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert image_of(kubectl) == "web:1"
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "web=web:3")
    paused = kubectl.json("get", "replicasets")["items"]
    assert all(each["spec"]["template"]["spec"]["containers"][0]["image"] != "web:3" for each in paused)
    kubectl("rollout", "resume", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    before = {pod["metadata"]["name"] for pod in kubectl.json("get", "pods")["items"]}
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl.until(
        lambda: not before & {pod["metadata"]["name"] for pod in kubectl.json("get", "pods")["items"]},
        "a restart of all Pods",
    )


def test_a_service_has_endpoints_and_an_autoscaler_keeps_to_its_bounds(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2", "--port=8080")
    kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080")
    kubectl.until(
        lambda: (
            [
                address
                for each in kubectl.json("get", "endpointslices")["items"]
                for endpoint in each["endpoints"] or []
                for address in endpoint["addresses"]
            ].__len__()
            == 2
        ),
        "two endpoints",
    )
    kubectl("autoscale", "deployment", "web", "--min=3", "--max=5", "--cpu-percent=50")
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=3", "deployment/web", "--timeout=60s")


def test_the_plane_does_not_warn_of_deprecated_kinds_that_it_serves_itself(
    kubectl: Kubectl, plane: PlaneProcess
) -> None:
    kubectl("create", "service", "clusterip", "web", "--tcp=80")
    kubectl.until(lambda: kubectl.run("get", "endpoints", "web", "-o", "name").stdout, "Endpoints")
    assert "deprecated" not in plane.log()


def test_deletion_in_the_foreground_takes_dependents_first_and_orphaning_leaves_them(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    (orphan,) = kubectl.json("get", "replicasets")["items"]
    assert "ownerReferences" not in orphan["metadata"]
    assert len(kubectl.json("get", "pods")["items"]) == 2
    kubectl("delete", "replicaset", orphan["metadata"]["name"], "--cascade=foreground", "--timeout=60s")
    assert kubectl.json("get", "pods")["items"] == []


def test_a_drain_keeps_to_the_disruption_budget_and_moves_the_pods(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/web", "--timeout=60s")
    node = kubectl.json("get", "pods")["items"][0]["spec"]["nodeName"]
    try:
        drained = kubectl("drain", node, "--ignore-daemonsets", "--timeout=60s")
        assert f"node/{node} drained" in drained
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert node not in {pod["spec"]["nodeName"] for pod in kubectl.json("get", "pods")["items"]}
        assert "SchedulingDisabled" in kubectl("get", "node", node)
    finally:
        kubectl("uncordon", node)


def test_cordons_and_taints_keep_pods_away(kubectl: Kubectl) -> None:
    nodes = [node["metadata"]["name"] for node in kubectl.json("get", "nodes")["items"]]
    try:
        kubectl("cordon", nodes[0])
        kubectl("taint", "node", nodes[1], "dedicated=other:NoSchedule")
        kubectl("create", "deployment", "web", "--image=web:1", "--replicas=4")
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert {pod["spec"]["nodeName"] for pod in kubectl.json("get", "pods")["items"]} == {nodes[2]}
    finally:
        kubectl("uncordon", nodes[0])
        kubectl("taint", "node", nodes[1], "dedicated-")


def test_jobs_run_to_completion(kubectl: Kubectl) -> None:
    kubectl("create", "job", "once", "--image=work:1")
    kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=60s")
    kubectl("create", "cronjob", "often", "--image=work:1", "--schedule=* * * * *")
    kubectl("create", "job", "now", "--from=cronjob/often")
    kubectl("wait", "--for=condition=Complete", "job/now", "--timeout=60s")


def test_describe_shows_why_a_pod_is_unschedulable(kubectl: Kubectl) -> None:
    huge = '{"spec":{"containers":[{"name":"huge","image":"web:1","resources":{"requests":{"cpu":"999"}}}]}}'
    kubectl("run", "huge", "--image=web:1", f"--overrides={huge}")
    kubectl.until(
        lambda: "0/3 nodes are available: 3 Insufficient cpu" in kubectl("describe", "pod", "huge"), "a reason"
    )


@pytest.mark.parametrize("round_", range(10))
def test_a_plane_killed_under_load_converges_to_the_desired_state(
    round_: int, binary: str, killed: PlaneProcess, tmp_path: Path
) -> None:
    """Ten times in a row, on the same store: after each start everything is as asked for, and nothing twice."""
    kubectl = Kubectl(binary, killed.kubeconfig, "default", tmp_path)
    replicas = 3 + round_ % 4
    for name in ("a", "b", "c"):
        if round_ == 0:
            kubectl("create", "deployment", name, "--image=web:0", f"--replicas={replicas}")
        else:
            kubectl("scale", f"deployment/{name}", f"--replicas={replicas}")
            kubectl("set", "image", f"deployment/{name}", f"web=web:{round_}")
    time.sleep(0.15 * round_)  # at another moment each time
    killed.kill()
    killed.start()
    for name in ("a", "b", "c"):
        kubectl("rollout", "status", f"deployment/{name}", "--timeout=60s")

    def settled() -> bool:
        pods = kubectl.json("get", "pods")["items"]
        images = {pod["spec"]["containers"][0]["image"] for pod in pods}
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return len(pods) == len(alive) == 3 * replicas and images == {f"web:{round_}"}

    kubectl.until(settled, f"{3 * replicas} Pods of the new image, and no others")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    process = PlaneProcess(tmp_path_factory.mktemp("killed"), "--nodes", "3", "--runtime", "simulated")
    process.start()
    yield process
    process.stop()
