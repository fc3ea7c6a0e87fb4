"""A real kubelet joins `ostinato up --nodes 0` with a bootstrap token and runs Pods with containerd.

`OSTINATO_KUBELET` names a directory with `kubelet`, `containerd`, `containerd-shim-runc-v2` and `ctr`, if they are not
on PATH. Further needed: root, runc, the CNI plugins and static busybox.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from ostinato.plane.node.images.build import directory_layer, write_archive
from ostinato.plane.node.images.image import ImageConfig
from ostinato.plane.node.registration.machine_info import address
from tests.cluster.planes import PlaneProcess
from tests.cluster.test_streams import Inside, binary
from tests.cluster.test_webhooks import free_port
from tests.conformance.containerd import running_daemon
from tests.conformance.suite import MissingError

__all__ = ["binary"]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: busybox:1
    command: [sh, -c, "echo $GREETING; trap 'exit 0' TERM; sleep 600 & wait"]
    env: [{name: GREETING, valueFrom: {configMapKeyRef: {name: settings, key: greeting}}}]
    readinessProbe: {exec: {command: [cat, /data/token]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, projected: {sources: [{serviceAccountToken: {path: token}}]}}
"""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    if directory := os.environ.get("OSTINATO_KUBELET"):
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for name in ("kubelet", "containerd", "ctr", "runc", "busybox"):
        if shutil.which(name) is None:
            pytest.skip(f"no {name}")


@pytest.fixture
def kubectl(
    programs: None,
    binary: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Inside]:
    if request.config.getoption("--cluster"):
        pytest.skip("this is about our own plane")
    plane = PlaneProcess(tmp_path / "plane", "--nodes", "0", "--store", "memory")
    plane.start()
    yield Inside(binary, plane.kubeconfig, "default", tmp_path)
    assert plane.stop() == 0, plane.log()[-2000:]


def image_archive(place: Path) -> Path:
    """An image of busybox, which is also the sandbox's."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    programs = place / "root" / "bin"
    programs.mkdir(parents=True)
    shutil.copy(busybox, programs / "busybox")
    for name in ("sh", "sleep", "cat", "echo"):
        (programs / name).symlink_to("busybox")
    layer = directory_layer(place / "root", place / "layer.tar", (0, 0))
    config = ImageConfig(entrypoint=["/bin/sleep", "86400"], env=["PATH=/bin"])
    names = ["docker.io/library/busybox:1", "registry.k8s.io/pause:3.10"]
    write_archive(place / "busybox.tar", names, config, [layer])
    return place / "busybox.tar"


@contextmanager
def running_kubelet(state: Path, kubeconfig: Path, directory: Path, socket: Path) -> Iterator[None]:
    """Run a kubelet that knows the cluster's authority and a bootstrap token."""
    command = [sys.executable, "-m", "ostinato.cli", "token", "create", "--kubeconfig", str(kubeconfig)]
    token = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()[-1]
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    cluster["certificate-authority-data"] = base64.b64encode((state / "ca.crt").read_bytes()).decode()
    bootstrap = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    (directory / "bootstrap.kubeconfig").write_text(json.dumps(bootstrap))
    config = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": "0.0.0.0",
        "port": free_port(),
        "healthzPort": 0,
        "readOnlyPort": 0,
        "authentication": {"x509": {"clientCAFile": str(state / "ca.crt")}},
        "containerRuntimeEndpoint": f"unix://{socket}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "10Mi"},
        "resolvConf": "/dev/null",
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "volumePluginDir": str(directory / "plugins"),
    }
    (directory / "kubelet.json").write_text(json.dumps(config))
    with (directory / "kubelet.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "kubelet",
                f"--config={directory}/kubelet.json",
                f"--bootstrap-kubeconfig={directory}/bootstrap.kubeconfig",
                f"--kubeconfig={directory}/kubelet.kubeconfig",
                f"--root-dir={directory}/kubelet",
                f"--cert-dir={directory}/pki",
                "--hostname-override=real",
                f"--node-ip={address()}",  # otherwise it looks the name up first
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        finally:
            process.kill()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            if (place := line.split()[1]).startswith(f"{directory}/"):
                subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def test_a_kubelet_joins_and_runs_pods(kubectl: Inside, tmp_path: Path) -> None:
    state = tmp_path / "plane" / "state"
    (tmp_path / "image").mkdir()
    archive = image_archive(tmp_path / "image")
    try:
        with running_daemon(tmp_path / "containerd", [archive]) as socket:
            (tmp_path / "kubelet").mkdir()
            with running_kubelet(state, state / "admin.kubeconfig", tmp_path / "kubelet", socket):
                _runs_pods(kubectl, tmp_path / "kubelet" / "kubelet.log")
    except MissingError as error:
        pytest.skip(str(error))


def _runs_pods(kubectl: Inside, log: Path) -> None:
    def why() -> str:
        return f"the node; log: {log.read_text()[-3000:]}"

    kubectl.until(lambda: kubectl.run("get", "node", "real").returncode == 0, why())
    kubectl("wait", "--for=condition=Ready", "node/real", "--timeout=60s")
    assert kubectl.json("get", "node", "real")["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
    kubectl("create", "configmap", "settings", "--from-literal=greeting=hello from a kubelet")
    kubectl.until(lambda: kubectl.run("get", "serviceaccount", "default").returncode == 0, "the service account")
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    kubectl.until(lambda: kubectl.run("logs", "p").returncode == 0, "the serving certificate")
    assert kubectl("logs", "p") == "hello from a kubelet\n"
    assert kubectl("exec", "-i", "p", "--", "cat", stdin="typed") == "typed"
    kubectl.until(lambda: kubectl.run("get", "lease", "real", "-n", "kube-node-lease").returncode == 0, "its lease")
    kubectl("delete", "pod", "p", "--timeout=60s")
    requests = kubectl.json("get", "certificatesigningrequests")["items"]
    signers = {each["spec"]["signerName"] for each in requests if each["status"].get("certificate")}
    assert signers == {"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}
