"""`ostinato node`: this machine joins an API server, which reaches into its Pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.planes import PlaneProcess
from tests.cluster.running import Running, running
from tests.cluster.test_streams import POD, Inside, binary

__all__ = ["binary"]


@pytest.fixture
def kubectl(binary: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Inside]:
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    plane = PlaneProcess(tmp_path / "plane", "--nodes", "0", "--store", "memory")
    plane.start()
    yield Inside(binary, plane.kubeconfig, "default", tmp_path)
    assert plane.stop() == 0, plane.log()[-2000:]


@pytest.fixture
def joined(kubectl: Inside, tmp_path: Path) -> tuple[str, ...]:
    """How to join."""
    kubeconfig = tmp_path / "plane" / "state" / "admin.kubeconfig"
    command = ("-m", "ostinato.cli", "node", "--kubeconfig", str(kubeconfig), "--name", "far")
    return (*command, "--state", str(tmp_path / "node"), "--listen", "127.0.0.1:0")


def _ready(node: Running, kubectl: Inside) -> None:
    node.wait_for_output("ready at https://127.0.0.1:")
    kubectl.until(lambda: kubectl.run("get", "node", "far").returncode == 0, "the node")
    kubectl("wait", "--for=condition=Ready", "node/far", "--timeout=60s")


def test_a_node_that_joins_runs_pods_and_finds_them_again(
    kubectl: Inside, joined: tuple[str, ...], tmp_path: Path
) -> None:
    with running(tmp_path / "node.log", *joined) as node:
        _ready(node, kubectl)
        kubectl.until(lambda: kubectl.run("get", "serviceaccount", "default").returncode == 0, "the service account")
        kubectl("apply", "-f", "-", stdin=POD)
        kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
        # As with a kubelet, the API server trusts the node's agent once its serving certificate has been signed.
        kubectl.until(lambda: kubectl.run("logs", "p", "-c", "a").returncode == 0, "the serving certificate")
        assert "up" in kubectl("logs", "p", "-c", "a")
        assert kubectl("exec", "-i", "p", "-c", "a", "--", "cat", stdin="typed") == "typed"
        assert kubectl.old("exec", "p", "-c", "a", "--", "sh", "-c", "exit 7").returncode == 7
        before = kubectl.json("get", "pod", "p")["status"]["containerStatuses"]
        assert node.stop() == 0, node.log()
    assert "no node agent answers for node far" in kubectl.run("logs", "p", "-c", "a").stderr
    with running(tmp_path / "node.log", *joined) as node:
        _ready(node, kubectl)
        kubectl.until(lambda: kubectl.run("logs", "p", "-c", "a").returncode == 0, "the agent")
        after = kubectl.json("get", "pod", "p")["status"]["containerStatuses"]
        assert [each["containerID"] for each in after] == [each["containerID"] for each in before]
        kubectl("delete", "pod", "p", "--timeout=60s")
        assert node.stop() == 0, node.log()
