"""Pods that attack, or ask for too much, on a node of `ostinato up` whose containers are processes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.plane.node.runtimes.process import isolation
from tests.cluster.planes import PlaneProcess
from tests.cluster.test_plane import Kubectl

RESTRICTED = """
apiVersion: v1
kind: Namespace
metadata: {name: walled, labels: {pod-security.kubernetes.io/enforce: restricted}}
"""
ATTACKER = """
apiVersion: v1
kind: Pod
metadata: {name: attacker}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 1000, runAsNonRoot: true, fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: c
    image: none
    command: [sh, -c, "echo up; sleep 600"]
    volumeMounts: [{name: own, mountPath: /own}]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  volumes: [{name: own, emptyDir: {}}]
"""
UNHEARD = """
apiVersion: v1
kind: Pod
metadata: {name: unheard}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: none
    command: [sleep, "600"]
    securityContext: {seLinuxOptions: {level: "s0:c1"}}
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    if why := isolation.unsupported_reason():
        pytest.skip(f"no isolation here: {why}")
    options = ("--nodes", "1", "--runtime", "process", "--store", "memory")
    process = PlaneProcess(tmp_path_factory.mktemp("plane"), *options)
    process.start()
    yield process
    assert process.stop() == 0, process.log()[-2000:]


@pytest.fixture(scope="module")
def kubectl(plane: PlaneProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    binary = os.environ.get("OSTINATO_KUBECTL") or shutil.which("kubectl")
    if binary is None:
        pytest.skip("no kubectl on PATH, and OSTINATO_KUBECTL names none")
    home = tmp_path_factory.mktemp("home")
    Kubectl(binary, plane.kubeconfig, "default", home)("apply", "-f", "-", stdin=RESTRICTED)
    made = Kubectl(binary, plane.kubeconfig, "walled", home)
    made.until(lambda: made.run("get", "serviceaccount", "default").returncode == 0, "the service account")
    made("apply", "-f", "-", stdin=ATTACKER)
    made("wait", "--for=condition=Ready", "pod/attacker", "--timeout=60s")
    yield made
    made("delete", "pods", "--all", "--timeout=60s")


def test_a_restricted_pod_has_no_descriptors_of_the_server_and_sees_nothing_of_it(
    kubectl: Kubectl, plane: PlaneProcess
) -> None:
    """CVE-2024-21626: it had the shim's sockets and the server's log, and read other namespaces' start commands."""
    state = plane.kubeconfig.parent.resolve()
    script = f"""
        ls /proc/1/fd /proc/self/fd | sort -un | tr "\\n" " "; echo
        ls {state} {Path.home()} /home 2>&1 | grep -c "cannot access {state}"
        ls -d /proc/[0-9]* | wc -l
        grep -c . /etc/shadow 2>&1
        cat /own/../proc/1/root/etc/shadow 2>&1
        id
        touch /own/file && stat -c %g /own/file
    """
    said = kubectl("exec", "attacker", "--", "sh", "-c", script).splitlines()
    assert set(said[0].replace("/proc/1/fd:", "").replace("/proc/self/fd:", "").split()) <= {"0", "1", "2", "3"}
    assert int(said[2]) < 10
    assert all("No such file" in line for line in said[3:5])
    assert said[5].startswith("uid=1000")
    assert "2000" in said[5]
    assert said[6] == "2000"


def test_a_command_ends_with_its_pod(kubectl: Kubectl) -> None:
    """`kubectl exec` hung for as long as anything held the descriptors that it leaked."""
    kubectl("apply", "-f", "-", stdin=ATTACKER.replace("attacker", "short"))
    kubectl("wait", "--for=condition=Ready", "pod/short", "--timeout=60s")
    seconds = f"987.{os.getpid()}"  # nobody else's
    script = f"setsid sh -c 'trap : TERM HUP; sleep {seconds}' & echo begun"
    assert kubectl("exec", "short", "--", "sh", "-c", script) == "begun\n"
    kubectl.until(lambda: processes_with(seconds), "what the command began")
    kubectl("delete", "pod", "short", "--timeout=60s")
    assert not processes_with(seconds)


def test_a_pod_with_an_inapplicable_security_context_waits_with_a_reason(kubectl: Kubectl) -> None:
    kubectl("--namespace=default", "apply", "-f", "-", stdin=UNHEARD)

    def waiting() -> dict[str, str]:
        found = json.loads(kubectl("--namespace=default", "get", "pod", "unheard", "-o", "json"))
        statuses = found["status"].get("containerStatuses", [{}])
        state: dict[str, str] = statuses[0].get("state", {}).get("waiting", {})
        return state

    kubectl.until(lambda: waiting().get("reason") == "CreateContainerConfigError", "the refusal")
    field = "spec.containers[c].securityContext.seLinuxOptions"
    assert waiting()["message"].startswith(f"{field}: ")
    assert "--insecure-processes" in waiting()["message"]
    events = kubectl("--namespace=default", "get", "events", "--field-selector=involvedObject.name=unheard")
    assert field in events
    kubectl("--namespace=default", "delete", "pod", "unheard", "--timeout=60s")


def processes_with(argument: str) -> list[int]:
    """Of this machine, whatever their namespace: those that were started with an argument."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found
